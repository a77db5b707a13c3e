// Reads lines that count the processes at a rendezvous or barrier: torch's store, JAX's coordinator,
// Horovod's stalled tensors. A message may continue in the next lines with names alone. Each line is read
// alone; meetings.h joins them. Pure; accepts any text.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.h"

namespace culprit::hang {

// What a meeting counts.
enum class MeetingUnit : uint8_t { kRank, kTask };

struct MeetingLine {
  // A Horovod tensor: the ranks that submitted it, or those that did not.
  struct Tensor {
    std::string name;
    std::vector<uint32_t> there, missing;
  };

  bool opens = false;     // begins a message; false: continues the last message of its file
  bool starts = false;    // the meeting is the start of the job
  bool lost = false;      // the missing ranks had joined, and stopped answering
  bool cut = false;       // lists only some of the tensors
  bool labelled = false;  // its writer is the missing rank: the list's number was read as a line label
  MeetingUnit unit = MeetingUnit::kRank;
  std::string what;              // "the rendezvous", "barrier save_7"; empty: not in this line
  std::optional<uint32_t> rank;  // the waiting rank, if the line names it
  std::optional<uint32_t> came, all;
  std::vector<uint32_t> missing;  // by rank number
  std::vector<Tensor> tensors;
  std::optional<uint32_t> started;  // ranks that the launcher started; independent of any meeting
  TimeNs waited_ns = 0;
};

// Empty if the line contains none of this.
std::optional<MeetingLine> read_meeting_line(std::string_view text);

}  // namespace culprit::hang
