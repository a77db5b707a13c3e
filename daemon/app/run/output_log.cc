#include "app/run/output_log.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <utility>

#include "io/system_error.h"

namespace culprit::app {
namespace {

constexpr size_t kQueuedMost = 16 << 20;  // seconds of a chatty job
constexpr size_t kPartBytes = 256 << 10;  // parts of one stream are joined up to this size

}  // namespace

OutputLog::OutputLog(const HeldFolder& folder, std::vector<std::string> names, uint64_t bytes_max)
    : folder_(folder), bytes_max_(bytes_max) {
  for (std::string& name : names) files_.push_back({std::move(name)});
  thread_ = std::thread([this] { run(); });
}

OutputLog::~OutputLog() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  changed_.notify_all();
  thread_.join();
  for (const File& file : files_)
    if (file.fd >= 0) ::close(file.fd);
}

void OutputLog::add(size_t stream, std::string_view bytes) {
  {
    const std::lock_guard lock(mutex_);
    if (queued_ + bytes.size() > kQueuedMost) {
      counters_.dropped += bytes.size();
      if (counters_.trouble.empty()) counters_.trouble = "the disk is too slow";
      return;
    }
    queued_ += bytes.size();
    if (queue_.empty() || queue_.back().stream != stream || queue_.back().bytes.size() > kPartBytes)
      queue_.push_back({stream, {}});
    queue_.back().bytes += bytes;
  }
  changed_.notify_all();
}

void OutputLog::finish(int within_ms) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, std::chrono::milliseconds(within_ms), [this] { return queue_.empty() && !busy_; });
}

OutputLog::Counters OutputLog::counters() const {
  const std::lock_guard lock(mutex_);
  return counters_;
}

void OutputLog::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return ends_ || !queue_.empty(); });
    if (queue_.empty()) return;
    const Part part = std::move(queue_.front());
    queue_.pop_front();
    busy_ = true;
    lock.unlock();
    const int error = write(files_[part.stream], part.bytes);
    lock.lock();
    busy_ = false;
    queued_ -= part.bytes.size();
    (error == 0 ? counters_.written : counters_.dropped) += part.bytes.size();
    File& file = files_[part.stream];
    if (error != 0 && !std::exchange(file.told, true))
      counters_.trouble += (counters_.trouble.empty() ? "" : "; ") +
                           io::system_error(folder_.path() + "/" + file.name, error).text;
    changed_.notify_all();
  }
}

int OutputLog::open(File& file) {
  auto opened = folder_.open_file(file.name, O_WRONLY | O_CREAT | O_APPEND);
  struct stat info {};
  if (!opened) return errno;
  file.fd = opened->release();
  if (::fstat(file.fd, &info) == 0) file.size = static_cast<uint64_t>(info.st_size);
  return 0;
}

int OutputLog::write(File& file, std::string_view bytes) {
  if (file.fd < 0)
    if (const int error = open(file)) return error;
  if (file.size > 0 && file.size + bytes.size() > bytes_max_) {
    ::close(std::exchange(file.fd, -1));
    if (const int error = folder_.rename(file.name, file.name + ".1")) return error;
    if (const int error = open(file)) return error;
  }
  while (!bytes.empty()) {
    const ssize_t n = ::write(file.fd, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return n < 0 ? errno : EIO;
    bytes.remove_prefix(static_cast<size_t>(n));
    file.size += static_cast<uint64_t>(n);
  }
  return 0;
}

}  // namespace culprit::app
