// What several members of one `culprit run --retries --nodes N` exchange about an attempt, and what a member
// does while it waits for the others. A member is one `culprit run` on a host. Records travel as JSON in
// files (daemon/docs/formats.md); one with a wrong type, an invalid host name or too many hosts is rejected.
// Pure: time is an argument. Times are nanoseconds.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "app/run/attempt.h"
#include "app/run/devices.h"
#include "app/run/probe.h"
#include "base/status.h"
#include "base/time.h"
#include "core/recover/decide.h"

namespace culprit::app {

constexpr size_t kHostsMost = 4096;       // members of one run
constexpr size_t kRecordBytes = 4 << 20;  // of one record
constexpr size_t kGpusMost = 64;          // of one host
constexpr size_t kServicesMost = 16;      // that the next attempt waits for

// The next attempt, as decided.
struct AttemptPlan {
  uint32_t attempt = 1;
  uint32_t left = 0;               // attempts without progress that may follow it
  std::vector<std::string> hosts;  // by node rank; the first one is the master
  uint16_t port = 0;               // was free on the master
  std::string resume;              // checkpoint; empty: none
  std::optional<int64_t> resume_step;
  std::vector<std::string> without;  // UUIDs of GPUs that it runs without
  std::string revision;              // of the program, with --code; empty: unknown
  std::optional<uint32_t> rank_of(std::string_view host) const;
};

// How an attempt went on one host, or the answer of a spare that did not run it.
struct MemberRecord {
  std::string host;
  uint32_t member = 0;  // number given by the launcher, such as Slurm's
  uint16_t port = 0;    // free on this host, for the next attempt
  bool spare = false;
  int status = 0;            // exit status as in a shell
  bool interrupted = false;  // a signal from outside ended it: the job is not run again
  bool ended_by_us = false;  // ended because the attempt failed on another host
  std::string stuck;         // a process that cannot be ended; empty: none
  TimeNs begin_ns = kNoTime, end_ns = kNoTime;
  TimeNs age_ns = 0;  // from the command's end to this record
  VisibleGpus gpus;   // that the next attempt may use; empty without --min-gpus
  // The command's end by the clock of the shared file system. Not written: the reader sets it.
  TimeNs shared_end_ns = kNoTime;
};

// The command's end by one clock for all hosts, or kNoTime; else by this host's.
TimeNs comparable_end(const MemberRecord& end);

// The one decision about an attempt. Attempt 0 did not run: its decision begins the first attempt.
struct AgreedDecision {
  std::string by;                     // host of the member that made it
  Attempt attempt;                    // as the ledger has it
  std::vector<std::string> absent;    // hosts that did not answer, or have a stuck process
  bool interrupted = false;           // a signal from outside ended it
  AttemptPlan next;                   // without hosts: no attempt follows
  std::vector<ProbeTarget> services;  // the next attempt begins when these answer
};

std::string to_json(const MemberRecord& record);
std::string to_json(const AgreedDecision& decision);
Result<MemberRecord> member_record(std::string_view text);
Result<AgreedDecision> agreed_decision(std::string_view text);

// Hosts of the first attempt: ordered by member number and name, at most `nodes`.
std::vector<std::string> first_hosts(const std::map<std::string, MemberRecord>& joined, uint32_t nodes);

// The hosts of the next attempt. A spare takes the node rank of a host that is left out, so that all others
// keep theirs. Nothing: too few spares.
std::optional<std::vector<std::string>> next_hosts(const std::vector<std::string>& hosts,
                                                   const std::set<std::string>& without,
                                                   const std::vector<std::string>& spares);

// Restricts the advice to hosts of the attempt, by their member's names: logs may have a host's full name.
void name_members(RestartAdvice& advice, const std::vector<std::string>& hosts);

// The host that failed clearly before all others; empty: unknown.
std::string first_to_fail(const std::map<std::string, MemberRecord>& ends);

// What a waiting member knows.
struct AttemptView {
  std::vector<std::string> hosts;            // that run the attempt
  std::map<std::string, MemberRecord> ends;  // by host; answers of spares too
  std::set<std::string> lost;                // hosts without a sign of life for too long
  std::set<std::string> alive;               // hosts that have not ended and showed life just now
  bool deciding = false;                     // another member decides, and shows that it does
  TimeNs since_deciding = kNoTime;           // since another one last decided; kNoTime: none did
  uint32_t spares = 0;                       // spares that are expected to answer
  TimeNs since_failure = kNoTime;            // since the first failure or loss was seen; kNoTime: none
  TimeNs since_ends = kNoTime;               // since all hosts have ended or are lost; kNoTime: not yet
};

// Times after the first failure, derived from the time that the other members get to end.
struct Patience {
  explicit Patience(TimeNs ends);
  TimeNs stop_ns;      // then members that still run are asked to end
  TimeNs ends_ns;      // then the decision is made without them
  TimeNs late_ns;      // the same, if one of them shows life: it ends slowly
  TimeNs decider_ns;   // without a sign of a member that decides, another one does
  TimeNs answers_ns;   // for answers of spares
  TimeNs turn_ns;      // between the first member that decides, and the next one if there is no decision
  TimeNs ready_ns;     // for all hosts of the next attempt to begin it
  TimeNs decision_ns;  // without a decision for so long after it was due, a member gives up
};

bool has_failure(const AttemptView& view);
bool all_ended(const AttemptView& view);
// Time since the decision is due; kNoTime: not yet due.
TimeNs since_due(const AttemptView& view, const Patience& patience);

enum class WaitStep : uint8_t { kWait, kStop, kDecide, kGiveUp };
// `turn`: this member's number among those that may decide.
WaitStep wait_step(const AttemptView& view, const Patience& patience, size_t turn);

}  // namespace culprit::app
