// Layouts of Python tracebacks: the interpreter's, the framed one of an exception group, a box (rich), a
// notebook's. Lines are read without colours and margin. Pure; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "model/code_place.h"

namespace culprit::logs {

enum class TracebackStyle : uint8_t {
  kPlain,  // "Traceback (most recent call last):"
  kGroup,  // "+ Exception Group Traceback (most recent call last):", each line after "| "
  kBox,    // "╭──── Traceback (most recent call last) ────╮", the exception below the box
  kNotebook,  // "ValueError      Traceback (most recent call last)", cells and arrows, the exception last
};

struct TracebackHead {
  TracebackStyle style = TracebackStyle::kPlain;
  bool original = false;  // "Original Traceback ...": the cause of the exception above it
  std::string_view name;  // the exception in a notebook's first line; borrowed
};

// Parses a message or masked form as the first line of a traceback.
std::optional<TracebackHead> traceback_head(std::string_view bare);

std::string without_colours(std::string_view text);

// A line of a traceback, without colours and frame.
struct TracebackLine {
  std::string_view text;
  bool framed = false;    // it had a margin
  bool indented = false;  // indented after the margin
  bool rule = false;      // a drawn line: the border of a box, or a separator in an exception group
};
TracebackLine traceback_line(TracebackStyle style, std::string_view bare);

// Whether a traceback's first frame is the entry point of a program or process, or a notebook's cell. If a
// function caught and printed the exception, the traceback begins in that function.
bool is_entry(std::string_view frame);

// The place that a frame names: "File "a.py", line 4, in f" of the interpreter and of faulthandler, or
// "/a/b.py:4 in f" of a box.
std::optional<CodePlace> frame_place(std::string_view frame);

// Whether the code at the place is the user's: no installed package, no part of Python, no launcher.
bool is_own_code(const CodePlace& place);

// "-- Process 2 terminated with the following error:": the cause of the exception above it follows.
bool introduces_cause(std::string_view form);

// "ExceptionGroup: unhandled errors in a TaskGroup (2 sub-exceptions)": its members follow.
bool is_group(std::string_view exception);

}  // namespace culprit::logs
