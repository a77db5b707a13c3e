// Types of alerts: the fault that a verdict names, the issue that people are notified of, and its messages.
// Plain values that own all their data. The daemon stores their JSON form on disk.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "base/time.h"

namespace culprit::alert {

// The current verdict of a run. Texts are untrusted and of limited length.
struct Fault {
  std::string job;
  uint32_t run = 0;
  std::string diagnosis;  // id of the diagnosis within the run
  std::string source;     // rule or detector: "rule:nvidia.xid.79", "comm:slowdown"
  std::string title, category, component, symptom, action, remedy;
  std::vector<std::string> hosts;    // accused hosts
  std::vector<std::string> targets;  // of the action
  std::vector<std::string> why;
  std::string headline;  // who, what, where and when in one sentence; empty if stored by an older version
  std::string place;     // the accused: "node-3 (device 4, rank 28)"; empty: no host is accused
  std::string seen;      // host of the evidence: "node-3"; empty: unknown
  double confidence = 0;
  std::string owner;     // owner of the job: "user 1000", "host gpu-7"; empty: unknown
  std::string user;      // the job's only writer: "user 1000"; empty: none, several, or unknown
  bool vouched = false;  // the evidence is not from one user alone
  // The evidence is from the kernel, root or a service: a user's claim of progress does not resolve the
  // issue.
  bool of_host = false;
  // Of a job that runs again (`culprit run --retries`); else 0, empty and false.
  uint32_t failed_attempts = 0;  // so far
  std::string again = {};        // "runs again without node-3 (attempt 2 of 4)"; empty: no attempt follows
  bool undecided = false;        // an attempt runs, or its end is not reported yet
  // Of a question of the controller that waits for a person (core/recover); else empty and unknown.
  std::string decision = {};      // "d-0001"
  TimeNs answer_by_ns = kNoTime;  // without an answer until then nothing is done
  // The first line of evidence; file empty: none.
  struct Line {
    std::string host, file, text;
    uint64_t number = 0;  // 0: unknown
  } line;
};

// The place of the accused, else of the evidence; empty: unknown.
std::string where_of(const Fault& fault);

enum class Change : uint8_t { kFiring, kRevised, kResolved };
std::string_view to_string(Change change);  // "firing", "revised", "resolved"

// Why an issue is not firing any more.
enum class End : uint8_t {
  kNone,       // the issue is firing
  kWithdrawn,  // the verdict was withdrawn
  kRefuted,    // a person refuted the verdict
  kRecovered,  // the run went on, or ended as planned
  kLaterRun,   // a later run of the job makes progress
  kExpired,    // no update for a long time
  kForgotten,  // the daemon no longer knows the run
  kCalm,       // the storm is over
  kRepaired,   // a person repaired the fault
  // Of a question of the controller:
  kApproved,
  kDeclined,
  kUnanswered,  // its time is over
  kMoot,        // what it was about has changed
};
std::string_view sentence_of(End end);

// How urgent an issue is. An operator must act on hardware and platform faults; a program's fault is left to
// its author.
enum class Severity : uint8_t { kWarning, kCritical };
std::string_view to_string(Severity severity);  // "warning", "critical"

// What a person did about an issue that fires.
struct Handling {
  std::string acknowledged_by;  // empty: not acknowledged; otherwise no reminders are sent
  TimeNs acknowledged_ns = kNoTime;
  std::string silenced_by;
  TimeNs silent_until_ns = kNoTime;  // until then, only the end of the issue is sent
  std::string repaired_by;
  std::string answered_by = {};  // a question
};

// The part of an issue that a receiver read last.
struct Brief {
  std::string title, where, action;
  double confidence = 0;
  std::string again = {};
};

// State of an issue's messages to one receiver.
struct Delivery {
  enum class State : uint8_t {
    kHeld,    // waits for the end of a storm
    kSilent,  // waits for the end of a maintenance window or of a person's silence
    kSent,    // a message was created
  } state = State::kSent;
  uint32_t revision = 0;           // of the newest message
  bool dropped = false;            // the last message was removed from the outbox undelivered
  TimeNs made_ns = kNoTime;        // of the newest message
  std::optional<Brief> read = {};  // content of the newest message that the receiver accepted
  std::string change = {};         // what the newest accepted message revised
};

// One fault in one run, from its first verdict on, or a storm of them.
struct Issue {
  std::string key;
  Fault fault;                             // the fault as last announced
  std::string category, component;         // values of the first verdict: labels must not change
  Severity severity = Severity::kWarning;  // the highest so far
  TimeNs raised_ns = kNoTime;              // when it became critical after it had fired as a warning
  std::string storm;                       // of a storm: its receiver
  std::vector<std::string> members = {};   // of a storm: sentences of the most severe held issues
  uint64_t count = 0;                      // of a storm: number of issues
  uint32_t revision = 0;                   // number of changes; part of message ids
  TimeNs fired_ns = kNoTime, changed_ns = kNoTime, resolved_ns = kNoTime;
  End end = End::kNone;
  bool rearmed = false;  // of a repaired issue: its verdict ended since, so the same verdict is new
  Handling handling = {};
  std::string news = {};                            // reason of the newest message, if not a change
  std::map<std::string, Delivery> deliveries = {};  // by receiver

  bool firing() const { return end == End::kNone; }
};
// News of an issue for a reader: the reason of the message, and the change; either may be empty.
std::string news_of(const Issue& issue, const std::string& change);
// The reason of the issue's end, with the person: "alice repaired it".
std::string end_of(const Issue& issue);
std::string to_json(const Issue& issue);
Result<Issue> issue_from_json(std::string_view text);

// A message for one receiver. A message that is sent again keeps its `id`.
struct Message {
  enum class Kind : uint8_t {
    kFiring,
    kRevised,
    kResolved,
    kRecord,  // a record for an exporter: never replaced
    kLatest,  // a state for an exporter: replaced by a newer state; not stored on disk
  };
  int64_t row = 0;  // position in the order of all messages; 0: unknown
  std::string id;   // "KEY/REVISION"
  std::string receiver, issue;
  Kind kind = Kind::kFiring;
  TimeNs created_ns = kNoTime;
  std::string body;         // JSON of the issue when the message was created, or the record
  std::string change = {};  // of an undelivered revision: what the receiver does not know yet
};

}  // namespace culprit::alert
