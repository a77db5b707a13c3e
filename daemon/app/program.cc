#include "app/program.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "io/installed.h"

namespace culprit::app {

Error become_program(std::string_view name, const std::vector<std::string>& words) {
  const auto path = io::installed_helper(name);
  if (!path)
    return {ErrorCode::kNotFound,
            fmt::format("the program {} is not installed: it belongs next to culprit, or "
                        "in /usr/lib/culprit",
                        name)};
  std::vector<std::string> own(words);
  own.insert(own.begin(), std::string(name));
  std::vector<char*> arguments;
  for (std::string& word : own) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  ::execv(path->c_str(), arguments.data());
  return {ErrorCode::kIo, fmt::format("{}: {}", *path, std::generic_category().message(errno))};
}

}  // namespace culprit::app
