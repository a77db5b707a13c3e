#include <sys/inotify.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <set>
#include <unordered_map>
#include <utility>

#include "io/system_error.h"
#include "io/uv/loop.h"

namespace culprit::io {
namespace {

// After a report, further changes are collected for this long. So a log with 1,000 lines a second wakes the
// loop no more often than the log is read.
constexpr TimeNs kGatherNs = 300 * kNsPerMs;
// Reads per turn: enough for the kernel's queue of 16,384 events of 48 bytes.
constexpr int kReadsInTurn = 16;

constexpr uint32_t kEvents = IN_CREATE | IN_MODIFY | IN_MOVED_FROM | IN_MOVED_TO | IN_DELETE |
                             IN_CLOSE_WRITE | IN_ATTRIB | IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR;

class Inotify final : public FolderWatch {
 public:
  Inotify(Loop& loop, int descriptor, OnFolder changed)
      : loop_(loop),
        descriptor_(descriptor),
        changed_(std::make_shared<OnFolder>(std::move(changed))),
        gather_(make_timer(loop, [this] { look(); })) {}
  ~Inotify() override {
    poll_.reset();
    ::close(descriptor_);
  }

  // Reports the first change at once.
  Status watch() {
    auto poll = make_poll(loop_, descriptor_, [this] { look(); });
    if (!poll) return tl::unexpected(poll.error());
    poll_ = std::move(*poll);
    return {};
  }

  Status add(const std::string& folder) override {
    const int number = ::inotify_add_watch(descriptor_, folder.c_str(), kEvents);
    if (number < 0 && errno == ENOSPC)
      return fail(ErrorCode::kLimit, folder + ": the kernel's limit fs.inotify.max_user_watches is reached");
    if (number < 0) return system_failure(folder, errno);
    const auto known = number_of_.find(folder);
    if (known != number_of_.end() && known->second == number) return {};
    if (known != number_of_.end()) remove(folder);  // another folder has this name now
    number_of_[folder] = number;
    folders_of_[number].push_back(folder);
    return {};
  }

  void remove(const std::string& folder) override {
    const auto known = number_of_.find(folder);
    if (known == number_of_.end()) return;
    const int number = known->second;
    number_of_.erase(known);
    auto& folders = folders_of_[number];  // several, if links give one folder several names
    std::erase(folders, folder);
    if (!folders.empty()) return;
    folders_of_.erase(number);
    ::inotify_rm_watch(descriptor_, number);
  }

 private:
  void look() {
    std::set<std::string> folders;
    if (!read_all(folders)) {
      if (!poll_) (void)watch();  // succeeded before with the same descriptor
      return;
    }
    poll_.reset();
    gather_->start(kGatherNs, 0);
    const std::shared_ptr<OnFolder> changed = changed_;  // the callback may destroy this object
    for (const std::string& folder : folders) {
      if (changed.use_count() == 1) return;
      (*changed)(folder);
    }
  }

  bool read_all(std::set<std::string>& folders) {
    bool any = false;
    for (int i = 0; i < kReadsInTurn; ++i) {
      const ssize_t n = ::read(descriptor_, loop_.buffer.data(), loop_.buffer.size());
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) break;
      any = true;
      decode(static_cast<size_t>(n), folders);
    }
    return any;
  }

  void decode(size_t size, std::set<std::string>& folders) {
    inotify_event event;
    for (size_t at = 0; at + sizeof(event) <= size; at += sizeof(event) + event.len) {
      std::memcpy(&event, loop_.buffer.data() + at, sizeof(event));
      if (event.mask & IN_Q_OVERFLOW) {
        for (const auto& [folder, number] : number_of_) folders.insert(folder);
        continue;
      }
      const auto found = folders_of_.find(event.wd);
      if (found == folders_of_.end()) continue;  // removed while its events were queued
      folders.insert(found->second.begin(), found->second.end());
      if (!(event.mask & IN_IGNORED)) continue;
      // The folder was deleted, and the kernel ended the watch.
      for (const std::string& folder : found->second) number_of_.erase(folder);
      folders_of_.erase(found);
    }
  }

  Loop& loop_;
  const int descriptor_;
  const std::shared_ptr<OnFolder> changed_;
  std::unordered_map<std::string, int> number_of_;
  std::unordered_map<int, std::vector<std::string>> folders_of_;
  std::unique_ptr<Timer> gather_;
  std::unique_ptr<Poll> poll_;  // null while changes are collected
};

}  // namespace

Result<std::unique_ptr<FolderWatch>> make_folder_watch(Loop& loop, OnFolder changed) {
  const int descriptor = ::inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
  if (descriptor < 0 && errno == EMFILE)
    return fail(ErrorCode::kLimit,
                "inotify: fs.inotify.max_user_instances or the limit of open files is reached");
  if (descriptor < 0) return system_failure("inotify", errno);
  auto watch = std::make_unique<Inotify>(loop, descriptor, std::move(changed));
  if (Status status = watch->watch(); !status) return tl::unexpected(status.error());
  return watch;
}

}  // namespace culprit::io
