// The ways in which Python programs draw a traceback: the interpreter's own, the framed one of an exception
// group, a box (rich), a notebook's. Each line is read without colours and margin. Pure; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace culprit::logs {

enum class TracebackStyle : uint8_t {
  kPlain,  // "Traceback (most recent call last):"
  kGroup,  // "+ Exception Group Traceback (most recent call last):", each line behind "| "
  kBox,    // "╭──── Traceback (most recent call last) ────╮", the exception below the box
  kNotebook,  // "ValueError      Traceback (most recent call last)", cells and arrows, the exception last
};

struct TracebackHead {
  TracebackStyle style = TracebackStyle::kPlain;
  bool original = false;  // "Original Traceback ...": the cause of the exception that stands above it
  std::string_view name;  // of the exception, as a notebook's head gives it; borrowed
};

// What a message or masked form says as the first line of a traceback.
std::optional<TracebackHead> traceback_head(std::string_view bare);

std::string without_colours(std::string_view text);

// A line of a traceback, without colours, without what frames it.
struct TracebackLine {
  std::string_view text;
  bool framed = false;    // it stood behind a margin
  bool indented = false;  // behind the margin
  bool rule = false;      // drawn: the border of a box, the line between the exceptions of a group
};
TracebackLine traceback_line(TracebackStyle style, std::string_view bare);

// Whether a traceback's first frame is the entry point of a program or process, or a notebook's cell. The
// traceback of an exception that a function caught and printed begins in that function.
bool is_entry(std::string_view frame);

// "-- Process 2 terminated with the following error:": the cause of the exception above it follows.
bool introduces_cause(std::string_view form);

// "ExceptionGroup: unhandled errors in a TaskGroup (2 sub-exceptions)": those that it holds follow.
bool is_group(std::string_view exception);

}  // namespace culprit::logs
