// Where a helper program of ours is: in the folder of the running program, or where a package puts it.
// Blocks for a moment; any thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace culprit::io {

// None: there is no such program that this process may run.
std::optional<std::string> installed_helper(std::string_view name);

// The path, also where nothing is, for an error that names it.
std::string helper_path(std::string_view name);

}  // namespace culprit::io
