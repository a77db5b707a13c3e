// The controller's nouns: an action that core/recover decides, that respond/ carries out and whose result
// comes back as an input. Plain values.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/time.h"

namespace culprit {

// A job at its scheduler. An id may be used again, so the time of submission, or the UID, belongs to it.
struct ScheduledJob {
  std::string scheduler;       // "slurm", "kubernetes", "exec"
  std::string id;              // Slurm: the job's id; Kubernetes: "namespace/name" of the workload
  std::string uid;             // Kubernetes only
  TimeNs submit_ns = kNoTime;  // Slurm only
  uint32_t restarts = 0;       // Slurm: Restarts; Kubernetes: the label restart-attempt

  bool operator==(const ScheduledJob&) const = default;
};

// report.h has ActionKind: what a diagnosis advises. An order is what the controller decided.
enum class OrderKind : uint8_t {
  kIsolate,   // no new work on the target host: drain, taint
  kReturn,    // undo kIsolate on the target host
  kEndTasks,  // end the job's processes on all its hosts
  kRunAgain,  // start the job again without the excluded hosts
  kVerify,    // read whether the job runs, and where
};

struct ActionOrder {
  std::string op;        // hash of decision, kind and target: 16 hexadecimal digits
  std::string decision;  // "d-0001"
  OrderKind kind = OrderKind::kVerify;
  std::string target;                 // host of kIsolate and kReturn; else the job's id
  ScheduledJob job;                   // empty for kReturn
  std::vector<std::string> excluded;  // hosts, of kRunAgain and kVerify
  std::string code;                   // short name of the cause for the scheduler: "XID79"
  std::string reason;                 // one sentence without a full stop
  // kIsolate and kReturn: UUID or PCI address of one GPU of the host; empty: the whole host.
  std::string device = {};
  // When it was reserved, of an order that is given once more: its first steps may be done. kNoTime: the
  // first time.
  TimeNs repeats_ns = kNoTime;
};

enum class ActionState : uint8_t {
  kReserved,    // written before it is carried out
  kDone,        // carried out and read back
  kFailed,      // refused, or the precondition does not hold; nothing changed
  kAmbiguous,   // no answer, or the result differs from the order; counts as failed and is not repeated
  kSuperseded,  // another actor did or undid it meanwhile
  kAbandoned,   // found reserved after a restart, and too old to repeat
  kUndone,      // returned later
};

struct ActionResult {
  std::string op;
  ActionState state = ActionState::kAmbiguous;
  std::string detail;              // one sentence without a full stop: what was read, or why it failed
  std::vector<std::string> hosts;  // kVerify and kRunAgain: where the job runs now
  TimeNs at_ns = kNoTime;
  // kVerify and kRunAgain: the job's identity as read, for later orders. A requeue changes submit_ns and
  // restarts. Empty: the job was not read.
  ScheduledJob job = {};
};

}  // namespace culprit
