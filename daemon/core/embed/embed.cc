// The C interface of the engine. Lines may be cut anywhere: each source keeps its unfinished line.
#include "culprit/embed.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <exception>
#include <memory>
#include <string>

#include "core/engine.h"
#include "core/logs/line_feed.h"
#include "core/logs/placement.h"
#include "core/rules/library.h"
#include "model/report_json.h"

using namespace culprit;

namespace {

struct OpenSource {
  SourceInfo info;
  logs::LineFeed feed;
  bool open = true;
};

// Copies the fields that the caller's version of a struct has; later fields keep their defaults.
template <class T>
T known_part(const T* given, T defaults) {
  if (given) std::memcpy(&defaults, given, std::min(given->size, sizeof(T)));
  return defaults;
}

// Ranks and devices have 32 bits; the largest value means none.
bool is_number_of_process(int64_t value) { return value >= 0 && value < int64_t{logs::kNoRank}; }

void tell(const std::string& why, char* error, size_t error_size) {
  if (!error || error_size == 0) return;
  std::strncpy(error, why.c_str(), error_size - 1);
  error[error_size - 1] = '\0';
}

}  // namespace

struct culprit_job {
  culprit_job(core::EngineOptions options, const logs::ParseOptions& parse, logs::Placement paths)
      : engine(std::move(options)), placement(std::move(paths)), parser(parse, engine.make_scanner()) {}

  core::Engine engine;
  logs::Placement placement;
  logs::LineParser parser;
  logs::LogBatch batch;
  std::deque<OpenSource> sources;
  std::deque<Finding> findings;
  Finding shown;
  std::string error;

  void step(core::Input input) {
    for (core::Effect& effect : engine.step({&input, 1}, kNoTime))
      findings.push_back(std::move(std::get<Finding>(effect)));
  }

  logs::LineFeed::Take taker(const OpenSource& source) {
    return [this, &source](const TextChunk& chunk) {
      parser.parse(chunk, source.info, batch);
      step(core::LogInput{&batch});
    };
  }

  // Stops exceptions, such as out of memory, since the caller may not be C++.
  template <class Call>
  auto guarded(Call call, decltype(call()) failed) -> decltype(call()) {
    try {
      return call();
    } catch (const std::exception&) {
      error.assign("out of memory");  // short enough to need no allocation
      return failed;
    }
  }
};

