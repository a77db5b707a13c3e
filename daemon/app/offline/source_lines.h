// Reads the lines around the evidence of a report from its files again, for a report that stands alone.
// Blocks, on the caller's thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "app/offline/pipeline.h"
#include "model/report.h"
#include "model/source_lines.h"

namespace culprit::app {

// Places of evidence whose lines are shown: of each diagnosis the first ones, of the verdict more.
std::vector<LinePlace> places_shown(const Report& report);

// The windows around places, joined where they touch, without their lines: `first`, `here`, and `lines` of
// the right number of empty texts. In order of file, host and line.
std::vector<SourceLines> windows_around(std::vector<LinePlace> places);

// Fills the windows from their files. Text read in total: at most `bytes_max`, so that a report of large
// files is not read twice in full. Windows that were not reached are left out, and `left_out` counts them.
// Stops at progress.stop.
struct WindowsRead {
  std::vector<SourceLines> windows;
  size_t left_out = 0;
};
constexpr uint64_t kContextBytes = uint64_t{2} << 30;
WindowsRead read_windows(std::vector<SourceLines> windows, const ReadProgress& progress,
                         uint64_t bytes_max = kContextBytes);

}  // namespace culprit::app
