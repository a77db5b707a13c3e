#include "app/plugins/check.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <filesystem>
#include <set>

#include "app/plugins/corpus.h"
#include "app/plugins/exports.h"
#include "app/plugins/trial.h"
#include "app/plugins/words.h"
#include "base/limits.h"
#include "base/text.h"
#include "io/files.h"
#include "io/system_error.h"
#include "io/trusted_path.h"
#include "plughost/messages.h"
#include "plughost/plugins.h"

namespace culprit::app {
namespace {

using Outcome = PluginCheckRow::Outcome;

constexpr const char* kEntry = "culprit_plugin_entry_v1";
constexpr size_t kSymbolsShown = 5;
// Compares memory after the first passes, in which a plugin's tables fill, with memory after the last pass.
constexpr uint64_t kWarmPasses = 10, kPasses = 40;
constexpr uint64_t kGrowthBytes = 1 << 20;
// Number of the first failing allocation (all later ones fail too): each of the first, then samples.
constexpr uint64_t kFailingEach = 24, kFailingMax = 4096;

class Check {
 public:
  Check(const PluginCheckOptions& options, const std::function<void(PluginCheckRow)>& row, int library)
      : options_(options), row_(row) {
    trial_.name = std::filesystem::path(options.library).stem();
    trial_.host_program =
        options.host_program.empty() ? plughost::default_host_program() : options.host_program;
    trial_.library = library;
    trial_.values = options.values;
    const plughost::PluginTable table;
    trial_.limits = {table.memory_bytes, table.cpu_ppm, table.findings_per_minute, table.call_ns};
    first_ = corpus(0, options.lines);
  }

  PluginCost run(std::string_view bytes) {
    symbols(bytes);
    rights();
    if (!description() || !create()) return cost_;
    events();
    if (events_work_) {
      words();
      repeat();
      budget();
      state();
    }
    allocations();
    return cost_;
  }

 private:
  void report(Outcome outcome, const char* check, std::string text) { row_({outcome, check, to_utf8(text)}); }
  void judge(bool ok, const char* check, std::string text) {
    report(ok ? Outcome::kOk : Outcome::kWrong, check, std::move(text));
  }

  void symbols(std::string_view bytes) {
    auto found = exported_symbols(bytes);
    if (!found) return report(Outcome::kWrong, "symbols", found.error().text);
    std::vector<std::string> others;
    for (const std::string& name : *found)
      if (name != kEntry) others.push_back(name);
    if (others.size() == found->size())
      return report(Outcome::kWrong, "symbols", fmt::format("it does not export {}", kEntry));
    if (others.empty()) return report(Outcome::kOk, "symbols", fmt::format("it exports {} alone", kEntry));
    const size_t count = others.size();
    if (count > kSymbolsShown) others.resize(kSymbolsShown);
    report(Outcome::kWrong, "symbols",
           fmt::format("it exports {} besides {}: {}{}; compile with -fvisibility=hidden",
                       counted(count, "symbol"), kEntry, fmt::join(others, ", "),
                       count > kSymbolsShown ? ", …" : ""));
  }

  // The library usually has another path once it is installed.
  void rights() {
    std::error_code error;
    const std::string path = std::filesystem::absolute(options_.library, error).lexically_normal();
    const auto opened = io::open_trusted_file(path, ::geteuid());
    if (!opened)
      return report(Outcome::kNote, "rights", "culpritd would refuse it here: " + opened.error().text);
    ::close(*opened);
    report(Outcome::kOk, "rights", "only root and this user can change the file");
  }

  bool description() {
    Trial trial(trial_);
    if (!trial.load()) {
      report(Outcome::kWrong, "interface", trial.problem());
      return false;
    }
    known_ = trial.description();
    report(Outcome::kOk, "interface",
           fmt::format("{} {} for version {}.{}: {} of events, {}, {}", known_.name, known_.version,
                       known_.abi_major, known_.abi_minor,
                       counted(static_cast<uint64_t>(std::popcount(known_.events)), "kind"),
                       known_.tick_ms ? fmt::format("a tick every {} ms", known_.tick_ms) : "no ticks",
                       counted(known_.options.size(), "option")));
    return true;
  }

