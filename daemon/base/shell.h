// Untrusted names as words of commands that a person pastes into a shell. Pure; any thread.
#pragma once

#include <string>
#include <string_view>

namespace culprit {

// One word of a POSIX shell. Text with control, bidirectional or invalid bytes becomes $'…', which bash, zsh
// and ksh read. A text that begins with '-' stays an option to the command.
std::string shell_word(std::string_view text);

// The same as the last argument of a command: behind "-- " where the text begins with '-'.
std::string last_argument(std::string_view text);

}  // namespace culprit
