// What a line with these values states about processes that meet in a rendezvous or barrier, or that submit
// tensors. A message may continue in the next lines with names alone. Each line is interpreted alone;
// meetings.h joins them. Pure; accepts any values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.h"
#include "core/detect/hang/line_reader.h"

namespace culprit::hang {

// The meeting of ranks that wait until all of them have submitted a tensor.
constexpr std::string_view kTensor = "a tensor";

// What a meeting counts.
enum class MeetingUnit : uint8_t { kRank, kTask };

struct MeetingLine {
  // A tensor: the ranks that submitted it, or those that did not.
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

// Whether values of such lines are read by the function below.
inline bool is_of_meeting(Observes what) { return what == Observes::kMeeting || what == Observes::kMembers; }

// Empty if the values contain none of this.
std::optional<MeetingLine> read_meeting_line(const LineValues& values);

}  // namespace culprit::hang
