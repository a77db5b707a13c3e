// What one source says of one rank in one communicator: an observation. And that a rank left: a exit.
// Watchdog lines, Flight Recorder dumps, communication records, NCCL RAS and stacks all give them; judge.h
// joins them.
//
// Unknown is empty, -1 or kNoTime: a source fills what it saw and guesses nothing. Sequence numbers count the
// operations of one group from the number that the source uses; the hang state compares them only within a
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

// A communicator. `key` is equal on all members: the name of the process group, the hash of the communicator.
// Empty: the source does not say. Groups with one key and other members are different groups.
struct ObservedGroup {
  std::string key;
  std::string description;  // "default_pg", "tensor_parallel"
  RankList members;         // empty: unknown
  uint32_t size = 0;        // of the group; 0: unknown
  std::string local = {};   // its number within the process: says nothing to other ranks
};

// The operation in which the rank waits, or which timed out.
struct ObservedCall {
  std::string op;                    // as the source spells it: "ALLREDUCE", "nccl:all_reduce"
  int64_t seq = -1;                  // within the group
  std::optional<uint64_t> in, out;   // elements, or bytes where the source has no elements
  std::string sizes;                 // shapes and types, where the source has them: "[[2,4]] float"
  std::string site;                  // line of the program: "train.py:120 in forward"
  bool entered = true;               // false: the rank is known not to be in it
  std::optional<bool> started = {};  // the device began it
};

// Where the process is, if the source sees it. kElsewhere: running or waiting outside of any collective.
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
  // The rank, as far as known: global, or of the group, or only by host and process.
  std::optional<uint32_t> rank, group_rank;
  std::optional<std::string> host;
  std::optional<uint32_t> device, pid;
  ObservedGroup group;
  // Last number that the host handed over, and last number that ended.
  std::optional<int64_t> enqueued, completed;
  std::string counted;  // the numbers count only this operation: "AllReduce" (RAS); empty: all operations
  std::optional<ObservedCall> call;
  ObservedState state = ObservedState::kUnknown;
  std::string doing;       // a phrase for kElsewhere and the like: "in torch/utils/data/dataloader.py:1122"
  bool timed_out = false;  // a watchdog gave up waiting
  TimeNs waited_ns = 0;    // time in `call` until `at_ns`; 0: unknown
  TimeNs at_ns = kNoTime;  // when the source saw it
  Evidence evidence;       // the line or file; empty text: none
};

enum class ExitKind : uint8_t {
  kKilled,        // by a signal
  kException,     // its program raised an exception or ran out of memory
  kExited,        // its process is gone, the reason is unknown
  kUnresponsive,  // alive or not, it does not answer: stopped, or its host is gone
};

// A rank that left, or answers no more: a candidate for the cause. Its peers are victims.
struct RankExit {
  ObservationSource source = ObservationSource::kWatchdog;
  ExitKind kind = ExitKind::kExited;
  std::optional<uint32_t> rank;
  std::optional<std::string> host;
  std::optional<uint32_t> device, pid;
  ObservedGroup group;    // whose members miss it; empty key: not known
  std::string reason;     // a phrase: "signal 9 (SIGKILL)", "CUDA out of memory"
  bool by_peers = false;  // peers lost the connection to it, and name it by an address
  TimeNs at_ns = kNoTime;
  Evidence evidence;
};

}  // namespace culprit::hang
