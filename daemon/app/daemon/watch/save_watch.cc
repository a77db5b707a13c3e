#include "app/daemon/watch/save_watch.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <memory>
#include <string_view>
#include <utility>

namespace culprit::app {
namespace {

// Reports come .3 s apart: a log of a training job writes far less in that time, and a save far more.
constexpr uint64_t kSaveBytes = 1 << 20;
constexpr size_t kFolders = 1024;
constexpr size_t kNames = 16'384;  // looked at in a folder

struct Listing {
  std::map<uint32_t, uint64_t> bytes;  // by owner
  std::set<std::string> subfolders;
};

std::optional<Listing> list(const std::string& folder) {
  const std::unique_ptr<DIR, int (*)(DIR*)> names(::opendir(folder.c_str()), ::closedir);
  if (!names) return std::nullopt;
  Listing out;
  for (size_t n = 0; n < kNames; ++n) {
    const dirent* name = ::readdir(names.get());
    if (name == nullptr) break;
    struct stat info {};
    if (::fstatat(::dirfd(names.get()), name->d_name, &info, AT_SYMLINK_NOFOLLOW) != 0) continue;
    const std::string_view text = name->d_name;
    if (S_ISDIR(info.st_mode) && text != "." && text != "..") out.subfolders.emplace(text);
    if (S_ISREG(info.st_mode)) out.bytes[info.st_uid] += static_cast<uint64_t>(info.st_size);
  }
  return out;
}

}  // namespace

SaveWatch::SaveWatch(io::Env& env, TimeNs quiet_ns, std::function<void()> changed)
    : env_(env),
      quiet_(env.timer([this] { end_saves(); })),
      quiet_ns_(quiet_ns),
      changed_(std::move(changed)) {
  auto watch = env.folder_watch([this](const std::string& folder) { look(folder); });
  if (watch)
    watch_ = std::move(*watch);
  else
    unwatched_ = tl::unexpected(watch.error());
}

Status SaveWatch::add(const std::string& folder) {
  if (!watch_) return unwatched_;
  if (folders_.size() >= kFolders) return fail(ErrorCode::kLimit, folder + ": too many folders");
  return watch_->add(folder);
}

// A folder that appeared below a watched one stays, as its first bytes may come much later, while there is
// room for more.
Status SaveWatch::watch(const std::set<std::string>& folders) {
  const bool full = folders_.size() > kFolders / 2;
  std::erase_if(folders_, [&](const auto& entry) {
    const std::string& path = entry.first;
    const bool stays = folders.contains(path) || (!full && folders.contains(path.substr(0, path.rfind('/'))));
    if (!stays) watch_->remove(path);
    return !stays;
  });
  Status out;
  for (const std::string& folder : folders) {
    if (folders_.contains(folder)) continue;
    const Status added = add(folder);
    if (!added && added.error().code != ErrorCode::kNotFound) out = added;
    if (!added) continue;
    if (auto now = list(folder)) folders_[folder] = {now->bytes, std::move(now->subfolders)};
  }
  return out;
}

void SaveWatch::look(const std::string& folder) {
  const auto known = folders_.find(folder);
  if (known == folders_.end()) return;
  auto now = list(folder);
  if (!now) return void(folders_.erase(known));
  const std::map<uint32_t, uint64_t> before = std::exchange(known->second.bytes, now->bytes);
  for (const auto& [uid, bytes] : now->bytes) {
    const auto at = before.find(uid);
    if (bytes >= (at == before.end() ? 0 : at->second) + kSaveBytes) grew(uid);
  }
  const std::set<std::string> old = std::exchange(known->second.subfolders, now->subfolders);
  for (const std::string& name : now->subfolders) {
    const std::string path = folder + "/" + name;
    if (old.contains(name) || folders_.contains(path) || !add(path)) continue;
    folders_[path] = {};
    look(path);
  }
}

void SaveWatch::grew(uint32_t uid) {
  const TimeNs until = env_.now(io::Clock::kMonotonic) + quiet_ns_;
  const bool is_new = until_.insert_or_assign(uid, until).second;
  if (until_.size() == 1) quiet_->start(quiet_ns_);
  if (is_new) changed_();
}

void SaveWatch::end_saves() {
  const TimeNs now = env_.now(io::Clock::kMonotonic);
  const bool ended = std::erase_if(until_, [&](const auto& save) { return save.second <= now; }) > 0;
  TimeNs next = INT64_MAX;
  for (const auto& [_, until] : until_) next = std::min(next, until);
  if (!until_.empty()) quiet_->start(next - now);
  if (ended) changed_();
}

}  // namespace culprit::app
