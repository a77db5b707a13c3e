// The routes of FORMATS.md section 9 over what the app knows. Parameters are checked here; bodies are JSON
// that the app has serialised.
//
// Thread: the loop's. ApiSource is borrowed and must outlive the Api; its answers come on the loop, at once
// or later, each exactly once (dropping an Answer is an answer: 500).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "base/time.h"
#include "io/env.h"
#include "model/piece.h"
#include "serve/events.h"
#include "serve/http_server.h"

namespace culprit::serve {

struct Health {
  bool ok = false;
  std::string sentence;  // "ok", or what stands still and since when
};

// A job of which there were several has runs, counted from 0; without one the last is meant.
struct JobRun {
  std::string job;
  std::optional<uint32_t> run;
};

struct ReportQuery {
  JobRun of;
  bool charts = false;  // with the curves that a page draws
};

// What somebody says of a diagnosis.
struct Judgement {
  JobRun of;
  std::string id;
  bool right = true;
};

struct DiagnosisQuery {
  std::optional<std::string> job;
  std::optional<uint32_t> run;  // without: of all
  std::optional<TimeNs> since_ns;
};

struct EvidenceQuery {
  std::string job, host, path;
  uint64_t from_byte = 0;
  uint64_t to_byte = UINT64_MAX;  // exclusive
};

// A part of a source's evidence, in order. `gap` stands before the bytes: where it begins is their offset, or
// before it where the bytes that are gone had been stored.
struct EvidenceChunk {
  uint64_t offset = 0;  // of the bytes, in the source's evidence
  std::string bytes;
  std::optional<Gap> gap;
  bool last = false;
  std::optional<uint64_t> gap_offset = std::nullopt;  // where it is not `offset`
};

// Reads one source for one client. The next chunk is asked for when the client has taken the one before;
// destroyed when the client has all or went away, also while a chunk is under way (its answer is then
// ignored) and from within an answer.
class EvidenceReader {
 public:
  virtual ~EvidenceReader() = default;
  virtual void next(std::function<void(Result<EvidenceChunk>)> answer) = 0;  // some 64 KiB to 1 MiB
};

// Who asks for a change, for the audit log.
struct Actor {
  std::string name;             // as the client says: {"by": "alice"}; empty where it does not
  std::optional<uint32_t> uid;  // by the kernel's word; none over TCP, where the token speaks
};

class ApiSource {
 public:
  virtual ~ApiSource() = default;
  using Answer = std::function<void(Result<std::string>)>;  // a JSON value

  virtual Health health() = 0;
  virtual void metrics(std::function<void(std::string)> answer) = 0;  // made with MetricsText
  virtual void status(Answer answer) = 0;
  // Lists: {"items": [ … ]}, newest first. Of jobs each run, with at least "id", "run", "state" (running,
  // ended, failed), "first_ns", "last_ns", "ended_ns" (null while it runs), "hosts" (count), "lines",
  // "verdict" (its title, or null).
  virtual void jobs(Answer answer) = 0;
  virtual void report(const ReportQuery& query, Answer answer) = 0;  // FORMATS.md section 7
  // Each as in the report, with "job" and "run" beside.
  virtual void diagnoses(const DiagnosisQuery& query, Answer answer) = 0;
  virtual void suspects(const std::optional<std::string>& job, Answer answer) = 0;
  virtual void hosts(Answer answer) = 0;  // "host", "state", "suspected", "last_ns"
  // GET /v1/devices: what counts against devices that were suspected of corrupting data. "device" (its UUID
  // or serial number, else its number and host), "host", "job", "run", "diagnosis", "step", "time_ns".
  virtual void devices(Answer answer) = 0;
  virtual void rules(Answer answer) = 0;
  // GET /v1/sources?job=: what evidence there is. "job", "host", "path", "kind", "bytes", "lost_bytes",
  // "lost_records", "first_ns", "last_ns", "ended".
  virtual void sources(const std::optional<std::string>& job, Answer answer) = 0;
  virtual void evidence(const EvidenceQuery& query,
                        std::function<void(Result<std::unique_ptr<EvidenceReader>>)> answer) = 0;
  // {"config": "…", "versions": {…}}: the configuration as read, without secrets; for `culprit bundle`.
  virtual void about(Answer answer) = 0;
  // GET /v1/pool: {"pool": "…"}, what jobs that ended well were learned to write, as `culprit pool` saves it;
  // null where none did.
  virtual void pool(Answer answer) = 0;
  virtual void judge(const Judgement& judgement, const Actor& by, Answer answer) = 0;
  virtual void clear(const std::string& host, const Actor& by, Answer answer) = 0;
};

class Api {
 public:
  Api(io::Env& env, ApiSource& source);
  // For HttpServer::start. They borrow the Api: it goes after the server.
  std::vector<Route> routes();
  // What /v1/events tells. Each diagnosis and finding as in the report, with "job" beside.
  EventHub& events() { return events_; }

 private:
  ApiSource& source_;
  EventHub events_;
};

}  // namespace culprit::serve
