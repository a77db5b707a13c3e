#include "app/run/disk_facts.h"

#include <fmt/format.h>
#include <sys/statvfs.h>

#include <algorithm>
#include <chrono>
#include <future>
#include <memory>
#include <set>
#include <thread>

#include "app/run/end_log.h"
#include "base/text.h"

namespace culprit::app {
namespace {

constexpr size_t kPaths = 4;
constexpr double kRoom = 0.02;  // share of the bytes: file systems have a reserve and round to blocks

bool wants_space(std::string_view line) {
  constexpr std::string_view kWords[] = {"No space left on device", "no space left on device",
                                         "Disk quota exceeded", "[Errno 28]", "[Errno 122]"};
  return std::ranges::any_of(kWords, [&](std::string_view w) { return line.find(w) != line.npos; });
}

// The absolute paths of a line, quoted or bare.
void paths_in(std::string_view line, std::set<std::string>& out) {
  constexpr std::string_view kBefore = " '\"<(=:`[", kEnds = " '\"<>)`],;\t\r";
  for (size_t at = 0; (at = line.find('/', at)) != line.npos && out.size() < kPaths;) {
    const size_t end = std::min(line.find_first_of(kEnds, at), line.size());
    const bool begins = at == 0 || kBefore.find(line[at - 1]) != kBefore.npos;
    std::string_view path = line.substr(at, end - at);
    while (path.ends_with(':') || path.ends_with('.')) path.remove_suffix(1);
    if (begins && path.size() > 1 && path[1] != '/') out.emplace(path);
    at = end;
  }
}

std::string facts_of(const std::string& path, const Room& room) {
  const std::string free =
      fmt::format("{} of {} free", format_bytes(room.bytes_free), format_bytes(room.bytes));
  if (room.inodes > 0 && room.inodes_free == 0)
    return fmt::format("the file system of {} has no free inode: 0 of {}; {}", path, room.inodes, free);
  if (static_cast<double>(room.bytes_free) < kRoom * static_cast<double>(room.bytes))
    return fmt::format("the file system of {} has no room: {}", path, free);
  return fmt::format("the file system of {} has room: {}", path, free);
}

}  // namespace

std::optional<Room> room_of(const std::string& path) {
  struct statvfs s {};
  if (::statvfs(path.c_str(), &s) != 0) return std::nullopt;
  return Room{s.f_blocks * s.f_frsize, s.f_bavail * s.f_frsize, s.f_files, s.f_favail};
}

std::string disk_lines(std::string_view tail, const std::string& folder, TimeNs now, const AskRoom& ask) {
  std::set<std::string> paths;
  bool wants = false;
  for (const std::string_view line : split(tail, '\n')) {
    if (!wants_space(line)) continue;
    wants = true;
    paths_in(line, paths);
  }
  if (!wants) return "";
  if (paths.empty()) paths.insert(folder);
  std::set<std::string> facts;
  for (std::string path : paths) {
    // The file itself could often not be created, so its nearest existing folder is queried.
    std::optional<Room> room;
    while (!(room = ask(path)) && path.size() > 1) path.resize(std::max<size_t>(1, path.rfind('/')));
    if (room) facts.insert(facts_of(path, *room));
  }
  std::string out;
  for (const std::string& fact : facts) out += fmt::format("{} culprit run: {}\n", run_time(now), fact);
  return out;
}

std::string disk_lines_within(TimeNs within, const std::string& tail, const std::string& folder, TimeNs now) {
  auto done = std::make_shared<std::promise<std::string>>();
  auto lines = done->get_future();
  std::thread([=] { done->set_value(disk_lines(tail, folder, now, room_of)); }).detach();
  if (lines.wait_for(std::chrono::nanoseconds(within)) != std::future_status::ready) return "";
  return lines.get();
}

}  // namespace culprit::app
