#include "app/run/held_folder.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

#include "io/system_error.h"

namespace culprit::app {
namespace {

constexpr int kFolderFlags = O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW;
constexpr int kDepth = 64;                // limit of nested folders
constexpr size_t kEntriesSeen = 100'000;  // limit of entries in one folder

bool is_same(const struct stat& a, const struct stat& b) {
  return a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

}  // namespace

Result<HeldFolder> HeldFolder::open(const std::string& path) {
  io::Descriptor at(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!at.is_open()) return io::system_failure(path, errno);
  return HeldFolder(std::move(at), path);
}

Result<HeldFolder> HeldFolder::make(const std::string& name, bool fresh) const {
  const bool made = ::mkdirat(at_.get(), name.c_str(), 0700) == 0;
  if (!made && errno != EEXIST) return io::system_failure(path_of(name), errno);
  if (!made && fresh) return fail(ErrorCode::kBusy, path_of(name) + ": is there already");
  auto out = enter(name);
  if (out && !out->is_own())
    return fail(ErrorCode::kDenied, path_of(name) + ": is no folder of this user alone");
  return out;
}

Result<HeldFolder> HeldFolder::enter(const std::string& name) const {
  io::Descriptor at(::openat(at_.get(), name.c_str(), kFolderFlags));
  if (!at.is_open()) return io::system_failure(path_of(name), errno);
  return HeldFolder(std::move(at), path_of(name));
}

bool HeldFolder::is_own() const {
  struct stat info {};
  return ::fstat(at_.get(), &info) == 0 && info.st_uid == ::geteuid() &&
         (info.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

bool HeldFolder::is_there() const {
  struct stat now {
  }, ours{};
  return ::stat(path_.c_str(), &now) == 0 && ::fstat(at_.get(), &ours) == 0 && is_same(now, ours);
}

bool HeldFolder::has(const std::string& name) const {
  struct stat info {};
  return ::fstatat(at_.get(), name.c_str(), &info, AT_SYMLINK_NOFOLLOW) == 0;
}

std::vector<std::string> HeldFolder::names(size_t max) const {
  std::vector<std::string> out;
  const int again = ::openat(at_.get(), ".", kFolderFlags);
  const std::unique_ptr<DIR, int (*)(DIR*)> reading(again < 0 ? nullptr : ::fdopendir(again), &::closedir);
  if (!reading && again >= 0) ::close(again);
  while (reading && out.size() < max) {
    const dirent* entry = ::readdir(reading.get());
    if (!entry) break;
    if (std::strcmp(entry->d_name, ".") != 0 && std::strcmp(entry->d_name, "..") != 0)
      out.emplace_back(entry->d_name);
  }
  return out;
}

Result<io::Descriptor> HeldFolder::open_file(const std::string& name, int flags) const {
  io::Descriptor out(::openat(at_.get(), name.c_str(), flags | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600));
  if (!out.is_open()) return io::system_failure(path_of(name), errno);
  return out;
}

Result<std::string> HeldFolder::read(const std::string& name, size_t bytes_max) const {
  const auto file = open_file(name, O_RDONLY);
  if (!file) return tl::unexpected(file.error());
  std::string text(bytes_max, '\0');
  size_t size = 0;
  while (size < bytes_max) {
    const ssize_t got = ::read(file->get(), text.data() + size, bytes_max - size);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return io::system_failure(path_of(name), errno);
    if (got == 0) break;
    size += static_cast<size_t>(got);
  }
  text.resize(size);
  return text;
}

Status HeldFolder::write(const std::string& name, std::string_view text, bool synced) const {
  const std::string part = fmt::format("{}.{}.part", name, ::getpid());
  auto file = open_file(part, O_WRONLY | O_CREAT | O_TRUNC);
  if (!file) return io::system_failure(path_of(name), errno);
  int error = 0;
  while (error == 0 && !text.empty()) {
    const ssize_t n = ::write(file->get(), text.data(), text.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) error = n < 0 ? errno : EIO;
    if (n > 0) text.remove_prefix(static_cast<size_t>(n));
  }
  if (synced && error == 0 && ::fsync(file->get()) != 0) error = errno;
  if (::close(file->release()) != 0 && error == 0) error = errno;
  if (error == 0) error = rename(part, name);
  if (error == 0) return {};
  ::unlinkat(at_.get(), part.c_str(), 0);
  return io::system_failure(path_of(name), error);
}

int HeldFolder::rename(const std::string& from, const std::string& to) const {
  return ::renameat(at_.get(), from.c_str(), at_.get(), to.c_str()) == 0 ? 0 : errno;
}

void HeldFolder::remove(const std::string& name) const {
  if (::unlinkat(at_.get(), name.c_str(), 0) == 0) return;
  if (const auto folder = enter(name)) remove_held(name, *folder);
}

void HeldFolder::remove_held(const std::string& name, const HeldFolder& folder) const {
  folder.clear(0);
  struct stat named {
  }, held{};
  if (::fstatat(at_.get(), name.c_str(), &named, AT_SYMLINK_NOFOLLOW) == 0 &&
      ::fstat(folder.descriptor(), &held) == 0 && is_same(named, held))
    ::unlinkat(at_.get(), name.c_str(), AT_REMOVEDIR);  // an empty one at most
}

void HeldFolder::clear(int depth) const {
  for (const std::string& name : names(kEntriesSeen)) {
    if (::unlinkat(at_.get(), name.c_str(), 0) == 0 || depth >= kDepth) continue;
    if (const auto folder = enter(name)) folder->clear(depth + 1);
    ::unlinkat(at_.get(), name.c_str(), AT_REMOVEDIR);
  }
}

uint64_t HeldFolder::copy_from(const std::string& folder) const {
  const auto from = open(folder);
  return from ? copy_below(*from, 0) : 0;
}

uint64_t HeldFolder::copy_below(const HeldFolder& from, int depth) const {
  uint64_t lost = 0;
  for (const std::string& name : from.names(kEntriesSeen)) {
    struct stat info {};
    if (::fstatat(from.descriptor(), name.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0) continue;
    if (S_ISREG(info.st_mode)) lost += copy_file(from, name);
    if (!S_ISDIR(info.st_mode) || depth >= kDepth) continue;
    const auto inner = from.enter(name);
    const auto to = make(name);
    if (inner && to) lost += to->copy_below(*inner, depth + 1);
  }
  return lost;
}

uint64_t HeldFolder::copy_file(const HeldFolder& from, const std::string& name) const {
  const auto in = from.open_file(name, O_RDONLY);
  struct stat info {};
  if (!in || ::fstat(in->get(), &info) != 0 || !S_ISREG(info.st_mode)) return 0;
  uint64_t left = static_cast<uint64_t>(std::max<off_t>(info.st_size, 0));
  const auto out = open_file(name, O_WRONLY | O_CREAT | O_EXCL);
  if (!out) return errno == EEXIST ? 0 : left;
  while (left > 0) {
    const ssize_t n = ::sendfile(out->get(), in->get(), nullptr, std::min<uint64_t>(left, 1 << 30));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    left -= static_cast<uint64_t>(n);
  }
  return left;
}

}  // namespace culprit::app
