// Decides whether a message reports a part of its text or only mentions it. Programs also print patterns that
// they search for, samples of their data, commands, source text, negated statements, and past events. The
// frame around the part decides, never its own words. Pure; any thread.
#pragma once

#include <cstddef>
#include <string_view>

#include "base/time.h"

namespace culprit::logs {

// A part of a message that a rule matched: [begin, end).
struct MessagePart {
  std::string_view message;
  size_t begin = 0, end = 0;
};

// Signs around a part that the message does not report it.
struct MentionFrame {
  uint8_t quotes = 0;   // quotes, lists and objects around it that no report introduces
  bool text = false;    // the message is a comment, a shell command or a diff
  bool denied = false;  // words before the part deny it, or show that a program searches for it
  bool past = false;    // a date before the part is long past

  bool any() const { return quotes > 0 || text || denied || past; }
  // Whether the frame has more signs than the usual one.
  bool exceeds(const MentionFrame& usual) const {
    return quotes > usual.quotes || (text && !usual.text) || (denied && !usual.denied) ||
           (past && !usual.past);
  }
};

// `time_ns`: time of the line; kNoTime: unknown.
MentionFrame frame_of(const MessagePart& part, TimeNs time_ns);

// Whether the part is within the message of a Python exception: "RuntimeError: the check found: ...". Such a
// message quotes another program.
bool is_in_exception(const MessagePart& part);

}  // namespace culprit::logs
