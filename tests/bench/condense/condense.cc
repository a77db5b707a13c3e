// Cost of condensing, and its effect on the answer: simulated jobs (or folders of real ones) are diagnosed
// from their files, and again from the condensed blocks that agents on their hosts would send.
//
//   bench_condense [--hosts N] [--ranks N] [--iterations N] [--seeds N] [--fault NAME] [--layout NAME]
//                  [--blocks SECONDS] [FOLDER...]
//
// One row each: the sent share of the raw bytes (zstd -1 for each block; for frames of 256 KiB; the raw text
// in such frames), bytes per line, MB of text per CPU second parsed, and parsed and condensed, million lines
// per second into the engine from blocks and from batches, and the answer. The answer is `same` (byte for
// byte, as from the same batches in the same order), `close` (equal verdict, first suspect and iteration,
// scores within 5 %), or the difference; then the exit status is 1. `order` is the difference from an answer
// that reads file after file, with or without blocks. Different reports stay in the folder for temporary
// files.
#include <fmt/format.h>
#include <time.h>
#include <unistd.h>
#include <zstd.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>

#include "app/offline/diagnose.h"
#include "app/offline/job_slices.h"
#include "core/wire/inputs.h"
#include "ingest/text_reader.h"
#include "model/report_json.h"
#include "sim/log_job.h"

namespace {

using namespace culprit;
namespace fs = std::filesystem;

constexpr size_t kFrame = 256 << 10;

double cpu_seconds() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) / 1e9;
}

size_t packed_size(std::string_view bytes) {
  std::string out(ZSTD_compressBound(bytes.size()), '\0');
  return ZSTD_compress(out.data(), out.size(), bytes.data(), bytes.size(), 1);
}

// Consecutive bytes in frames.
struct Frames {
  std::string frame;
  size_t packed = 0;
  void add(std::string_view bytes) {
    while (!bytes.empty()) {
      const size_t n = std::min(bytes.size(), kFrame - frame.size());
      frame += bytes.substr(0, n);
      bytes.remove_prefix(n);
      if (frame.size() == kFrame) close();
    }
  }
  void close() {
    if (!frame.empty()) packed += packed_size(frame);
    frame.clear();
  }
};

// Divided as by agents between two flushes.
struct Job : app::SlicedJob {
  std::vector<std::string> texts;  // by file
};

Job load(const std::string& folder, TimeNs block) {
  Job job;
  auto sliced = app::slice_job(folder, block);
  if (!sliced) return job;
  static_cast<app::SlicedJob&>(job) = std::move(*sliced);
  for (const app::LogFile& file : job.files.logs) {
    std::string& text = job.texts.emplace_back();
    auto reader = ingest::StreamReader::open(file.file);
    for (auto chunk = reader ? reader->next() : std::nullopt; chunk; chunk = reader->next())
      text += chunk->bytes;
  }
  return job;
}

core::EngineOptions engine_options(const Job& job, const detect::Pool& pool,
                                   const std::shared_ptr<rules::Ruleset>& rules) {
  core::EngineOptions o;
  o.job = job.files.job;
  o.pool = pool;
  o.rules = rules;
  return o;
}

// An agent's own parser and batch, with the records of its slices.
struct Agent {
  std::unique_ptr<logs::LineParser> parser;
  std::unique_ptr<wire::InputWriter> writer;
  std::vector<SourceId> local;  // by file: its number on this agent
};

// The collector's part: it numbers sources in order of arrival.
struct Sink final : wire::InputSink {
  core::Engine& engine;
  SourceId next = 0;
  uint64_t lines = 0;
  explicit Sink(core::Engine& e) : engine(e) {}
  SourceId open(SourceInfo info, TimeNs now) override {
    core::Input input = core::SourceOpened{std::move(info)};
    engine.step({&input, 1}, now);
    return next++;
  }
  void on_input(core::Input input, TimeNs now) override {
    if (const auto* log = std::get_if<core::LogInput>(&input)) lines += log->batch->lines.size();
    engine.step({&input, 1}, now);
  }
  void ends(bool, TimeNs) override {}
  void alive(bool, TimeNs) override {}
};

