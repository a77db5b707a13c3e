#include "app/daemon/watch/save_watch.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <utility>

namespace culprit::app {
namespace {

// Reports come .3 s apart: a log of a training job writes far less in that time, and a save far more.
constexpr uint64_t kSaveBytes = 1 << 20;
constexpr size_t kFolders = 1024;
constexpr size_t kNames = 16'384;  // looked at in a folder

struct Listing {
  uint64_t bytes = 0;
  std::set<std::string> subfolders;
};

std::optional<Listing> list(const std::string& folder) {
  std::error_code error;
  std::filesystem::directory_iterator names(folder, error);
  if (error) return std::nullopt;
  Listing out;
  for (size_t n = 0; !error && n < kNames && names != std::filesystem::directory_iterator();
       names.increment(error), ++n) {
    std::error_code removed;
    const auto type = names->symlink_status(removed).type();
    if (type == std::filesystem::file_type::directory) out.subfolders.insert(names->path().filename());
    if (type != std::filesystem::file_type::regular) continue;
    const uint64_t size = names->file_size(removed);
    if (!removed) out.bytes += size;
  }
  return out;
}

}  // namespace

SaveWatch::SaveWatch(io::Env& env, TimeNs quiet_ns, std::function<void()> changed)
    : quiet_(env.timer([this] {
        saving_ = false;
        changed_();
      })),
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

Status SaveWatch::watch(const std::set<std::string>& folders) {
  if (!saving_)
    std::erase_if(folders_, [&](const auto& entry) {
      const bool leaves = !folders.contains(entry.first);
      if (leaves) watch_->remove(entry.first);
      return leaves;
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
  const uint64_t before = std::exchange(known->second.bytes, now->bytes);
  if (now->bytes >= before + kSaveBytes) grew();
  const std::set<std::string> old = std::exchange(known->second.subfolders, now->subfolders);
  for (const std::string& name : now->subfolders) {
    const std::string path = folder + "/" + name;
    if (old.contains(name) || folders_.contains(path) || !add(path)) continue;
    folders_[path] = {};
    look(path);
  }
}

void SaveWatch::grew() {
  quiet_->start(quiet_ns_);
  if (std::exchange(saving_, true)) return;
  changed_();
}

}  // namespace culprit::app
