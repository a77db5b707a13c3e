// Path of the running program, and of one of our helper programs: in the folder of the running program, or
// where a package installs it. Blocks briefly; any thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace culprit::io {

// Where the running program lies: its script, if a package starts it with a loader of its own.
std::string own_program();

// What starts the running program again, even after an upgrade replaced its file.
std::string own_executable();

// nullopt: no such program that this process may run.
std::optional<std::string> installed_helper(std::string_view name);

// The path even if no program is there, for error messages.
std::string helper_path(std::string_view name);

}  // namespace culprit::io
