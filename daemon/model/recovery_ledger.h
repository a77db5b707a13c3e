// What the controller remembers: actions, attempts of jobs and machines (400 days). core/recover fills in
// these rows, records/ stores them. Plain values that own their data. Times are nanoseconds since the epoch,
// kNoTime if unknown.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/time.h"
#include "model/recovery.h"

namespace culprit {

// One action. Key: order.op. Stored and synced as kReserved before the executor sees the order.
struct ActionRecord {
  ActionOrder order;
  ActionState state = ActionState::kReserved;
  uint32_t attempt = 0;      // of the job, from 1
  uint32_t sent = 1;         // times that the order was given: 2 after a collector's restart at most
  std::string precondition;  // what must hold just before the action, one sentence without a full stop
  std::string before;        // the state that was read before it; empty: unknown
  std::string by;            // "culprit", or the person who approved or ordered it
  std::string root;          // of the fault: rule or detector and title
  std::string undone_by;     // kUndone: the person who returned the host; empty: the controller
  TimeNs reserved_ns = kNoTime;
  TimeNs settled_ns = kNoTime;  // when `state` became another than kReserved
  std::string detail;           // of the result
};

// One attempt of a job. Key: job, attempt.
struct AttemptRecord {
  ScheduledJob job;
  uint32_t attempt = 0;  // from 1
  TimeNs begin_ns = kNoTime, end_ns = kNoTime;
  TimeNs first_step_ns = kNoTime;     // first progress of this attempt
  TimeNs last_progress_ns = kNoTime;  // last progress of this attempt
  TimeNs saved_ns = kNoTime;          // last whole checkpoint of this attempt
  TimeNs detected_ns = kNoTime;       // the verdict, or the suspicion that led to the end
  TimeNs decided_ns = kNoTime;        // the decision
  std::string exit;                   // the scheduler's word: "FAILED", "NODE_FAIL"
  // Of the end, as far as the scheduler tells: code and signal, "1:0"; "NonZeroExitCode".
  std::optional<std::string> exit_code, exit_reason;
  std::string root;      // rule or detector and title; empty: no verdict
  std::string cause;     // class of the fault: "device", "software"
  std::string restart;   // the advice's kind: "elsewhere"
  std::string decision;  // "d-0001"; empty: none
  bool closed = false;   // the job is done: completed, cancelled, or its id is used again
  std::vector<std::string> hosts, excluded;
  std::optional<int64_t> progress_from, progress_to;
  std::string checkpoint;  // path from which it started; empty: unknown
  double lost_s = 0;       // time that no later attempt can use, from cost_of()
  // Root of the decision that a person declined for this attempt; "": of a stall.
  std::optional<std::string> declined;
};

// What is remembered of a host, or of a device of it. Key: host, device.
struct MachineRecord {
  std::string host;
  std::string device;  // empty: the host as a whole
  uint32_t suspected = 0, confirmed = 0, refuted = 0, isolated = 0, returned = 0, repaired = 0;
  TimeNs suspected_ns = kNoTime, isolated_ns = kNoTime, returned_ns = kNoTime, last_ns = kNoTime;
  std::string last_root;           // root of the latest suspicion
  std::string op;                  // the action that isolates it now; empty: not isolated by Culprit
  std::vector<TimeNs> isolations;  // the newest, ascending; at most 32
};

}  // namespace culprit
