// Finds the keys of a rule's table in the text of its file, for the position of errors. Lua gives the line of
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

// The position of `path` ("window.span") in the first `verb { ... }` at or after `line`; none if the table is
// not a literal there. With `value`: the position after the equals sign.
std::optional<TextPlace> find_field(std::string_view text, uint32_t line, std::string_view path, bool value);

// Line number `line`, from 1, without its end; very long lines are cut.
std::string line_at(std::string_view text, uint32_t line);

// Skips the byte order mark of UTF-8.
std::string_view without_mark(std::string_view text);

}  // namespace culprit::rules
