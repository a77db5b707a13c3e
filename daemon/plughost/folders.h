// The libraries in the folders of plugins. Blocking; any thread.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace culprit::plughost {

// A library in a folder. A changed identity means another version.
struct PluginFile {
  std::string path;
  uint64_t device = 0, inode = 0, size = 0;
  int64_t changed_ns = 0;
  bool operator==(const PluginFile&) const = default;
};

struct PluginFiles {
  std::map<std::string, PluginFile> by_name;  // limits::kPluginsOnHost of them at most
  // One sentence per unused file and per unreadable folder.
  std::vector<std::string> errors_reported;
  bool any = false;  // a file *.so, used or not
};

// If several folders have a file of the same name, the first one is used. Files that an untrusted user
// could change (io/trusted_path.h) come after all others, so that they replace none; they are listed in
// order to be refused.
PluginFiles find_plugins(const std::vector<std::string>& folders, uid_t trusted_uid);

}  // namespace culprit::plughost
