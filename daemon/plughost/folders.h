// The libraries in the folders of plugins. Blocking; any thread.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace culprit::plughost {

// A library in a folder: another identity is another version.
struct PluginFile {
  std::string path;
  uint64_t device = 0, inode = 0, size = 0;
  int64_t changed_ns = 0;
  bool operator==(const PluginFile&) const = default;
};

struct PluginFiles {
  std::map<std::string, PluginFile> by_name;  // limits::kPluginsOnHost of them at most
  // A sentence for each file that is not used, and for each folder that cannot be read.
  std::vector<std::string> errors_reported;
  bool any = false;  // a file *.so, used or not
};

// Of a name that is in several folders, the first file counts. Files that an untrusted user could change
// (io/trusted_path.h) count after all others, so that they push none out: they are listed to be refused.
PluginFiles find_plugins(const std::vector<std::string>& folders, uid_t trusted_uid);

}  // namespace culprit::plughost
