// Layout of text in a terminal: widths, wrapping, shortening, colour. The text must already be safe to show
// (base/text.h to_terminal). Pure; any thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace culprit::cli {

// Width of the text in columns: two for wide characters (CJK, emoji), none for combining ones.
size_t columns_of(std::string_view text);

// Lines of at most `width` columns, broken at spaces. A longer word gets a separate line and is not broken,
// so a path can be copied.
std::vector<std::string> wrap(std::string_view text, size_t width);
// Like wrap(), but breaks long words; for quoted lines.
std::vector<std::string> wrap_hard(std::string_view text, size_t width);

// At most `width` columns of the text around byte `focus`, with "…" at each cut.
std::string shorten_around(std::string_view text, size_t focus, size_t width);

// The text, padded with spaces to `width` columns.
std::string padded(std::string_view text, size_t width);

enum class Ink { kPlain, kBold, kDim, kAlarm, kCaution, kAccent };
// The text with escape sequences of the ink, if `color`.
std::string inked(std::string_view text, Ink ink, bool color);

}  // namespace culprit::cli
