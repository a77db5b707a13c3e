// Reads lines that count who came to a meeting of processes: the store's rendezvous and barriers of torch,
// the barriers of JAX's coordinator, Horovod's stalled tensors. A message may go on in the next lines, with
// names alone. Each line is read alone; meetings.h joins them. Pure; accepts any text.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.h"

namespace culprit::hang {

// Whom a meeting counts.
enum class MeetingUnit : uint8_t { kRank, kTask };

struct MeetingLine {
  // A tensor of Horovod: who submitted it, or who did not.
  struct Tensor {
    std::string name;
    std::vector<uint32_t> there, missing;
  };

  bool opens = false;     // begins a message; else it goes on with the last one of its file
  bool starts = false;    // the meeting is the start of the job
  bool lost = false;      // the missing ones had come, and answer no more
  bool cut = false;       // names only some of the tensors
  bool labelled = false;  // its writer is the missing rank: the list's number was read as a label of the line
  MeetingUnit unit = MeetingUnit::kRank;
  std::string what;              // "the rendezvous", "barrier save_7"; empty: not in this line
  std::optional<uint32_t> rank;  // that waits, if the line names it
  std::optional<uint32_t> came, all;
  std::vector<uint32_t> missing;  // by number
  std::vector<Tensor> tensors;
  std::optional<uint32_t> started;  // ranks that the launcher started; says nothing of a meeting
  TimeNs waited_ns = 0;
};

// Nothing for a line without any of this.
std::optional<MeetingLine> read_meeting_line(std::string_view text);

}  // namespace culprit::hang
