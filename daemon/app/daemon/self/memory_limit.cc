#include "app/daemon/self/memory_limit.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <string_view>
#include <vector>

#include "ingest/file.h"

namespace culprit::app {
namespace {

constexpr uint64_t kLeastMemory = 16 << 20;         // minimum for engines: one job of usual size
constexpr uint64_t kUnlimited = uint64_t{1} << 60;  // version 1 has a number near 2^63 for "no limit"
constexpr size_t kGroupFileBytes = 64 << 10;

std::string file_text(const std::string& path) {
  std::string out;
  auto file = ingest::File::open(path);
  if (!file) return out;
  out.resize(kGroupFileBytes);
  out.resize(file->read_at(out.data(), out.size(), 0).bytes);
  return out;
}

std::optional<uint64_t> parse_count(std::string_view text) {
  uint64_t out = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  return error == std::errc() ? std::optional(out) : std::nullopt;
}

std::vector<std::string_view> split_lines(std::string_view text) {
  std::vector<std::string_view> out;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    out.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out;
}

// The lowest number in files of this name, from the group at `path` up to `root`.
std::optional<uint64_t> lowest(const std::string& root, std::string path, const char* name) {
  std::optional<uint64_t> out;
  for (;;) {
    const auto limit = parse_count(file_text(root + path + "/" + name));
    if (limit && *limit < kUnlimited) out = std::min(out.value_or(*limit), *limit);
    if (path.empty()) return out;
    path.resize(path.rfind('/') == path.npos ? 0 : path.rfind('/'));
  }
}

// Whether "memory" is one of the controllers ("cpu,memory").
bool has_memory(std::string_view controllers) {
  while (!controllers.empty()) {
    const size_t end = std::min(controllers.find(','), controllers.size());
    if (controllers.substr(0, end) == "memory") return true;
    controllers.remove_prefix(std::min(end + 1, controllers.size()));
  }
  return false;
}

}  // namespace

MemoryLimit memory_limit(const std::string& proc, const std::string& groups) {
  const auto pages = static_cast<uint64_t>(std::max(0L, ::sysconf(_SC_PHYS_PAGES)));
  MemoryLimit out{pages * static_cast<uint64_t>(::sysconf(_SC_PAGESIZE)), false};
  const std::string own = file_text(proc + "/self/cgroup");
  for (const std::string_view line : split_lines(own)) {  // "0::/system.slice/culpritd.service"
    const size_t first = line.find(':');
    const size_t second = first == line.npos ? line.npos : line.find(':', first + 1);
    if (second == line.npos) continue;
    const std::string_view controllers = line.substr(first + 1, second - first - 1);
    std::string path(line.substr(second + 1));
    if (path == "/") path.clear();
    std::optional<uint64_t> limit;
    if (controllers.empty()) limit = lowest(groups, path, "memory.max");
    if (has_memory(controllers)) limit = lowest(groups + "/memory", path, "memory.limit_in_bytes");
    if (limit && *limit < out.bytes) out = {*limit, true};
  }
  return out;
}

uint64_t engine_memory(uint64_t configured, const MemoryLimit& limit) {
  const uint64_t part = limit.of_group ? limit.bytes / 2 : limit.bytes / 16;
  return std::max(kLeastMemory, configured > 0 ? configured : part);
}

uint64_t oom_kills(const std::string& proc) {
  const std::string text = file_text(proc + "/vmstat");
  constexpr std::string_view kName = "oom_kill ";
  for (const std::string_view line : split_lines(text))
    if (line.starts_with(kName)) return parse_count(line.substr(kName.size())).value_or(0);
  return 0;
}

}  // namespace culprit::app
