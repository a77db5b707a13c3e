#include "plughost/library.h"

#include <dlfcn.h>
#include <fmt/format.h>

namespace culprit::plughost {

Result<Library> open_library(int descriptor, std::string_view name) {
  // Loads the file that was checked, even if another file now has its name.
  const std::string path = fmt::format("/proc/self/fd/{}", descriptor);
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    std::string reason = dlerror();
    if (reason.starts_with(path + ": ")) reason.erase(0, path.size() + 2);
    return fail(ErrorCode::kInvalid, "it cannot be loaded: " + reason);
  }
  using Entry = const culprit_plugin* (*)();
  const auto entry = reinterpret_cast<Entry>(dlsym(library, "culprit_plugin_entry_v1"));
  if (!entry) return fail(ErrorCode::kInvalid, "it does not export culprit_plugin_entry_v1");
  const culprit_plugin* plugin = entry();
  auto description = read_description(plugin, name);
  if (!description) return tl::unexpected(description.error());
  return Library{plugin, std::move(*description)};
}

}  // namespace culprit::plughost
