#include "plughost/folders.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string_view>
#include <utility>

#include "base/limits.h"
#include "base/time.h"
#include "io/files.h"
#include "io/trusted_path.h"
#include "plughost/description.h"

namespace culprit::plughost {
namespace {

constexpr std::string_view kSuffix = ".so";

struct FoundFile {
  std::string name;
  PluginFile file;
};

bool is_trusted(const std::string& path, uid_t trusted_uid) {
  const auto opened = io::open_trusted_file(path, trusted_uid);
  if (opened) ::close(*opened);
  return opened.has_value();
}

void use(const FoundFile& found, PluginFiles& out) {
  const std::string& path = found.file.path;
  if (const auto at = out.by_name.find(found.name); at != out.by_name.end())
    out.errors_reported.push_back(
        fmt::format("{}: not used, as {} has the same name", path, at->second.path));
  else if (out.by_name.size() >= limits::kPluginsOnHost)
    out.errors_reported.push_back(
        fmt::format("{}: not used, as there are {} plugins already", path, out.by_name.size()));
  else
    out.by_name[found.name] = found.file;
}

}  // namespace

PluginFiles find_plugins(const std::vector<std::string>& folders, uid_t trusted_uid) {
  PluginFiles out;
  std::vector<FoundFile> untrusted;
  for (const std::string& folder : folders) {
    const auto names = io::real_files().list(folder);
    if (!names) {
      out.errors_reported.push_back("plugins: " + names.error().text);
      continue;
    }
    for (const std::string& file : *names) {
      if (!file.ends_with(kSuffix)) continue;
      out.any = true;
      FoundFile found;
      found.name = file.substr(0, file.size() - kSuffix.size());
      found.file.path = folder + "/" + file;
      const std::string& path = found.file.path;
      if (!is_plain_name(found.name)) {
        out.errors_reported.push_back(fmt::format("{}: the name of a plugin has only [a-z0-9_]", path));
        continue;
      }
      struct stat status;
      if (::stat(path.c_str(), &status) != 0) continue;  // gone again
      found.file.device = status.st_dev;
      found.file.inode = status.st_ino;
      found.file.size = static_cast<uint64_t>(status.st_size);
      found.file.changed_ns = status.st_ctim.tv_sec * kNsPerSecond + status.st_ctim.tv_nsec;
      if (is_trusted(path, trusted_uid))
        use(found, out);
      else
        untrusted.push_back(std::move(found));
    }
  }
  for (const FoundFile& found : untrusted) use(found, out);
  return out;
}

}  // namespace culprit::plughost
