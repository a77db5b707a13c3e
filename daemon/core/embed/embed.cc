// The C face of the engine. Lines may arrive cut anywhere: each source keeps its unfinished line.
#include "culprit/embed.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <memory>
#include <string>

#include "base/limits.h"
#include "core/engine.h"
#include "model/report_json.h"

using namespace culprit;

namespace {

struct Source {
  SourceInfo info;
  std::string rest;   // of the line that has no end yet, as much as parsing looks at
  uint64_t lost = 0;  // bytes of that line beyond
  uint64_t offset = 0, index = 0;
  bool open = true;

  // Takes what has no newline.
  void keep(std::string_view text) {
    const size_t room = limits::kLineBytes + 1 - rest.size();  // one more, so that it is seen to be cut
    rest += text.substr(0, room);
    lost += text.size() - std::min(text.size(), room);
  }
};

// The part of a struct that the caller's version of it has; the rest keeps its default.
template <class T>
T known_part(const T* given, T defaults) {
  if (given) std::memcpy(&defaults, given, std::min(given->size, sizeof(T)));
  return defaults;
}

}  // namespace

struct culprit_job {
  culprit_job(core::EngineOptions options, const logs::ParseOptions& parse)
      : engine(std::move(options)), parser(parse) {}

  core::Engine engine;
  logs::LineParser parser;
  logs::LogBatch batch;
  std::deque<Source> sources;
  std::deque<Finding> findings;
  Finding shown;
  std::string error;

  void step(core::Input input) {
    for (core::Effect& effect : engine.step({&input, 1}, kNoTime))
      findings.push_back(std::move(std::get<Finding>(effect)));
  }

  // Hands over what a source keeps.
  void parse(size_t id, bool last) {
    Source& s = sources[id];
    const uint64_t size = s.rest.size() + s.lost;
    parser.parse({static_cast<SourceId>(id), s.index++, s.offset, s.rest, size, last}, s.info, batch);
    s.offset += size;
    step(core::LogInput{&batch});
    s.rest.clear();
    s.lost = 0;
  }
};

const char* culprit_version(void) { return CULPRIT_VERSION; }

culprit_job* culprit_create(const culprit_options* given, char* error, size_t error_size) {
  const culprit_options options =
      known_part(given, culprit_options{sizeof(culprit_options), nullptr, nullptr, 0});
  const auto refuse = [&](const Error& why) -> culprit_job* {
    if (error && error_size) {
      std::strncpy(error, why.text.c_str(), error_size - 1);
      error[error_size - 1] = '\0';
    }
    return nullptr;
  };
  core::EngineOptions engine;
  if (options.job_toml) {
    auto job = parse_job_file(options.job_toml, "job_toml");
    if (!job) return refuse(job.error());
    engine.job = std::move(*job);
  }
  if (options.pool) {
    auto pool = detect::Pool::load(options.pool, "pool");
    if (!pool) return refuse(pool.error());
    engine.pool = std::move(*pool);
  }
  logs::ParseOptions parse;
  parse.utc_offset_s = options.utc_offset_s;
  return new culprit_job(std::move(engine), parse);
}

void culprit_destroy(culprit_job* job) { delete job; }

int culprit_open(culprit_job* job, const culprit_source* given) {
  const culprit_source source =
      known_part(given, culprit_source{sizeof(culprit_source), "", nullptr, -1, -1});
  Source s;
  s.info.file = source.name ? source.name : "";
  if (source.host) s.info.host = source.host;
  if (source.rank >= 0) s.info.rank = static_cast<uint32_t>(source.rank);
  if (source.local >= 0) s.info.local = static_cast<uint32_t>(source.local);
  job->step(core::SourceOpened{s.info});
  job->sources.push_back(std::move(s));
  return static_cast<int>(job->sources.size() - 1);
}

int culprit_feed(culprit_job* job, int source, const char* bytes, size_t size) {
  if (source < 0 || static_cast<size_t>(source) >= job->sources.size() || !job->sources[source].open) {
    job->error = "source " + std::to_string(source) + ": is not open";
    return -1;
  }
  Source& s = job->sources[static_cast<size_t>(source)];
  std::string_view text(bytes, size);
  while (!text.empty()) {
    const std::string_view part = text.substr(0, limits::kChunkBytes);
    text.remove_prefix(part.size());
    const size_t first = part.find('\n'), end = part.rfind('\n');
    s.keep(part.substr(0, first));
    if (first == std::string_view::npos) continue;
    s.rest += part.substr(first, end + 1 - first);
    job->parse(static_cast<size_t>(source), false);
    s.keep(part.substr(end + 1));
  }
  return 0;
}

int culprit_close(culprit_job* job, int source) {
  if (culprit_feed(job, source, "", 0) != 0) return -1;
  Source& s = job->sources[static_cast<size_t>(source)];
  s.open = false;
  job->parse(static_cast<size_t>(source), true);
  return 0;
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
  const std::string json = to_json(job->engine.report());
  auto* copy = static_cast<char*>(std::malloc(json.size() + 1));
  if (copy) std::memcpy(copy, json.c_str(), json.size() + 1);
  return copy;
}

void culprit_free(char* text) { std::free(text); }

const char* culprit_error(const culprit_job* job) { return job->error.c_str(); }
