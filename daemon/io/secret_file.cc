#include "io/secret_file.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "io/descriptors.h"
#include "io/system_error.h"
#include "io/trusted_path.h"

namespace culprit::io {
namespace {

// The command that gives read permission to the daemon alone.
std::string mend(const std::string& path, const FileRights& file, const ProcessRights& process) {
  if (file.uid == process.uid || process.uid == 0) return "chmod 600 " + path;
  const auto in = [&](gid_t gid) {
    return gid == process.gid ||
           std::find(process.groups.begin(), process.groups.end(), gid) != process.groups.end();
  };
  if (file.uid == 0 && in(file.gid)) return "chmod 640 " + path;
  return fmt::format("chown {} {} && chmod 600 {}", process.uid, path, path);
}

}  // namespace

ProcessRights own_rights() {
  ProcessRights out{::geteuid(), ::getegid(), {}};
  out.groups.resize(static_cast<size_t>(std::max(0, ::getgroups(0, nullptr))));
  const int count = ::getgroups(static_cast<int>(out.groups.size()), out.groups.data());
  out.groups.resize(static_cast<size_t>(std::max(0, count)));
  return out;
}

Status check_secret(const std::string& path, const FileRights& file, const ProcessRights& process) {
  const auto refused = [&](const std::string& what) {
    return fail(ErrorCode::kDenied, path + ": " + what + ": run " + mend(path, file, process));
  };
  const bool root = process.uid == 0;
  if (!root && file.uid != 0 && file.uid != process.uid)
    return refused(fmt::format("belongs to user {}, who is neither root nor the daemon's user", file.uid));
  if ((file.mode & S_IROTH) != 0) return refused("any user may read it");
  if ((file.mode & (S_IWOTH | S_IWGRP)) != 0) return refused("others may change it");
  // This process can read a file of root only through its group.
  const bool by_group = file.uid != process.uid && std::find(process.groups.begin(), process.groups.end(),
                                                             file.gid) != process.groups.end();
  if (!root && (file.mode & S_IRGRP) != 0 && file.gid != 0 && file.gid != process.gid && !by_group)
    return refused(fmt::format("group {} may read it", file.gid));
  return {};
}

Result<std::string> read_secret(const std::string& path, size_t bytes_max) {
  // As root any file owner is allowed, so the path may also belong to the file's owner.
  const ProcessRights process = own_rights();
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) return system_failure(path, errno);
  if (!S_ISREG(status.st_mode)) return fail(ErrorCode::kInvalid, path + ": is no regular file");
  // Checked first: its remedy is also right if the path check fails because of the mode.
  if (Status closed = check_secret(path, {status.st_uid, status.st_gid, status.st_mode}, process); !closed)
    return tl::unexpected(closed.error());
  const auto opened = open_trusted_file(path, process.uid == 0 ? status.st_uid : process.uid);
  if (!opened) return fail(opened.error().code, path + ": " + opened.error().text);
  const Descriptor file(*opened);
  if (::fstat(file.get(), &status) != 0) return system_failure(path, errno);
  if (Status closed = check_secret(path, {status.st_uid, status.st_gid, status.st_mode}, process); !closed)
    return tl::unexpected(closed.error());
  std::string text(bytes_max + 1, '\0');
  size_t size = 0;
  while (size < text.size()) {
    const ssize_t got = ::read(file.get(), text.data() + size, text.size() - size);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return system_failure(path, errno);
    if (got == 0) break;
    size += static_cast<size_t>(got);
  }
  if (size > bytes_max) return fail(ErrorCode::kLimit, path + ": is too large for a key or token");
  text.resize(size);
  text.shrink_to_fit();
  return text;
}

}  // namespace culprit::io