namespace {

Result<std::shared_ptr<rules::Ruleset>> load_rules(const culprit_options& options) {
  std::vector<rules::RuleText> files;
  if (!options.no_rules)
    for (const rules::LibraryFile& f : rules::library())
      files.push_back({std::string(f.name), std::string(f.text)});
  const size_t proven = files.size();
  if (options.rules) files.push_back({"rules", options.rules});
  auto set = rules::Ruleset::load(files, {proven});
  if (set) return std::move(*set);
  const rules::RuleError& e = set.error()[0];
  return fail(ErrorCode::kInvalid, fmt::format("{}:{}: {}", e.file, e.line, e.what));
}

Result<std::unique_ptr<culprit_job>> create(const culprit_options& options) {
  core::EngineOptions engine;
  if (options.job_toml) {
    auto job = parse_job_file(options.job_toml, "job_toml");
    if (!job) return tl::unexpected(job.error());
    engine.job = std::move(*job);
  }
  if (options.pool) {
    auto pool = detect::Pool::load(options.pool, "pool");
    if (!pool) return tl::unexpected(pool.error());
    engine.pool = std::move(*pool);
  }
  auto rules = load_rules(options);
  if (!rules) return tl::unexpected(rules.error());
  engine.rules = std::move(*rules);
  engine.live = true;
  const JobFile& job = engine.job;
  auto placement = logs::Placement::create({job.host_pattern.value_or(""), job.rank_pattern.value_or("")});
  if (!placement) return tl::unexpected(placement.error());
  logs::ParseOptions parse;
  parse.zone = options.utc_offset_s;
  return std::make_unique<culprit_job>(std::move(engine), parse, std::move(*placement));
}

int open(culprit_job& job, const culprit_source& source) {
  for (const auto& [name, value] : {std::pair{"rank", source.rank}, std::pair{"local", source.local}}) {
    if (value == -1 || is_number_of_process(value)) continue;
    job.error = std::string(name) + " " + std::to_string(value) + ": is no number of a process";
    return -1;
  }
  OpenSource s{{}, logs::LineFeed(static_cast<SourceId>(job.sources.size()))};
  s.info.file = source.name ? source.name : "";
  logs::PathOwner owner = job.placement.owner(s.info.file);
  s.info.host = source.host ? std::optional<std::string>(source.host) : std::move(owner.host);
  s.info.rank = source.rank >= 0 ? static_cast<uint32_t>(source.rank) : owner.rank;
  s.info.local = source.local >= 0 ? static_cast<uint32_t>(source.local) : owner.local;
  s.info.host_wins = job.placement.has_host_pattern();
  s.info.rank_wins = job.placement.has_rank_pattern();
  job.step(core::SourceOpened{s.info});
  job.sources.push_back(std::move(s));
  return static_cast<int>(job.sources.size() - 1);
}

int feed(culprit_job& job, int source, std::string_view text) {
  if (source < 0 || static_cast<size_t>(source) >= job.sources.size() ||
      !job.sources[static_cast<size_t>(source)].open) {
    job.error = "source " + std::to_string(source) + ": is not open";
    return -1;
  }
  OpenSource& s = job.sources[static_cast<size_t>(source)];
  s.feed.feed(text, job.taker(s));
  return 0;
}

int close(culprit_job& job, int source) {
  if (feed(job, source, "") != 0) return -1;
  OpenSource& s = job.sources[static_cast<size_t>(source)];
  s.open = false;
  s.feed.end(job.taker(s));
  return 0;
}

}  // namespace

const char* culprit_version(void) { return CULPRIT_VERSION; }

culprit_job* culprit_create(const culprit_options* given, char* error, size_t error_size) {
  try {
    auto job =
        create(known_part(given, culprit_options{sizeof(culprit_options), nullptr, nullptr, 0, 0, nullptr}));
    if (job) return job->release();
    tell(job.error().text, error, error_size);
  } catch (const std::exception&) {
    tell("out of memory", error, error_size);
  }
  return nullptr;
}

void culprit_destroy(culprit_job* job) { delete job; }

int culprit_open(culprit_job* job, const culprit_source* given) {
  const culprit_source source =
      known_part(given, culprit_source{sizeof(culprit_source), "", nullptr, -1, -1});
  return job->guarded([&] { return open(*job, source); }, -1);
}

int culprit_feed(culprit_job* job, int source, const char* bytes, size_t size) {
  return job->guarded([&] { return feed(*job, source, {bytes, size}); }, -1);
}

int culprit_close(culprit_job* job, int source) {
  return job->guarded([&] { return close(*job, source); }, -1);
}

int culprit_poll(culprit_job* job, culprit_finding* out) {
  if (job->findings.empty()) return 0;
  job->shown = std::move(job->findings.front());
  job->findings.pop_front();
  const Evidence& e = job->shown.evidence.front();
  const culprit_finding finding{out->size,      job->shown.title.c_str(), e.host ? e.host->c_str() : nullptr,
                                e.file.c_str(), e.line.value_or(0),       e.time_ns,
                                e.text.c_str()};
  std::memcpy(out, &finding, std::min(out->size, sizeof finding));
  return 1;
}

char* culprit_report(culprit_job* job) {
  const auto report = [job]() -> char* {
    const std::string json = to_json(job->engine.report());
    auto* copy = static_cast<char*>(std::malloc(json.size() + 1));
    if (copy) std::memcpy(copy, json.c_str(), json.size() + 1);
    return copy;
  };
  return job->guarded(report, nullptr);
}

void culprit_free(char* text) { std::free(text); }

const char* culprit_error(const culprit_job* job) { return job->error.c_str(); }
