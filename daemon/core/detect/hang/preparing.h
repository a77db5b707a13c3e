// Work before the training, from its lines and progress bars: tokenizing, packing, indexing. The other ranks
// wait for it in a barrier; no device takes part. Pure; accepts any text.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/time.h"

namespace culprit::hang {

// A line of such work: "Tokenizing Prompts:  92%|... [29:58<12:05, 41.59 examples/s]".
struct Preparing {
  std::string text;
  std::string name;              // title of the progress bar: "Tokenizing Prompts"
  int percent = -1;              // of the progress bar; -1: no bar, or the work is complete
  TimeNs elapsed_ns = 0;         // by its bar; 0: unknown
  std::optional<uint32_t> rank;  // the rank that wrote the line

  // Whether the work lasted most of a wait and was incomplete.
  bool lasts(TimeNs waited_ns) const { return percent >= 0 && waited_ns > 0 && 2 * elapsed_ns >= waited_ns; }
  // "tokenizing", "preparing data".
  std::string_view doing() const;
};

// Whether a line names such work.
bool names_preparation(std::string_view text);
// Parses a line for which the check above holds.
Preparing read_preparing(std::string_view text, std::optional<uint32_t> rank);
// "Rank 0 was still tokenizing (Map 88 %, 29:55) when the time-out of the others ended after 30 min". The
// line must have a progress bar. `limit_ns` 0: unknown.
std::string preparing_title(const Preparing& preparing, const std::string& who, TimeNs limit_ns);

}  // namespace culprit::hang
