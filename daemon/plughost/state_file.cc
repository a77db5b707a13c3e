#include "plughost/state_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "base/bytes.h"
#include "base/hash.h"
#include "base/limits.h"
#include "io/files.h"

namespace culprit::plughost {
namespace {

constexpr uint64_t kStateMagic = 0x3154535453505543;  // "CUPSTST1"
constexpr size_t kStateHeadBytes = 2 * sizeof(uint64_t);

// Reads at most `most` bytes, and one more if the file is longer. Empty if the descriptor is not of a
// regular file of this user.
std::string read_own_file(int descriptor, size_t most) {
  struct stat status;
  if (::fstat(descriptor, &status) != 0) return "";
  if (!S_ISREG(status.st_mode) || status.st_uid != ::geteuid()) return "";
  std::string bytes(most + 1, '\0');
  size_t filled = 0;
  while (filled < bytes.size()) {
    const ssize_t n = ::read(descriptor, bytes.data() + filled, bytes.size() - filled);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return "";
    if (n == 0) break;
    filled += static_cast<size_t>(n);
  }
  bytes.resize(filled);
  return bytes;
}

}  // namespace

StateFile::StateFile(std::string folder, const std::string& plugin)
    : folder_(std::move(folder)), path_(folder_.empty() ? "" : fmt::format("{}/{}.state", folder_, plugin)) {}

std::string StateFile::take() const {
  if (path_.empty()) return "";
  // A pipe or link of another user must neither block the daemon nor redirect it.
  const int file = ::open(path_.c_str(), O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC | O_NOCTTY);
  if (file < 0) return "";
  const std::string bytes = read_own_file(file, kStateHeadBytes + limits::kPluginStateBytes);
  ::close(file);
  io::Files& files = io::real_files();
  if (!files.remove(path_) || !files.sync_folder(folder_)) return "";
  if (bytes.size() < kStateHeadBytes || bytes.size() > kStateHeadBytes + limits::kPluginStateBytes) return "";
  const std::string_view state = std::string_view(bytes).substr(kStateHeadBytes);
  if (get_at<uint64_t>(bytes, 0) != kStateMagic || get_at<uint64_t>(bytes, 8) != hash64(state)) return "";
  return std::string(state);
}

Status StateFile::keep(std::string_view state) const {
  if (path_.empty()) return {};
  if (state.empty()) {
    remove();
    return {};
  }
  std::string bytes;
  put(bytes, kStateMagic);
  put(bytes, hash64(state));
  bytes += state;
  io::Files& files = io::real_files();
  const std::string fresh = path_ + ".new";
  if (const Status made = files.make_folder(folder_); !made) return made;
  (void)files.remove(fresh);
  const auto file = files.open(fresh, io::OpenFor::kCreate);
  if (!file) return tl::unexpected(file.error());
  if (const Status written = (*file)->append(bytes); !written) return written;
  return files.rename(fresh, path_);
}

void StateFile::remove() const {
  if (!path_.empty()) (void)io::real_files().remove(path_);
}

}  // namespace culprit::plughost