struct Measured {
  uint64_t raw = 0, lines = 0, condensed = 0, by_block = 0, by_frame = 0, raw_frames = 0;
  double parse_s = 0, condense_s = 0, engine_s = 0, raw_engine_s = 0;
  std::string differs;  // difference from the same batches in the same order; empty: none
  std::string order;    // difference from file after file, caused by the order only
  bool same = false;
};

// Feeds two engines: one with the batches, the other with the blocks.
class Run {
 public:
  Run(const Job& job, TimeNs block, const detect::Pool& pool, std::shared_ptr<rules::Ruleset> rules)
      : job_(job),
        block_(block),
        rules_(std::move(rules)),
        raw_(engine_options(job, pool, rules_)),
        far_(engine_options(job, pool, rules_)),
        sink_(far_) {}

  // False if a block is unreadable.
  bool feed(Measured& m) {
    std::vector<SourceId> source_of(job_.texts.size(), 0);
    std::vector<bool> open(job_.texts.size());
    SourceId next = 0;
    for (const auto& [when, slices] : job_.slices) {
      Agent& agent = agent_of(when.second);
      for (const app::JobSlice& s : slices) {
        const SourceInfo& info = job_.files.logs[s.file].info;
        if (!open[s.file]) {
          core::Input input = core::SourceOpened{info};
          agent.writer->add(input, kNoTime);
          raw_.step({&input, 1}, kNoTime);
          source_of[s.file] = next++;
          agent.local[s.file] = opened_[when.second]++;
          open[s.file] = true;
        }
        take(agent, s, info, source_of[s.file], m);
        if (agent.writer->full() && !send(when.second, when.first, m)) return false;
      }
      if (!send(when.second, when.first, m)) return false;
    }
    for (auto& [host, agent] : agents_)
      if (!agent.writer->empty(kNoTime) && !send(host, job_.slices.rbegin()->first.first + 1, m))
        return false;
    for (auto& [host, frames] : frames_) frames.close(), m.by_frame += frames.packed;
    raw_frames_.close();
    m.raw_frames = raw_frames_.packed;
    m.lines = sink_.lines;
    return true;
  }

  Report raw_report() { return raw_.report(); }
  Report far_report() { return far_.report(); }

 private:
  Agent& agent_of(uint32_t host) {
    Agent& agent = agents_[host];
    if (agent.writer) return agent;
    agent.parser = std::make_unique<logs::LineParser>(logs::ParseOptions{}, raw_.make_scanner());
    agent.writer = std::make_unique<wire::InputWriter>(host + 1);
    agent.writer->set_rules(rules_.get());
    agent.local.resize(job_.texts.size());
    return agent;
  }

  void take(Agent& agent, const app::JobSlice& s, const SourceInfo& info, SourceId source, Measured& m) {
    const std::string_view text = std::string_view(job_.texts[s.file]).substr(s.begin, s.end - s.begin);
    m.raw += text.size();
    raw_frames_.add(text);
    double at = cpu_seconds();
    agent.parser->parse({agent.local[s.file], 0, 0, text, text.size(), s.last}, info, batch_);
    m.parse_s += cpu_seconds() - at;
    at = cpu_seconds();
    core::Input input = core::LogInput{&batch_};
    agent.writer->add(input, kNoTime);
    m.condense_s += cpu_seconds() - at;
    batch_.source = source;
    at = cpu_seconds();
    raw_.step({&input, 1}, kNoTime);
    m.raw_engine_s += cpu_seconds() - at;
  }

  bool send(uint32_t host, int64_t slot, Measured& m) {
    double at = cpu_seconds();
    const std::string block = agents_[host].writer->flush(slot * block_);
    m.condense_s += cpu_seconds() - at;
    m.condensed += block.size();
    m.by_block += packed_size(block);
    frames_[host].add(block);
    auto reader = readers_.try_emplace(host, wire::rule_finder(rules_.get())).first;
    at = cpu_seconds();
    const Status read = reader->second.read(block, sink_);
    m.engine_s += cpu_seconds() - at;
    if (!read) m.differs = read.error().text;
    return read.has_value();
  }