  bool create() {
    Trial trial(trial_);
    const bool made = trial.load() && trial.create() && trial.stop();
    const std::string logged = trial.lines().empty() ? "" : "; it logged: " + trial.lines().back();
    judge(made, "create", made ? "a detector is created and destroyed" : trial.problem() + logged);
    return made;
  }

  // Runs one pass. False: a check failed.
  bool pass(Trial& trial, const std::vector<CorpusBatch>& batches) {
    for (const CorpusBatch& batch : batches) {
      if (!trial.observe(batch.records, known_.events)) return false;
      if (known_.tick_ms != 0 && !trial.tick(batch.wall)) return false;
    }
    return true;
  }

  void events() {
    Trial trial(trial_);
    events_work_ = trial.load() && trial.create() && pass(trial, first_) && trial.stop();
    if (!events_work_) return report(Outcome::kWrong, "events", trial.problem());
    findings_ = trial.findings();
    report(Outcome::kOk, "events",
           fmt::format("{} and {}: {}", counted(trial.events(), "event"),
                       counted(known_.tick_ms ? first_.size() : 0, "tick"),
                       counted(findings_.size(), "finding")));
    if (trial.findings_dropped() > 0)
      report(Outcome::kWrong, "findings",
             fmt::format("{} of one minute were dropped: invalid, or over the limit of {} per minute{}",
                         counted(trial.findings_dropped(), "finding"), trial_.limits.findings_per_minute,
                         trial.lines().empty() ? "" : "; it logged: " + trial.lines().back()));
    else if (findings_.empty())
      report(Outcome::kNote, "findings",
             "it found nothing: what it reports is not tried; --log gives it lines that it looks for");
    else
      report(Outcome::kOk, "findings",
             fmt::format("all are valid, and within {} per minute", trial_.limits.findings_per_minute));
  }

  // The daemon treats an undefined word as unknown.
  void words() {
    std::set<std::string> faults;
    for (const std::string& bytes : findings_) {
      PluginFinding finding;
      if (!plughost::decode(bytes, finding)) continue;
      for (std::string& fault : faults_of_words(finding)) faults.insert(std::move(fault));
    }
    if (!faults.empty())
      report(Outcome::kWrong, "words", fmt::format("{}", fmt::join(faults, "; ")));
    else if (!findings_.empty())
      report(Outcome::kOk, "words", "category, component, symptom and action are words of plugin.h");
  }

  void repeat() {
    Trial trial(trial_);
    if (!(trial.load() && trial.create() && pass(trial, first_) && trial.stop()))
      return report(Outcome::kWrong, "repeat", trial.problem());
    if (known_.events == 0)
      return report(Outcome::kNote, "repeat", "it reads the machine, not events: two runs may differ");
    const auto at =
        std::mismatch(findings_.begin(), findings_.end(), trial.findings().begin(), trial.findings().end());
    const bool same = at.first == findings_.end() && at.second == trial.findings().end();
    judge(same, "repeat",
          same ? "two runs over the same events give the same findings"
               : fmt::format("two runs over the same events differ from finding {} on; a detector uses the "
                             "times of its events, not a clock or an address",
                             at.first - findings_.begin() + 1));
  }

