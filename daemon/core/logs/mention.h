// How a part of a message stands in it: said by the writer, or only mentioned. Programs also print patterns
// that they look for, samples of their data, commands, source text, what did not happen, and what happened
// long ago. The frame around the part decides, never its own words. Pure; any thread.
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

// What around a part says that the message does not report it.
struct MentionFrame {
  uint8_t quotes = 0;   // quotes, lists and objects around it that no report introduces
  bool text = false;    // the message is a comment, a command or a difference of files
  bool denied = false;  // words before it deny it, or say that it is looked for
  bool past = false;    // a date before it is long over

  bool any() const { return quotes > 0 || text || denied || past; }
  // Whether there is more around it than usual.
  bool exceeds(const MentionFrame& usual) const {
    return quotes > usual.quotes || (text && !usual.text) || (denied && !usual.denied) ||
           (past && !usual.past);
  }
};

// `time_ns`: of the line; kNoTime: not known.
MentionFrame frame_of(const MessagePart& part, TimeNs time_ns);

// Whether the part stands within the message of a Python exception: "RuntimeError: the check found: ...".
// What another program said is quoted there.
bool is_in_exception(const MessagePart& part);

}  // namespace culprit::logs