  const Job& job_;
  TimeNs block_;
  std::shared_ptr<rules::Ruleset> rules_;
  core::Engine raw_, far_;
  Sink sink_;
  std::map<uint32_t, Agent> agents_;
  std::map<uint32_t, SourceId> opened_;
  std::map<uint32_t, Frames> frames_;
  std::map<uint32_t, wire::InputReader> readers_;
  Frames raw_frames_;
  logs::LogBatch batch_;
};

bool far_apart(double a, double b) { return std::abs(a - b) > 0.05 * std::max(a, b); }

// The difference between two reports that matters to an operator; empty: none.
std::string difference(const Report& a, const Report& b) {
  const auto verdict = [](const Report& r) { return r.verdict ? &r.diagnoses[*r.verdict] : nullptr; };
  const Diagnosis *va = verdict(a), *vb = verdict(b);
  if (!va != !vb) return va ? "no verdict" : "a verdict";
  if (va && va->title != vb->title) return fmt::format("verdict {} / {}", va->title, vb->title);
  if (va && va->iteration != vb->iteration)
    return fmt::format("iteration {} / {}", va->iteration.value_or(-1), vb->iteration.value_or(-1));
  if (va && far_apart(va->confidence, vb->confidence))
    return fmt::format("confidence {:.3f} / {:.3f}", va->confidence, vb->confidence);
  const auto first = [](const Report& r) {
    return r.suspects.empty() ? "" : r.suspects[0].host.value_or("");
  };
  if (first(a) != first(b)) return fmt::format("suspect {} / {}", first(a), first(b));
  for (size_t i = 0; i < a.suspects.size() && i < b.suspects.size() && i < 3; ++i)
    for (const Suspect& s : b.suspects)
      if (s.host == a.suspects[i].host && far_apart(s.score, a.suspects[i].score))
        return fmt::format("score of {} {:.3f} / {:.3f}", s.host.value_or(""), a.suspects[i].score, s.score);
  for (const Indicating& i : a.indicating)
    for (const Indicating& j : b.indicating)
      if (i.template_text == j.template_text && far_apart(i.score, j.score))
        return fmt::format("score of \"{}\" {:.3f} / {:.3f}", i.template_text.substr(0, 40), i.score,
                           j.score);
  return "";
}

Measured measure(const std::string& folder, const std::vector<std::string>& healthy, TimeNs block,
                 const std::string& retained) {
  static const auto rules = rules::Ruleset::shipped();
  Measured m;
  const Job job = load(folder, block);
  app::DiagnoseOptions options;
  options.paths = {folder};
  options.healthy = healthy;
  app::ReadProgress progress;
  detect::Pool pool;
  if (!healthy.empty())
    if (auto built = app::build_pool(healthy, options, progress)) pool = std::move(built->pool);
  const auto offline = app::diagnose(options, progress);
  Run run(job, block, pool, rules);
  if (!run.feed(m) || !offline) return m;
  const Report far = run.far_report();
  const Report raw = run.raw_report();
  m.same = to_json(raw) == to_json(far);
  m.differs = difference(raw, far);
  if (m.differs.empty()) m.order = difference(offline->report, far);
  if (!m.same) {
    for (const auto& [side, text] : {std::pair("raw", to_json(raw)), std::pair("far", to_json(far))})
      std::ofstream(fmt::format("{}.{}.json", retained, side)) << text << '\n';
  }
  return m;
}

