#include "io/installed.h"

#include <limits.h>
#include <unistd.h>

#include <algorithm>

namespace culprit::io {

std::optional<std::string> installed_helper(std::string_view name) {
  char path[PATH_MAX + 1];
  const ssize_t size = ::readlink("/proc/self/exe", path, PATH_MAX);
  std::string own(path, size > 0 ? static_cast<size_t>(size) : 0);
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
