// An observation: what one source reports about one rank in one communicator; and exits of ranks. Sources:
// watchdog lines, Flight Recorder dumps, communication records, NCCL RAS, stacks. judge.h joins them.
//
// Unknown is empty, -1 or kNoTime: a source fills only what it observed. Sequence numbers count the
// operations of one group; their first number depends on the source, so they are compared only within a
// source. Ranks are global unless the name says otherwise. Times are nanoseconds since the epoch. Plain
// values that own all their data. Any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/time.h"
#include "model/rank_list.h"
#include "model/report.h"

namespace culprit::hang {

enum class ObservationSource : uint8_t { kWatchdog, kFlight, kRecords, kRas, kStack };

// A communicator. `key` is equal on all members: the process group's name or the communicator's hash; empty:
// not reported. Groups with equal keys and different members are different groups.
struct ObservedGroup {
  std::string key;
  std::string description;  // "default_pg", "tensor_parallel"
  RankList members;         // empty: unknown
  uint32_t size = 0;        // of the group; 0: unknown
  std::string local = {};   // its number within the process: not comparable between ranks
};

// The operation in which the rank waits, or which timed out.
struct ObservedCall {
  std::string op;                    // as the source spells it: "ALLREDUCE", "nccl:all_reduce"
  int64_t seq = -1;                  // within the group
  std::optional<uint64_t> in, out;   // elements, or bytes where the source has no elements
  std::string sizes;                 // shapes and types, where the source has them: "[[2,4]] float"
  std::string site;                  // line of the program: "train.py:120 in forward"
  bool entered = true;               // false: the rank is known not to be in it
  std::optional<bool> started = {};  // whether the device began the operation
};

// Where the process is, if the source observes it. kElsewhere: running or waiting outside of any collective.
enum class ObservedState : uint8_t {
  kUnknown,
  kInCall,      // inside `call`, or in a collective whose number is unknown
  kElsewhere,   // host code: data loader, lock, compilation
  kStorage,     // blocked in the kernel or in a file system
  kStopped,     // SIGSTOP, debugger, frozen cgroup
  kDeviceCall,  // in a call of the driver outside of a collective
};

struct Observation {
  ObservationSource source = ObservationSource::kWatchdog;
  // The rank as far as known: global, within the group, or only by host and process.
  std::optional<uint32_t> rank, group_rank;
  std::optional<std::string> host;
  std::optional<uint32_t> device, pid;
  ObservedGroup group;
  // Last number that the host enqueued, and last number that completed.
  std::optional<int64_t> enqueued, completed;
  std::string counted;  // the numbers count only this operation: "AllReduce" (RAS); empty: all operations
  std::optional<ObservedCall> call;
  ObservedState state = ObservedState::kUnknown;
  std::string doing;       // a phrase for kElsewhere and similar: "in torch/utils/data/dataloader.py:1122"
  bool timed_out = false;  // a watchdog gave up waiting
  TimeNs waited_ns = 0;    // time in `call` until `at_ns`; 0: unknown
  TimeNs at_ns = kNoTime;  // when the source observed it
  Evidence evidence;       // the line or file; empty text: none
};

enum class ExitKind : uint8_t {
  kKilled,        // by a signal
  kException,     // its program raised an exception or ran out of memory
  kExited,        // its process is gone, the reason is unknown
  kUnresponsive,  // does not answer, alive or not: stopped, or its host is gone
};

// A rank that exited or stopped answering: a candidate for the cause. Its peers are victims.
struct RankExit {
  ObservationSource source = ObservationSource::kWatchdog;
  ExitKind kind = ExitKind::kExited;
  std::optional<uint32_t> rank;
  std::optional<std::string> host;
  std::optional<uint32_t> device, pid;
  ObservedGroup group;    // the group whose members miss it; empty key: unknown
  std::string reason;     // a phrase: "signal 9 (SIGKILL)", "CUDA out of memory"
  bool by_peers = false;  // peers lost the connection to it, and give its address
  TimeNs at_ns = kNoTime;
  Evidence evidence;
};

}  // namespace culprit::hang
