// Text laid out in columns of a terminal: widths, wrapping, shortening, colour. Takes text that is already
// safe to show (base/text.h to_terminal). Pure; any thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace culprit::cli {

// Columns that the text takes: two for wide characters (CJK, emoji), none for combining ones.
size_t columns_of(std::string_view text);

// Lines of at most `width` columns, broken at spaces; a word that is longer stands alone and whole, so that a
// path can be copied.
std::vector<std::string> wrap(std::string_view text, size_t width);
// The same with long words broken, for quoted lines.
std::vector<std::string> wrap_hard(std::string_view text, size_t width);

// At most `width` columns of the text, with what stands at byte `focus` in view; "…" where something was
// cut.
std::string shorten_around(std::string_view text, size_t focus, size_t width);

// The text, filled with spaces up to `width` columns.
std::string padded(std::string_view text, size_t width);

enum class Ink { kPlain, kBold, kDim, kAlarm, kCaution, kAccent };
// With the escape sequences of the ink around it, where `color`.
std::string inked(std::string_view text, Ink ink, bool color);

}  // namespace culprit::cli
