#include "host_health/sources.h"

#include <algorithm>
#include <set>

#include "common/files.h"

namespace host {
namespace {

using health::split;
using health::words;

constexpr size_t kMountsMax = 128;

// mountinfo writes blanks of a path as \040.
std::string unescape(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\' || i + 3 >= text.size()) {
      out += text[i];
      continue;
    }
    out += char((text[i + 1] - '0') * 64 + (text[i + 2] - '0') * 8 + (text[i + 3] - '0'));
    i += 3;
  }
  return out;
}

bool can_fill_up(std::string_view type) {
  constexpr std::string_view kTypes[] = {"ext2", "ext3",  "ext4",   "xfs",       "btrfs", "zfs",
                                         "f2fs", "tmpfs", "nfs",    "nfs4",      "cifs",  "lustre",
                                         "gpfs", "ceph",  "beegfs", "glusterfs", "9p",    "overlay"};
  return std::find(std::begin(kTypes), std::end(kTypes), type) != std::end(kTypes) ||
         type.substr(0, 5) == "fuse.";
}

}  // namespace

std::optional<double> pressure(const std::string& text, const char* line) {
  for (const std::string_view each : split(text, '\n')) {
    const auto parts = words(each);
    if (parts.empty() || parts[0] != line) continue;
    for (const std::string_view part : parts) {
      if (part.substr(0, 6) == "avg60=") return health::real(part.substr(6));
    }
  }
  return std::nullopt;
}

std::optional<uint64_t> counter(const std::string& text, const char* name) {
  for (const std::string_view line : split(text, '\n')) {
    const auto parts = words(line);
    if (parts.size() == 2 && parts[0] == name) return health::number(parts[1]);
  }
  return std::nullopt;
}

std::vector<Mount> mounts(const std::string& mountinfo) {
  std::vector<Mount> found;
  std::set<std::string, std::less<>> devices;
  for (const std::string_view line : split(mountinfo, '\n')) {
    const auto parts = words(line);
    const auto dash = std::find(parts.begin(), parts.end(), "-");
    if (parts.size() < 10 || parts.end() - dash < 4 || !can_fill_up(dash[1])) continue;
    if (parts[3] != "/" && dash[1] != "nfs" && dash[1] != "nfs4") continue;  // a bind mount of a part
    if (found.size() >= kMountsMax || !devices.emplace(parts[2]).second) continue;
    Mount mount;
    mount.folder = unescape(parts[4]);
    mount.type = std::string(dash[1]);
    const auto options = split(parts[5], ','), of_device = split(dash[3], ',');
    mount.read_only = std::find(options.begin(), options.end(), "ro") != options.end() ||
                      std::find(of_device.begin(), of_device.end(), "ro") != of_device.end();
    found.push_back(std::move(mount));
  }
  return found;
}

std::map<std::string, Rpc> rpcs(const std::string& mountstats) {
  std::map<std::string, Rpc> found;
  Rpc* current = nullptr;
  bool operations = false;
  for (const std::string_view line : split(mountstats, '\n')) {
    const auto parts = words(line);
    if (parts.size() >= 8 && parts[0] == "device") {
      const auto fstype = std::find(parts.begin(), parts.end(), "fstype");
      const bool nfs = parts.end() - fstype > 1 && fstype[1].substr(0, 3) == "nfs" && fstype[1] != "nfsd";
      current = nfs && found.size() < kMountsMax ? &found[unescape(parts[4])] : nullptr;
      operations = false;
    }
    if (!current || parts.empty()) continue;
    // xprt: tcp port binds connects connect_time idle sends receives bad_xids requests_sum backlog_sum …
    if (parts[0] == "xprt:" && parts.size() >= 12) {
      const bool udp = parts[1] == "udp";  // lacks three of the numbers
      const size_t at = udp ? 4 : 7;
      current->sends += health::number(parts[at]).value_or(0);
      current->receives += health::number(parts[at + 1]).value_or(0);
      if (!udp) current->backlog += health::number(parts[11]).value_or(0);
    }
    if (parts[0] == "per-op") operations = true;
    // READ: operations transmissions major_timeouts …
    if (operations && parts.size() >= 8 && parts[0].back() == ':') {
      current->timeouts += health::number(parts[3]).value_or(0);
    }
  }
  return found;
}

std::optional<Task> task(const std::string& stat) {
  const size_t open = stat.find('('), close = stat.rfind(')');
  if (open == std::string::npos || close == std::string::npos || close < open) return std::nullopt;
  const auto parts = words(std::string_view(stat).substr(close + 1));
  if (parts.size() < 20) return std::nullopt;
  constexpr uint64_t kKernelThread = 0x00200000;  // PF_KTHREAD
  Task task;
  task.name = stat.substr(open + 1, close - open - 1);
  task.state = parts[0][0];
  task.kernel = (health::number(parts[6]).value_or(0) & kKernelThread) != 0;
  task.start = health::number(parts[19]).value_or(0);
  return task;
}

}  // namespace host
