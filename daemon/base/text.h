// Untrusted text, made safe for terminals, HTML and JSON.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace culprit {

// Valid UTF-8: each invalid byte becomes U+FFFD. NUL and other control characters stay.
std::string to_utf8(std::string_view bytes);

// For terminals: valid UTF-8 with C0, C1 and bidirectional controls written as \xNN or \uNNNN; a tab stays.
std::string to_terminal(std::string_view bytes);

// Removes invisible characters (tags, zero-width, direction marks, variation selectors): they can hide
// instructions to a program. Adds the number removed to `left_out`. ASCII and invalid bytes stay.
std::string without_invisible(std::string_view bytes, size_t* left_out = nullptr);

// For HTML text and attribute values.
std::string to_html(std::string_view bytes);

// The longest prefix of at most `max` bytes that ends at a character, with "…" if something was cut.
std::string shorten(std::string_view text, size_t max);
// Beginning and end of the text, at most `max` bytes together; " … " replaces the middle.
std::string shorten_middle(std::string_view text, size_t max);

// Orders "node-2" before "node-10": runs of digits compare as numbers. A strict total order of different
// strings.
bool natural_less(std::string_view a, std::string_view b);

std::string_view trim(std::string_view text);
std::vector<std::string_view> split(std::string_view text, char separator);
// Like text.find(part, from), but faster for words in lines. libstdc++ stops at each occurrence of the first
// byte; libc's memmem first prepares a table.
size_t find_text(std::string_view text, std::string_view part, size_t from = 0);
// Writes the text to `to` with ASCII letters in lower case.
void lower_ascii(std::string_view text, char* to);
// "3 hosts", "1 host".
std::string counted(uint64_t n, std::string_view noun);
// "1.2 GB", decimal.
std::string format_bytes(uint64_t bytes);

}  // namespace culprit
