// A line for matching: without characters that hide a word from a pattern but not from a reader. Pure; any
// thread; untrusted bytes.
#pragma once

#include <string>
#include <string_view>

namespace culprit::cli {

// - sequences for terminals (colours, titles) are left out;
// - fullwidth forms of ASCII become ASCII, as NFKC has it;
// - Cyrillic and Greek letters that look like Latin ones become these, in words that have both;
// - escapes of ASCII letters and digits ("%61", "\u0061", "\x61") become what they stand for, and those of
//   characters that no reader sees are left out.
// All else stays, also bytes that are no UTF-8.
std::string folded(std::string_view line);

}  // namespace culprit::cli