void print(std::string_view name, const Measured& m) {
  const double raw = static_cast<double>(m.raw), lines = static_cast<double>(m.lines);
  fmt::print(
      "{:<34} {:>7.2f} {:>6.2f} {:>6.2f} {:>6.2f} {:>6.2f} {:>6.0f} {:>6.0f} {:>6.2f} {:>6.2f}  {}{}\n", name,
      raw / 1e6, 100 * static_cast<double>(m.by_block) / raw, 100 * static_cast<double>(m.by_frame) / raw,
      100 * static_cast<double>(m.raw_frames) / raw, static_cast<double>(m.by_block) / lines,
      raw / 1e6 / m.parse_s, raw / 1e6 / (m.parse_s + m.condense_s), lines / 1e6 / m.engine_s,
      lines / 1e6 / m.raw_engine_s,
      !m.differs.empty() ? m.differs
      : m.same           ? "same"
                         : "close",
      m.order.empty() ? "" : ", order: " + m.order);
  fflush(stdout);
}

struct Options {
  sim::LogJobOptions job{.hosts = 4, .ranks_per_host = 4, .iterations = 60, .healthy = 1};
  uint64_t seeds = 1;
  int64_t block_s = 10;
  std::string fault;
  std::vector<std::string> folders;
};

bool parse(int argc, char** argv, Options& o) {
  o.job.layout.clear();
  for (int i = 1; i < argc; ++i) {
    const std::string_view a = argv[i];
    if (!a.starts_with("--")) {
      o.folders.emplace_back(a);
      continue;
    }
    if (++i == argc) return false;
    const auto n = static_cast<uint32_t>(strtoul(argv[i], nullptr, 10));
    if (a == "--hosts")
      o.job.hosts = n;
    else if (a == "--ranks")
      o.job.ranks_per_host = n;
    else if (a == "--iterations")
      o.job.iterations = n;
    else if (a == "--seeds")
      o.seeds = n;
    else if (a == "--blocks")
      o.block_s = n;
    else if (a == "--fault")
      o.fault = argv[i];
    else if (a == "--layout")
      o.job.layout = argv[i];
    else
      return false;
  }
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  Options o;
  if (!parse(argc, argv, o)) return fmt::print(stderr, "see the head of condense.cc\n"), 2;
  fmt::print("{:<34} {:>7} {:>6} {:>6} {:>6} {:>6} {:>6} {:>6} {:>6} {:>6}  {}\n", "job", "MB", "%block",
             "%frame", "%raw", "B/line", "parse", "+cond", "engine", "raw", "answer");
  size_t wrong = 0;
  Measured sum;
  const auto add = [&](const std::string& name, const Measured& m) {
    print(name, m);
    wrong += !m.differs.empty();
    sum.raw += m.raw, sum.lines += m.lines, sum.by_block += m.by_block, sum.by_frame += m.by_frame;
    sum.raw_frames += m.raw_frames, sum.parse_s += m.parse_s, sum.condense_s += m.condense_s;
    sum.engine_s += m.engine_s, sum.raw_engine_s += m.raw_engine_s;
  };
  const TimeNs block = o.block_s * kNsPerSecond;
  for (const std::string& folder : o.folders)
    add(fs::path(folder).filename().string(),
        measure(folder, {}, block, (fs::temp_directory_path() / fs::path(folder).filename()).string()));
  size_t i = 0;
  for (const sim::NamedChoice& fault : sim::log_faults()) {
    if (!o.folders.empty() || (!o.fault.empty() && o.fault != fault.name)) continue;
    for (uint64_t seed = 1; seed <= o.seeds; ++seed, ++i) {
      const fs::path out = fs::temp_directory_path() / fmt::format("bench-condense-{}-{}", getpid(), i);
      sim::LogJobOptions job = o.job;
      job.fault = fault.name;
      job.seed = seed * 1000 + i;
      if (job.layout.empty()) job.layout = sim::log_layouts()[i % sim::log_layouts().size()].name;
      if (!sim::simulate_logs(job, out.string()))
        return fmt::print(stderr, "{}: cannot be written\n", out.string()), 2;
      const Measured m = measure((out / "job").string(), {(out / "healthy").string()}, block, out.string());
      add(fmt::format("{} {}", fault.name, job.layout), m);
      fs::remove_all(out);
    }
  }
  sum.same = wrong == 0;
  print("all", sum);
  return wrong == 0 ? 0 : 1;
}
