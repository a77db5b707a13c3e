// The nouns of alerts: a fault that a verdict names, the issue that people hear of, and the messages about
// it. Plain values that own all their data; their JSON form is what the daemon keeps on the disk.
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

// The standing verdict of a run. Texts are untrusted and of limited length.
struct Fault {
  std::string job;
  uint32_t run = 0;
  std::string diagnosis;  // its id within the run
  std::string source;     // what found it: "rule:nvidia.xid.79", "comm:slowdown"
  std::string title, category, component, symptom, action, remedy;
  std::vector<std::string> hosts;    // accused ones
  std::vector<std::string> targets;  // of the action
  std::vector<std::string> why;
  std::string headline;  // who, what, where and when in one sentence; empty: of an older version
  std::string place;     // of the accused: "node-3 (device 4, rank 28)"; empty: no host is accused
  std::string seen;      // where the evidence was seen: "node-3"; empty: no place is known
  double confidence = 0;
  std::string owner;     // of the job: "user 1000", "host gpu-7"; empty: not known
  std::string user;      // who alone writes for the job: "user 1000"; empty: none, several, or not known
  bool vouched = false;  // it does not rest on the word of a user alone
  // The kernel, root or a service said it: no user's word that the job goes on resolves it.
  bool of_host = false;
  // The first line of evidence; file empty: none.
  struct Line {
    std::string host, file, text;
    uint64_t number = 0;  // 0: unknown
  } line;
};

// Where it is: of the accused, else where it was seen; empty: no place is known.
std::string where_of(const Fault& fault);

enum class Change : uint8_t { kFiring, kRevised, kResolved };
std::string_view to_string(Change change);  // "firing", "revised", "resolved"

// Why an issue is not firing any more.
enum class End : uint8_t {
  kNone,       // it fires
  kWithdrawn,  // the verdict was withdrawn
  kRefuted,    // a person called it wrong
  kRecovered,  // the run went on, or ended as planned
  kLaterRun,   // a later run of the job goes on
  kExpired,    // nothing was heard of it for long
  kForgotten,  // the daemon no longer knows the run
  kCalm,       // of a storm: it is over
  kRepaired,   // a person repaired it
};
std::string_view sentence_of(End end);

// How urgent an issue is. Hardware and platforms wait for an operator; a program waits for its author.
enum class Severity : uint8_t { kWarning, kCritical };
std::string_view to_string(Severity severity);  // "warning", "critical"

// What a person did about an issue that fires.
struct Handling {
  std::string acknowledged_by;  // empty: not acknowledged; else no reminder is sent
  TimeNs acknowledged_ns = kNoTime;
  std::string silenced_by;
  TimeNs silent_until_ns = kNoTime;  // until then only its end is sent
  std::string repaired_by;
};

// What a receiver read last of an issue.
struct Brief {
  std::string title, where, action;
  double confidence = 0;
};

// What one receiver knows of an issue.
struct Delivery {
  enum class State : uint8_t {
    kHeld,    // waits for the end of a storm
    kSilent,  // waits for the end of a maintenance window or of a person's silence
    kSent,    // a message was made
  } state = State::kSent;
  uint32_t revision = 0;           // of the newest message
  bool dropped = false;            // the last message that left the outbox was given up
  TimeNs made_ns = kNoTime;        // of the newest message
  std::optional<Brief> read = {};  // by the newest message that the receiver took
  std::string change = {};         // what that message revised
};

// One fault in one run, from its first verdict on, or a storm of them.
struct Issue {
  std::string key;
  Fault fault;                             // as last announced
  std::string category, component;         // at first: labels that never change
  Severity severity = Severity::kWarning;  // the highest so far
  TimeNs raised_ns = kNoTime;              // when it became critical after it had fired as a warning
  std::string storm;                       // of a storm: its receiver
  std::vector<std::string> members = {};   // of a storm: sentences, the gravest ones that are held
  uint64_t count = 0;                      // of a storm: issues
  uint32_t revision = 0;                   // counts the changes; names messages
  TimeNs fired_ns = kNoTime, changed_ns = kNoTime, resolved_ns = kNoTime;
  End end = End::kNone;
  bool rearmed = false;  // of a repaired one: its verdict went since, so the same one is news
  Handling handling = {};
  std::string news = {};                            // why its newest message was made, if not for a change
  std::map<std::string, Delivery> deliveries = {};  // by receiver

  bool firing() const { return end == End::kNone; }
};
// What is new of an issue for a reader: why the message was made, and what changed; either may be empty.
std::string news_of(const Issue& issue, const std::string& change);
// Why it is over, with who said so: "alice repaired it".
std::string end_of(const Issue& issue);
std::string to_json(const Issue& issue);
Result<Issue> issue_from_json(std::string_view text);

// What is due to one receiver. `id` is the same whenever it is sent again.
struct Message {
  enum class Kind : uint8_t {
    kFiring,
    kRevised,
    kResolved,
    kRecord,  // a record for an exporter: nothing replaces it
    kLatest,  // a state for an exporter: the newest replaces it; not kept on the disk
  };
  int64_t row = 0;  // its place in the order of all messages; 0: not known yet
  std::string id;   // "KEY/REVISION"
  std::string receiver, issue;
  Kind kind = Kind::kFiring;
  TimeNs created_ns = kNoTime;
  std::string body;         // JSON of the issue at that time, or the record
  std::string change = {};  // of a revision that is on its way: what its receiver does not know yet
};

}  // namespace culprit::alert
