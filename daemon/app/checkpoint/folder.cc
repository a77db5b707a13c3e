#include "app/checkpoint/folder.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "base/limits.h"
#include "io/system_error.h"

namespace culprit::app {
namespace {

using checkpoint::Entry;
using checkpoint::EntryKind;

constexpr int kDepth = 16;
constexpr size_t kBlock = 4096;  // alignment that O_DIRECT requires for offsets, sizes and memory

class Descriptor {
 public:
  explicit Descriptor(int number = -1) : number_(number) {}
  Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  ~Descriptor() {
    if (number_ >= 0) ::close(number_);
  }
  int get() const { return number_; }
  int release() { return std::exchange(number_, -1); }

 private:
  int number_;
};

Entry entry_of(std::string path, const struct stat& info) {
  Entry out{std::move(path), static_cast<uint64_t>(info.st_size),
            info.st_mtim.tv_sec * kNsPerSecond + info.st_mtim.tv_nsec, EntryKind::kOther};
  if (S_ISREG(info.st_mode)) out.kind = EntryKind::kFile;
  if (S_ISDIR(info.st_mode)) out.kind = EntryKind::kFolder, out.size = 0;
  if (S_ISLNK(info.st_mode)) out.kind = EntryKind::kLink;
  return out;
}

std::string target_of(int folder, const char* name) {
  std::string out(limits::kPathBytes, '\0');
  const ssize_t n = ::readlinkat(folder, name, out.data(), out.size());
  out.resize(n > 0 ? static_cast<size_t>(n) : 0);
  return out;
}

// Appends the folder's content; entries that disappear meanwhile are skipped.
Status walk(Descriptor folder, const std::string& path, const std::string& root, int depth,
            std::vector<Entry>& out) {
  DIR* listing = ::fdopendir(folder.release());
  if (!listing) return io::system_failure(root, errno);
  const std::unique_ptr<DIR, int (*)(DIR*)> closing(listing, ::closedir);
  while (const dirent* item = ::readdir(listing)) {
    const std::string name = item->d_name;
    struct stat info {};
    if (name == "." || name == ".." ||
        ::fstatat(::dirfd(listing), name.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0)
      continue;
    if (out.size() >= limits::kCheckpointEntries)
      return fail(ErrorCode::kLimit, fmt::format("{}: has more than {} files; name a folder of it", root,
                                                 limits::kCheckpointEntries));
    out.push_back(entry_of(checkpoint::join(path, name), info));
    if (S_ISLNK(info.st_mode)) out.back().target = target_of(::dirfd(listing), name.c_str());
    if (!S_ISDIR(info.st_mode) || depth >= kDepth) continue;
    Descriptor below(
        ::openat(::dirfd(listing), name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (below.get() < 0) {
      if (errno == ENOENT) continue;
      return io::system_failure(root + "/" + out.back().path, errno);
    }
    if (Status done = walk(std::move(below), checkpoint::join(path, name), root, depth + 1, out); !done)
      return done;
  }
  return {};
}

}  // namespace

struct CheckpointFolder::Handle {
  Descriptor root;
  bool direct = false;
  std::string open_path;  // of `file`
  Descriptor file;
  std::unique_ptr<char, void (*)(void*)> block{nullptr, std::free};
  size_t block_bytes = 0;
};

CheckpointFolder::CheckpointFolder(std::unique_ptr<Handle> handle) : handle_(std::move(handle)) {}
CheckpointFolder::CheckpointFolder(CheckpointFolder&&) noexcept = default;
CheckpointFolder::~CheckpointFolder() = default;

std::string CheckpointFolder::name() const { return std::filesystem::path(root_).filename().string(); }

int open_below(int root, const std::string& folder) {
  Descriptor at(::openat(root, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  for (size_t from = 0; at.get() >= 0 && from < folder.size();) {
    const size_t end = std::min(folder.find('/', from), folder.size());
    at = Descriptor(::openat(at.get(), folder.substr(from, end - from).c_str(),
                             O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    from = end + 1;
  }
  return at.release();
}

Result<CheckpointFolder> CheckpointFolder::open(const std::string& path, bool direct) {
  const std::unique_ptr<char, void (*)(void*)> real(::realpath(path.c_str(), nullptr), std::free);
  if (!real) return io::system_failure(path, errno);
  struct stat info {};
  if (::stat(real.get(), &info) != 0) return io::system_failure(path, errno);
  std::filesystem::path root(real.get());
  const bool is_file = S_ISREG(info.st_mode);
  if (!is_file && !S_ISDIR(info.st_mode))
    return fail(ErrorCode::kInvalid, path + ": is neither a folder nor a file");
  const std::string name = root.filename().string();
  if (is_file) root = root.parent_path();
  auto handle = std::make_unique<Handle>();
  handle->direct = direct;
  handle->root = Descriptor(::open(root.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (handle->root.get() < 0) return io::system_failure(root.string(), errno);
  CheckpointFolder out(std::move(handle));
  out.root_ = root.string();
  out.complete_ = !is_file;
  std::vector<Entry> entries;
  if (is_file) {
    entries.push_back(entry_of(name, info));
  } else {
    Descriptor listing(::openat(out.handle_->root.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (listing.get() < 0) return io::system_failure(path, errno);
    if (Status done = walk(std::move(listing), "", path, 0, entries); !done)
      return tl::unexpected(done.error());
  }
  out.tree_ = checkpoint::Tree(std::move(entries));
  return out;
}

Result<size_t> CheckpointFolder::read_at(const std::string& path, char* out, size_t size, uint64_t offset) {
  Handle& h = *handle_;
  if (h.open_path != path || h.file.get() < 0) {
    h.open_path.clear();
    const Descriptor folder(open_below(h.root.get(), std::string(checkpoint::folder_of(path))));
    if (folder.get() < 0) return fail(ErrorCode::kIo, std::strerror(errno));
    const int flags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC | (h.direct ? O_DIRECT : 0);
    h.file = Descriptor(::openat(folder.get(), std::string(checkpoint::name_of(path)).c_str(), flags));
    if (h.file.get() < 0) return fail(ErrorCode::kIo, std::strerror(errno));
    struct stat info {};
    if (::fstat(h.file.get(), &info) != 0 || !S_ISREG(info.st_mode))
      return fail(ErrorCode::kIo, "is no plain file any more");
    ::posix_fadvise(h.file.get(), 0, 0, POSIX_FADV_SEQUENTIAL);
    h.open_path = path;
  }
  const uint64_t from = h.direct ? offset / kBlock * kBlock : offset;
  const size_t want = h.direct ? (offset - from + size + kBlock - 1) / kBlock * kBlock : size;
  if (h.direct && h.block_bytes < want) {
    h.block.reset(static_cast<char*>(std::aligned_alloc(kBlock, want)));
    if (!h.block) return fail(ErrorCode::kLimit, "no memory for a block");
    h.block_bytes = want;
  }
  char* to = h.direct ? h.block.get() : out;
  size_t got = 0;
  while (got < want) {
    const ssize_t n = ::pread(h.file.get(), to + got, want - got, static_cast<off_t>(from + got));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return fail(ErrorCode::kIo, std::strerror(errno));
    if (n == 0) break;
    got += static_cast<size_t>(n);
    if (h.direct && static_cast<size_t>(n) % kBlock != 0) break;  // the end of the file
  }
  if (!h.direct) return got;
  const size_t skip = offset - from;
  const size_t have = got > skip ? std::min(got - skip, size) : 0;
  std::memcpy(out, h.block.get() + skip, have);
  return have;
}

}  // namespace culprit::app