  void budget() {
    Trial trial(trial_);
    bool works = trial.load() && trial.create();
    uint64_t warm = 0;
    for (uint64_t i = 0; works && i < kPasses; ++i) {
      works = pass(trial, i == 0 ? first_ : corpus(i, options_.lines));
      if (i + 1 == kWarmPasses) warm = trial.memory_bytes();
    }
    const uint64_t memory = trial.memory_bytes();
    if (!works || !trial.stop()) {
      report(Outcome::kWrong, "time", trial.problem());
      return;
    }
    const double each = trial.events() == 0
                            ? 0
                            : static_cast<double>(trial.observing_ns()) / static_cast<double>(trial.events());
    cost_ = {each, memory};
    const std::string of_events =
        trial.events() == 0 ? "" : fmt::format("{:.2f} us an event in its process, ", each * 1e-3);
    report(Outcome::kOk, "time",
           fmt::format("{}the longest call {:.2f} ms; {} are allowed", of_events,
                       static_cast<double>(trial.longest_ns()) * kMsPerNs,
                       format_duration(trial_.limits.call_ns)));
    if (memory > trial_.limits.memory_bytes)
      return report(
          Outcome::kWrong, "memory",
          fmt::format("{}, {} are allowed", format_bytes(memory), format_bytes(trial_.limits.memory_bytes)));
    const uint64_t grown = memory - std::min(memory, warm);
    judge(grown <= kGrowthBytes, "memory",
          fmt::format("{}; {} more after {} minutes of the same events than after {}", format_bytes(memory),
                      format_bytes(grown), kPasses, kWarmPasses));
  }

  void state() {
    Trial first(trial_);
    if (!(first.load() && first.create() && pass(first, first_) && first.stop()))
      return report(Outcome::kWrong, "state", first.problem());
    for (const std::string& line : first.lines())
      if (line.find("no state is kept") != line.npos) return report(Outcome::kWrong, "state", line);
    if (first.state().empty())
      return report(Outcome::kNote, "state", "it saves none: a new version starts empty");
    Trial second(trial_);
    if (!(second.load() && second.create(first.state()) && pass(second, corpus(1, options_.lines)) &&
          second.stop()))
      return report(Outcome::kWrong, "state", second.problem());
    judge(second.loaded_state(), "state",
          second.loaded_state()
              ? fmt::format("{} are saved and loaded", counted(first.state().size(), "byte"))
              : "it does not load the state that it saved");
  }

  // The host program's malloc fails during the plugin's calls. An error is acceptable, a crash is not.
  void allocations() {
    uint64_t tried = 0;
    for (uint64_t n = 1; n <= kFailingMax; n = n < kFailingEach ? n + 1 : n + n / 2) {
      Trial::Options failing = trial_;
      failing.environment = {fmt::format("CULPRIT_FAIL_ALLOCATION={}", n)};
      Trial trial(failing);
      const bool works = trial.load() && trial.create() && pass(trial, first_) && trial.stop();
      if (!works && !trial.refused())
        return report(Outcome::kWrong, "allocations",
                      fmt::format("from its allocation {} on none succeeds: {}", n, trial.problem()));
      ++tried;
    }
    report(Outcome::kOk, "allocations",
           fmt::format("it survives that they fail, from {} different ones on", tried));
  }

  const PluginCheckOptions& options_;
  const std::function<void(PluginCheckRow)>& row_;
  Trial::Options trial_;
  std::vector<CorpusBatch> first_;
  plughost::Description known_;
  PluginCost cost_;
  bool events_work_ = false;
  std::vector<std::string> findings_;
};

}  // namespace

Result<PluginCost> check_plugin(const PluginCheckOptions& options,
                                const std::function<void(PluginCheckRow)>& row) {
  auto file = io::real_files().open(options.library, io::OpenFor::kRead);
  if (!file) return tl::unexpected(file.error());
  const auto status = (*file)->status();
  if (!status) return tl::unexpected(status.error());
  std::string bytes(std::min<uint64_t>(status->size, limits::kPluginCheckBytes), '\0');
  const auto size = (*file)->read_at(bytes.data(), bytes.size(), 0);
  if (!size) return tl::unexpected(size.error());
  bytes.resize(*size);
  const int library = ::open(options.library.c_str(), O_RDONLY | O_CLOEXEC);
  if (library < 0) return io::system_failure(options.library, errno);
  const PluginCost cost = Check(options, row, library).run(bytes);
  ::close(library);
  return cost;
}

}  // namespace culprit::app
