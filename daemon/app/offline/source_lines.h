// Reads the lines around a report's evidence from its files again, for a self-contained report. Blocks, on
// the caller's thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "app/offline/pipeline.h"
#include "model/report.h"
#include "model/source_lines.h"

namespace culprit::app {

// Places of evidence whose lines are shown: the first ones of each diagnosis, and more of the verdict.
std::vector<LinePlace> places_shown(const Report& report);

// The windows around places, joined where they touch, without their texts: `first`, `here`, and the right
// number of empty `lines`. Sorted by file, host and line.
std::vector<SourceLines> windows_around(std::vector<LinePlace> places);

// Fills the windows from their files. Reads at most `bytes_max` of text, so that a report of large files is
// not read twice in full. Windows that were not reached are left out and counted in `left_out`. Stops at
// progress.stop.
struct WindowsRead {
  std::vector<SourceLines> windows;
  size_t left_out = 0;
};
constexpr uint64_t kContextBytes = uint64_t{2} << 30;
WindowsRead read_windows(std::vector<SourceLines> windows, const ReadProgress& progress,
                         uint64_t bytes_max = kContextBytes);

}  // namespace culprit::app
