// Lines of a container runtime (CRI): "2023-10-06T00:17:09.669794202Z stdout F text". The runtime divides a
// program's long line (16 KiB) into parts with the tag P; the last part has F. Parts of standard output and
// standard error may alternate. The runtime writes the beginning of each line, so no program can forge one.
// Pure; any thread.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace culprit::logs {

struct RuntimeLine {
  size_t stream = 0;      // 0: standard output, 1: standard error
  bool partial = false;   // the program's line goes on in the stream's next line
  std::string_view text;  // what the program wrote
};
// `line` without its newline. nullopt: no line of a runtime.
std::optional<RuntimeLine> runtime_line(std::string_view line);

// False: no line of the text is a part. True proves nothing. Fast enough for each piece of each log.
bool may_have_parts(std::string_view text);

// The program's line that begins at the beginning of `lines`, whose first line is a part: the runtime's
// beginning of the first part, and the texts of all parts up to the last one, or up to the end of `lines`.
// `end`: offset behind the last part.
struct JoinedLine {
  std::string text;
  size_t end = 0;
};
JoinedLine join_parts(std::string_view lines);

// End of the last line up to which each part has its last part in `lines`. Parts with carriage returns, of a
// progress bar that may take an hour, wait for none.
size_t unfinished_parts(std::string_view lines);

}  // namespace culprit::logs
