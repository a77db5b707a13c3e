#include "app/program.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>

#include "io/installed.h"

namespace culprit::app {
namespace {

void execute(const std::string& path, std::vector<std::string> words) {
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  ::execv(path.c_str(), arguments.data());
}

}  // namespace

Error become_program(std::string_view name, const std::vector<std::string>& words) {
  const auto path = io::installed_helper(name);
  if (!path)
    return {ErrorCode::kNotFound,
            fmt::format("the program {} is not installed: it belongs next to culprit, or "
                        "in /usr/lib/culprit",
                        name)};
  std::vector<std::string> own(words);
  own.insert(own.begin(), std::string(name));
  execute(*path, std::move(own));
  return {ErrorCode::kIo, fmt::format("{}: {}", *path, std::generic_category().message(errno))};
}

void start_again(const std::vector<std::string>& words) { execute(io::own_executable(), words); }

}  // namespace culprit::app
