// Quotes untrusted names for commands that a person pastes into a shell. Pure; any thread.
#pragma once

#include <string>
#include <string_view>

namespace culprit {

// One word of a POSIX shell. Text with control, bidirectional or invalid bytes becomes $'…', which bash, zsh
// and ksh understand. Text that begins with '-' is still taken as an option by the command.
std::string shell_word(std::string_view text);

// shell_word() for the last argument of a command: preceded by "-- " if the text begins with '-'.
std::string last_argument(std::string_view text);

}  // namespace culprit
