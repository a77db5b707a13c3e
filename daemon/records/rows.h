// What is kept of jobs, as values: runs, findings, people's judgements, suspected devices, what healthy jobs
// taught. Diagnoses are model/verdict.h. Plain values; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "base/time.h"

namespace culprit::records {

constexpr size_t kRowsListed = 1000;  // of a list that a person asks for

enum class JobState : uint8_t { kRunning = 0, kEndedWell = 1, kFailed = 2, kEnded = 3 };
std::string_view to_string(JobState state);  // "running", "ended_well", "failed", "ended"

// Unknown times are kNoTime. A job with a repeated id has several runs, numbered from 0.
struct JobRow {
  std::string id;
  uint32_t run = 0;
  JobState state = JobState::kRunning;
  TimeNs first_ns = kNoTime, last_ns = kNoTime, ended_ns = kNoTime;
  std::optional<uint64_t> hosts, lines;  // counts
  std::string verdict;                   // its title; empty: none
  std::string headline;                  // of the last report; empty: none yet, or of an older daemon
};

// People's judgements of one kind of diagnosis; the last judgement of each diagnosis counts.
struct Judged {
  uint64_t hits = 0, right = 0;
  std::string by;        // author of the last judgement
  std::string first_by;  // who confirmed one of this kind first; empty: none
  TimeNs first_ns = kNoTime;
};

struct FindingRow {
  std::string job;
  uint32_t run = 0;
  std::string id;  // stable per finding: a repeated finding is stored once
  TimeNs time_ns = kNoTime;
  std::string json;
};

struct AuditRow {
  TimeNs time_ns = kNoTime;
  std::string who, what, subject, detail;  // "uid 1000", "confirm", "job/d1", its kind
};

// A device that one diagnosis suspects of data corruption.
struct DeviceFault {
  std::string device;  // its UUID or serial number if known, else its host and local number
  std::string host;    // its host at that time
  std::string job;
  uint32_t run = 0;
  std::string diagnosis;  // its id
  std::optional<int64_t> step;
  TimeNs time_ns = kNoTime;
};

// What one run taught the pool of its owner, or, between members of a cluster, that a person took it back.
struct TaughtRow {
  std::string job;
  uint32_t run = 0;
  std::string owner, why;
  TimeNs time_ns = kNoTime;
  uint64_t forms = 0;
  std::string text;            // detect::Pool::save(); of one that was taken back empty
  std::string member = {};     // whose run it is; empty: this collector's
  std::string forgotten = {};  // who took it back
};

// A run entered the pool of its owner, or a person took it back.
struct PoolLogRow {
  TimeNs time_ns = kNoTime;
  std::string what;  // "learned", "forgotten"
  std::string job;
  uint32_t run = 0;
  std::string owner, why;
  uint64_t forms = 0;
  std::string who;      // took it back; else empty
  bool counts = false;  // the run is in the pool now
};

struct VerdictQuery {
  std::string job;              // empty: all
  std::optional<uint32_t> run;  // none: all
  TimeNs since_ns = kNoTime;
  size_t limit = 1000;
  bool judged = false;  // only judged ones
};

// A run with a diagnosis that may be its verdict.
struct Leading {
  std::string job;
  uint32_t run = 0;
  TimeNs first_ns = kNoTime;
};

using JobRunId = std::pair<std::string, uint32_t>;  // a job and its run

// Runs whose diagnoses were written or judged; `all`: more than are remembered.
struct Changed {
  bool all = false;
  std::set<JobRunId> runs;
};

// A run as one member of a cluster numbers it: others may number it otherwise, and know it by its time.
struct SeenRun {
  std::string member;  // empty: this one
  uint32_t run = 0;
  TimeNs first_ns = kNoTime, last_ns = kNoTime;
  std::string kind;  // of the diagnosis
};

// Without a run: of the last run that has the diagnosis.
struct Judgement {
  std::string job, id;
  std::optional<uint32_t> run;
  bool right = true;
  std::string by;
  TimeNs time_ns = kNoTime;
  std::string rule = {};  // made of the diagnosis: the judgement counts for the rule's kind too
  bool share = false;     // with the other members of a cluster: it waits in Records::unshared()
  // Another member's run, whose number gives `id`. The judgement counts for its kind also where there is no
  // such run; an older one than what is known of the diagnosis changes nothing.
  std::optional<SeenRun> seen = {};
};

// The diagnosis that a judgement is of, as this daemon numbers the runs.
struct JudgedRun {
  std::optional<uint32_t> run;  // none: another member alone has it
  std::string id;
  bool changed = false;
};

}  // namespace culprit::records
