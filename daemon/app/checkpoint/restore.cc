#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <numeric>
#include <optional>
#include <utility>

#include "app/checkpoint/copies_client.h"
#include "base/text.h"
#include "core/checkpoint/tree.h"
#include "io/system_error.h"
#include "respond/checkpoint/digest.h"

namespace culprit::app {
namespace {

class Open {
 public:
  explicit Open(int number = -1) : number_(number) {}
  Open(Open&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Open& operator=(Open&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  ~Open() {
    if (number_ >= 0) ::close(number_);
  }
  int get() const { return number_; }
  bool is_open() const { return number_ >= 0; }

 private:
  int number_;
};

Open open_folder(int at, const std::string& name) {
  return Open(::openat(at, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
}

// Writes one copy below a folder whose content others may change at any time: every step goes by descriptor
// and follows no link.
class Writer {
 public:
  Writer(CopiesClient& client, const copies::Manifest& manifest, const RestoreOptions& options)
      : client_(client), manifest_(manifest), options_(options), owner_(copies::owner_of(manifest)) {}

  Result<Restored> write();

 private:
  std::string relative(const std::string& path) const { return path.substr(prefix_); }
  Status check_names() const;
  Result<Open> make_folder(int at, const std::string& name);
  Result<Open> parent(const std::string& path);
  Result<bool> is_present(int folder, const std::string& name, const copies::File& file);
  Status write_file(uint32_t index);
  Status fill(uint32_t index, int out);
  Status finish(int folder, const std::string& from, const std::string& to);
  Status write_pointer(const copies::Pointer& pointer);
  Status all_files();

  CopiesClient& client_;
  const copies::Manifest& manifest_;
  const RestoreOptions& options_;
  const std::optional<uint32_t> owner_;
  size_t prefix_ = 0;  // of the files' paths, cut off
  Open to_, base_;     // of --to, and the folder that the files are relative to
  bool staged_ = false;
  std::string name_;  // of the checkpoint; empty: the folder itself
  Restored done_;
};

// The server is another host's agent: what it calls files of the checkpoint are not taken for granted.
Status Writer::check_names() const {
  for (const copies::File& file : manifest_.files) {
    const bool inside =
        manifest_.path.empty() || file.path == manifest_.path || file.path.starts_with(manifest_.path + "/");
    if (!inside || !copies::is_safe_path(file.path))
      return fail(ErrorCode::kInvalid, file.path + ": is no file of this checkpoint");
  }
  return {};
}

// Opens it, or makes it for the files' owner.
Result<Open> Writer::make_folder(int at, const std::string& name) {
  if (::mkdirat(at, name.c_str(), 0777) == 0) {
    Open made = open_folder(at, name);
    if (!made.is_open()) return io::system_failure(name, errno);
    if (::geteuid() == 0 && owner_ &&
        (::fchown(made.get(), *owner_, manifest_.files.front().gid) != 0 || ::fchmod(made.get(), 0755) != 0))
      return io::system_failure(name, errno);
    return made;
  }
  if (errno != EEXIST) return io::system_failure(name, errno);
  Open there = open_folder(at, name);
  if (!there.is_open()) return io::system_failure(name, errno);
  return there;
}

Result<Open> Writer::parent(const std::string& path) {
  Open at(::openat(base_.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!at.is_open()) return io::system_failure(options_.to, errno);
  const std::string folder(checkpoint::folder_of(path));
  for (size_t from = 0; from < folder.size();) {
    const size_t end = std::min(folder.find('/', from), folder.size());
    auto next = make_folder(at.get(), folder.substr(from, end - from));
    if (!next) return next;
    at = std::move(*next);
    from = end + 1;
  }
  return at;
}

// kBusy: another file has the name.
Result<bool> Writer::is_present(int folder, const std::string& name, const copies::File& file) {
  const Open there(::openat(folder, name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  if (!there.is_open() && errno == ENOENT) return false;
  struct stat info {};
  const auto differs = [&] {
    return fail(ErrorCode::kBusy, fmt::format("{}: exists with other content; name another folder with --to",
                                              options_.to + "/" + relative(file.path)));
  };
  if (!there.is_open() || ::fstat(there.get(), &info) != 0 || !S_ISREG(info.st_mode) ||
      static_cast<uint64_t>(info.st_size) != file.size)
    return differs();
  respond::checkpoint::Sha256 hash;
  std::string buffer(copies::kDataBytes, '\0');
  ssize_t n = 0;
  while ((n = ::read(there.get(), buffer.data(), buffer.size())) > 0)
    hash.add({buffer.data(), static_cast<size_t>(n)});
  if (n < 0 || hash.finish() != file.digest) return differs();
  return true;
}

Status Writer::fill(uint32_t index, int out) {
  const copies::File& file = manifest_.files[index];
  Status got = client_.fetch(manifest_, index, [&](std::string_view bytes) -> Status {
    while (!bytes.empty()) {
      const ssize_t n = ::write(out, bytes.data(), bytes.size());
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) return io::system_failure(options_.to + "/" + relative(file.path), errno);
      bytes.remove_prefix(static_cast<size_t>(n));
    }
    return {};
  });
  if (!got) return got;
  // Another user's files are restored by root alone, and then belong to that user.
  if (::geteuid() == 0 && ::fchown(out, file.uid, file.gid) != 0) return io::system_failure(file.path, errno);
  const timespec time{static_cast<time_t>(file.modified_ns / kNsPerSecond),
                      static_cast<long>(file.modified_ns % kNsPerSecond)};
  const timespec times[2] = {time, time};
  if (::fchmod(out, file.mode) != 0 || ::futimens(out, times) != 0 || ::fsync(out) != 0)
    return io::system_failure(file.path, errno);
  return {};
}

// Gives the file its name without replacing another.
Status Writer::finish(int folder, const std::string& from, const std::string& to) {
  if (::renameat2(folder, from.c_str(), folder, to.c_str(), RENAME_NOREPLACE) == 0) return {};
  if (errno == EINVAL || errno == ENOSYS) {  // a file system without it
    struct stat info {};
    if (::fstatat(folder, to.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0 &&
        ::renameat(folder, from.c_str(), folder, to.c_str()) == 0)
      return {};
  }
  return io::system_failure(to, errno);
}

Status Writer::write_file(uint32_t index) {
  const copies::File& file = manifest_.files[index];
  const std::string path = relative(file.path);
  const std::string name(checkpoint::name_of(path));
  auto folder = parent(path);
  if (!folder) return tl::unexpected(folder.error());
  const auto present = is_present(folder->get(), name, file);
  if (!present) {
    if (!staged_) return tl::unexpected(present.error());
    ::unlinkat(folder->get(), name.c_str(), 0);  // of an interrupted restore
  } else if (*present) {
    ++done_.present;
    return {};
  }
  if (options_.progress) options_.progress(file);
  const std::string temporary = fmt::format(".culprit-{}-{}", ::getpid(), index);
  ::unlinkat(folder->get(), temporary.c_str(), 0);
  Status written;
  {
    const Open out(::openat(folder->get(), temporary.c_str(),
                            O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
    if (!out.is_open()) return io::system_failure(options_.to + "/" + path, errno);
    written = fill(index, out.get());
  }
  if (written) written = finish(folder->get(), temporary, name);
  if (!written) {
    ::unlinkat(folder->get(), temporary.c_str(), 0);
    return written;
  }
  ::fsync(folder->get());
  ++done_.files;
  done_.bytes += file.size;
  return {};
}

// In the order in which the job wrote them: an index that is written last comes last here too.
Status Writer::all_files() {
  std::vector<uint32_t> order(manifest_.files.size());
  std::iota(order.begin(), order.end(), 0u);
  std::ranges::stable_sort(order, {}, [&](uint32_t i) { return manifest_.files[i].modified_ns; });
  for (const uint32_t index : order)
    if (Status written = write_file(index); !written) return written;
  return {};
}

Status Writer::write_pointer(const copies::Pointer& pointer) {
  if (checkpoint::folder_of(pointer.path) != checkpoint::folder_of(manifest_.path)) return {};
  const std::string name(checkpoint::name_of(pointer.path));
  const Open out(
      ::openat(to_.get(), name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644));
  if (!out.is_open()) return errno == EEXIST ? Status() : io::system_failure(name, errno);
  if (::geteuid() == 0 && owner_) (void)!::fchown(out.get(), *owner_, manifest_.files.front().gid);
  if (::write(out.get(), pointer.text.data(), pointer.text.size()) !=
      static_cast<ssize_t>(pointer.text.size()))
    return io::system_failure(name, errno);
  ::fsync(out.get());
  done_.pointers.push_back(options_.to + "/" + name);
  return {};
}

Result<Restored> Writer::write() {
  if (Status sound = check_names(); !sound) return tl::unexpected(sound.error());
  prefix_ = checkpoint::folder_of(manifest_.path).size();
  if (prefix_ > 0) ++prefix_;
  name_ = std::string(checkpoint::name_of(manifest_.path));
  const bool made = ::mkdir(options_.to.c_str(), 0777) == 0;
  to_ = Open(::open(options_.to.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | (made ? O_NOFOLLOW : 0)));
  if (!to_.is_open()) return io::system_failure(options_.to, errno);
  struct stat info {};
  if (made && ::geteuid() == 0 && owner_ && ::fstat(to_.get(), &info) == 0 && info.st_uid == 0)
    (void)!::fchown(to_.get(), *owner_, manifest_.files.front().gid);
  const bool is_file = manifest_.files.size() == 1 && manifest_.files.front().path == manifest_.path;
  staged_ = !is_file && !name_.empty() &&
            ::fstatat(to_.get(), name_.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0 && errno == ENOENT;
  const std::string staging = "." + name_ + ".restoring";
  if (staged_) {
    auto folder = make_folder(to_.get(), staging);
    if (!folder) return tl::unexpected(folder.error());
    base_ = std::move(*folder);
    if (::fstat(base_.get(), &info) != 0 || (info.st_uid != ::geteuid() && info.st_uid != owner_))
      return fail(ErrorCode::kDenied, options_.to + "/" + staging + ": belongs to another user");
    prefix_ = manifest_.path.size() + 1;
  } else {
    base_ = Open(::openat(to_.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  }
  if (Status written = all_files(); !written) return tl::unexpected(written.error());
  if (staged_) {
    ::fsync(base_.get());
    if (Status named = finish(to_.get(), staging, name_); !named) return tl::unexpected(named.error());
  }
  for (const copies::Pointer& pointer : manifest_.pointers)
    if (Status written = write_pointer(pointer); !written) return tl::unexpected(written.error());
  ::fsync(to_.get());
  done_.path = name_.empty() ? options_.to : options_.to + "/" + name_;
  return done_;
}

}  // namespace

Result<Restored> restore_copy(CopiesClient& client, const copies::Manifest& manifest,
                              const RestoreOptions& options) {
  return Writer(client, manifest, options).write();
}

}  // namespace culprit::app
