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

namespace culprit::respond {

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
  std::string place;     // "node-3 (device 4, rank 28)"; empty: no place is known
  double confidence = 0;
  std::string owner;     // of the job: "user 1000", "host gpu-7"; empty: not known
  bool vouched = false;  // it does not rest on the word of a user alone
  // The first line of evidence; file empty: none.
  struct Line {
    std::string host, file, text;
    uint64_t number = 0;  // 0: unknown
  } line;
};

// The same for all revisions of one fault in one run; 16 hex digits.
std::string issue_key(const Fault& fault);
// A host is to be isolated, or more than a user's word stands for it. No storm of others holds it.
bool is_grave(const Fault& fault);
// Which one a person has to hear of first.
bool graver(const Fault& a, const Fault& b);
// Whether a person would read the two as different news.
bool differs(const Fault& a, const Fault& b);

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
};
std::string_view sentence_of(End end);

// What one receiver knows of an issue.
struct Delivery {
  enum class State : uint8_t {
    kHeld,    // waits for the end of a storm
    kSilent,  // waits for the end of a maintenance window
    kSent,    // a message was made
  } state = State::kSent;
  uint32_t revision = 0;  // of the newest message
  bool dropped = false;   // the last message that left the outbox was given up
};

// One fault in one run, from its first verdict on, or a storm of them.
struct Issue {
  std::string key;
  Fault fault;                            // as last announced
  std::string category, component;        // at first: labels that never change
  std::string storm;                      // of a storm: its receiver
  std::vector<std::string> members = {};  // of a storm: sentences, the gravest ones that are held
  uint64_t count = 0;                     // of a storm: issues
  uint32_t revision = 0;                  // counts the changes; names messages
  TimeNs fired_ns = kNoTime, changed_ns = kNoTime, resolved_ns = kNoTime;
  End end = End::kNone;
  std::map<std::string, Delivery> deliveries = {};  // by receiver

  bool firing() const { return end == End::kNone; }
};
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
  std::string body;  // JSON of the issue at that time, or the record
};

}  // namespace culprit::respond
