// Finds keys of a rule's table in the text of its file, for errors that point at them. Lua tells the line of
// a call, not of a table's fields.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace culprit::rules {

// Units of LoadWork to look for a key, for each byte of the file.
constexpr uint64_t kFindingAByte = 8;

struct TextPlace {
  uint32_t line = 0, column = 0, width = 0;  // from 1
};

// Where `path` ("window.span") is written in the first `verb { ... }` at or below `line`; nothing where the
// table is not written out there. With `value`, the place of what stands behind the equals sign.
std::optional<TextPlace> find_field(std::string_view text, uint32_t line, std::string_view path, bool value);

// The n-th line, from 1, without its end; a very long one is cut.
std::string line_at(std::string_view text, uint32_t line);

// What stands before the text proper: the mark that some editors begin UTF-8 with.
std::string_view without_mark(std::string_view text);

}  // namespace culprit::rules
