#include "app/run/attempt_group.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <vector>

#include "base/text.h"
#include "io/descriptors.h"

namespace culprit::app {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kGroupPrefix = "culprit-";
constexpr size_t kGroupsMost = 4096;  // groups below that of a run
constexpr int kGroupDepth = 16;

std::string all_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

bool write_to(const std::string& path, std::string_view text) {
  const io::Descriptor file(::open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NOFOLLOW));
  return file.is_open() && ::write(file.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size());
}

// Calls for the folder and the groups below it, the deepest first.
void for_each_group(const std::string& folder, const std::function<void(const std::string&)>& call) {
  std::vector<std::string> all;
  std::error_code error;
  for (fs::recursive_directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    if (it.depth() >= kGroupDepth) it.disable_recursion_pending();
    std::error_code unread;
    if (it->symlink_status(unread).type() == fs::file_type::directory && all.size() < kGroupsMost)
      all.push_back(it->path().string());
  }
  std::ranges::for_each(all.rbegin(), all.rend(), call);
  call(folder);
}

}  // namespace

std::string own_group(std::string_view cgroup, std::string_view mountinfo) {
  std::string_view path;
  for (const std::string_view line : split(cgroup, '\n'))
    if (line.starts_with("0::/")) path = line.substr(3);
  // A path outside of the namespace begins with "/..".
  if (path.empty() || path.starts_with("/..") || path.ends_with(" (deleted)")) return {};
  for (const std::string_view line : split(mountinfo, '\n')) {
    const size_t dash = line.find(" - ");
    if (dash == line.npos || !line.substr(dash + 3).starts_with("cgroup2 ")) continue;
    const std::vector<std::string_view> fields = split(line.substr(0, dash), ' ');
    if (fields.size() < 5) continue;
    std::string_view inside = path;
    if (const std::string_view root = fields[3]; root != "/") {
      const bool below =
          inside.starts_with(root) && (inside.size() == root.size() || inside[root.size()] == '/');
      if (!below) continue;
      inside.remove_prefix(root.size());
    }
    return std::string(fields[4]) + (inside == "/" ? "" : std::string(inside));
  }
  return {};
}

std::string own_group() { return own_group(all_of("/proc/self/cgroup"), all_of("/proc/self/mountinfo")); }

std::optional<AttemptGroup> AttemptGroup::create(const std::string& own, const std::string& mark) {
  // A process may only move below a group whose list it may write.
  if (own.empty() || ::access((own + "/cgroup.procs").c_str(), W_OK) != 0) return std::nullopt;
  AttemptGroup out = left_by(own, mark);
  if (::mkdir(out.folder_.c_str(), 0755) != 0) return std::nullopt;
  const bool usable = ::access((out.folder_ + "/cgroup.kill").c_str(), W_OK) == 0 &&
                      ::access((out.folder_ + "/cgroup.procs").c_str(), W_OK) == 0;
  if (usable) return out;
  ::rmdir(out.folder_.c_str());
  return std::nullopt;
}

std::set<std::string> AttemptGroup::marks_in(const std::string& own) {
  std::set<std::string> out;
  std::error_code error;
  if (own.empty()) return out;
  for (fs::directory_iterator it(own, error), end; !error && it != end; it.increment(error)) {
    const std::string name = it->path().filename().string();
    struct stat info {};
    if (!name.starts_with(kGroupPrefix) || ::lstat(it->path().c_str(), &info) != 0) continue;
    if (S_ISDIR(info.st_mode) && info.st_uid == ::geteuid()) out.insert(name.substr(kGroupPrefix.size()));
  }
  return out;
}

AttemptGroup AttemptGroup::left_by(const std::string& own, const std::string& mark) {
  return AttemptGroup(own + "/" + std::string(kGroupPrefix) + mark);
}

bool AttemptGroup::enter() const { return write_to(folder_ + "/cgroup.procs", "0"); }

std::set<pid_t> AttemptGroup::processes() const {
  std::set<pid_t> out;
  for_each_group(folder_, [&](const std::string& group) {
    const std::string text = all_of(group + "/cgroup.procs");
    for (const std::string_view line : split(text, '\n')) {
      pid_t pid = 0;
      const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), pid);
      if (error == std::errc() && end == line.data() + line.size() && pid > 0) out.insert(pid);
    }
  });
  return out;
}

bool AttemptGroup::kill() const { return write_to(folder_ + "/cgroup.kill", "1"); }

bool AttemptGroup::remove() const {
  bool removed = false;
  for_each_group(folder_, [&](const std::string& group) { removed = ::rmdir(group.c_str()) == 0; });
  return removed;
}

}  // namespace culprit::app
