#include "app/check/host_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "base/clock.h"
#include "base/text.h"
#include "check/devices.h"
#include "io/installed.h"
#include "io/program.h"

namespace culprit::app {
namespace {

using check::Answer;
using check::Part;

constexpr const char* kProgram = "culprit-node-check";
constexpr TimeNs kMargin = kNsPerSecond;  // for the program to say that its time is over
constexpr int kTemporary = 75;            // EX_TEMPFAIL of sysexits.h: the command has no answer
constexpr int kNotRun = 126;              // and above, of a shell or env: the command was not run
constexpr size_t kCommandOutput = 256 << 10;

// The parts that the program has written; then one for what it could not do.
void run_program_parts(const HostCheckOptions& options, TimeNs within, std::vector<Part>& parts) {
  io::ProgramRun run;
  run.path = options.program.empty() ? io::helper_path(kProgram) : options.program;
  run.words = {kProgram, fmt::format("{}", within / kNsPerMs), fmt::format("{}", options.memory),
               fmt::format("{}", options.disk), options.folder};
  run.environment = check_environment();
  run.within_ns = within + kMargin;
  run.stop = options.stop;
  run.ends_early = options.ends_early;
  const io::ProgramEnd end = io::run_program(run);
  for (std::string_view rest = end.output; !rest.empty();) {
    const size_t size = std::min(rest.find('\n'), rest.size());
    if (auto part = check::parse_part(rest.substr(0, size)); part && parts.size() < check::kPartsMost)
      parts.push_back(std::move(*part));
    rest.remove_prefix(std::min(size + 1, rest.size()));
  }
  if (end.is_success()) return;
  const char* next = options.memory > 0 && std::ranges::find(parts, "memory", &Part::name) == parts.end()
                         ? "memory"
                         : "disk";
  parts.push_back({next, Answer::kNoAnswer, "the check " + end.reason, 0, "", 0});
}

// The last line of a command's output that is not empty.
std::string last_line(std::string_view text) {
  text = trim(text);
  const size_t at = text.rfind('\n');
  return shorten(to_terminal(trim(at == text.npos ? text : text.substr(at + 1))), 200);
}

Part run_command(const HostCheckOptions& options, const std::string& command, TimeNs within) {
  io::ProgramRun run;
  run.words = words_of(command);
  if (run.words.empty()) return {"command", Answer::kNoAnswer, "it has no words", 0, "", 0};
  run.path = run.words.front();
  run.environment = check_environment();
  run.within_ns = within;
  run.output_max = kCommandOutput;
  run.stop = options.stop;
  run.ends_early = options.ends_early;
  const TimeNs began = steady_now();
  const io::ProgramEnd end = io::run_program(run);
  Part out;
  out.name = run.path.substr(run.path.rfind('/') + 1);
  out.took_ns = steady_now() - began;
  const bool answered =
      end.kind == io::ProgramEnd::Kind::kExited && end.code != kTemporary && end.code < kNotRun;
  out.answer = !answered ? Answer::kNoAnswer : end.code == 0 ? Answer::kPassed : Answer::kFailed;
  if (end.is_success()) return out.text = "exited with status 0", out;
  const std::string line = end.errors.empty() ? last_line(end.output) : "";
  out.text = end.reason + (line.empty() ? "" : ": " + line);
  return out;
}

}  // namespace

std::vector<std::string> check_environment() { return {"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C"}; }

std::vector<std::string> words_of(std::string_view command) {
  std::vector<std::string> out;
  while (!(command = trim(command)).empty()) {
    const size_t end = std::min(command.find_first_of(" \t"), command.size());
    out.emplace_back(command.substr(0, end));
    command.remove_prefix(end);
  }
  return out;
}

HostCheckOptions host_check_options(const Config& config) {
  HostCheckOptions out;
  out.commands = config.check.commands;
  out.memory = config.check.memory;
  out.disk = config.check.disk;
  out.folder = config.state_dir;
  out.within_ns = config.check.within_ns;
  out.accelerators = [] { return check::count_accelerators(); };
  return out;
}

std::optional<std::string> job_in_the_way(const ProcessView& view, uint32_t own) {
  for (const auto& [pid, process] : view.processes)
    if (!process.job.empty() && process.uid != 0 && process.uid != own)
      return fmt::format("job {} has processes here", to_terminal(process.job));
  if (view.cut) return "not all processes of this host could be read";
  return std::nullopt;
}

HostCheck check_host(const HostCheckOptions& options) {
  const TimeNs until = steady_now() + options.within_ns;
  HostCheck out;
  run_program_parts(options, options.within_ns, out.parts);
  const bool failed = std::ranges::find(out.parts, Answer::kFailed, &Part::answer) != out.parts.end();
  for (const std::string& command : options.commands) {
    if (failed || out.parts.size() >= check::kPartsMost) break;
    if (options.ends_early && options.ends_early()) break;
    out.parts.push_back(run_command(options, command, std::max<TimeNs>(until - steady_now(), 0)));
  }
  const size_t accelerators = options.accelerators ? options.accelerators() : 0;
  if (accelerators > 0 && options.commands.empty())
    out.parts.push_back({"accelerators", Answer::kNoAnswer,
                         fmt::format("{} here, and check.commands names nothing that tests them",
                                     counted(accelerators, "accelerator")),
                         0, "", 0});
  out.outcome = check::outcome_of(out.parts);
  return out;
}

}  // namespace culprit::app
