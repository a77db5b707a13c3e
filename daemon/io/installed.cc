#include "io/installed.h"

#include <errno.h>
#include <limits.h>
#include <unistd.h>

#include <algorithm>

namespace culprit::io {

namespace {

constexpr const char* kRunning = "/proc/self/exe";

std::string running() {
  char path[PATH_MAX + 1];
  const ssize_t size = ::readlink(kRunning, path, PATH_MAX);
  return {path, size > 0 ? static_cast<size_t>(size) : 0};
}

// Some packages start the program with a loader of their own, which is the executable then.
bool is_loader(std::string_view path) { return path.substr(path.rfind('/') + 1).starts_with("ld-linux"); }

}  // namespace

std::string own_program() {
  std::string path = running();
  return is_loader(path) ? program_invocation_name : path;
}

std::string own_executable() { return is_loader(running()) ? program_invocation_name : kRunning; }

std::optional<std::string> installed_helper(std::string_view name) {
  std::string own = own_program();
  own.resize(std::min(own.size(), own.rfind('/')));
  for (const std::string& folder :
       {own, own + "/../lib/culprit", own + "/../libexec/culprit", std::string("/usr/lib/culprit")}) {
    std::string program = folder + "/" + std::string(name);
    if (::access(program.c_str(), X_OK) == 0) return program;
  }
  return std::nullopt;
}

std::string helper_path(std::string_view name) {
  return installed_helper(name).value_or("/usr/lib/culprit/" + std::string(name));
}

}  // namespace culprit::io
