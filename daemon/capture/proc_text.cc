#include "capture/proc_text.h"

#include <sys/syscall.h>

#include <algorithm>
#include <charconv>

#include "base/text.h"

namespace culprit::capture {
namespace {

template <class Number>
std::optional<Number> number_of(std::string_view text, int base = 10) {
  Number n = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), n, base);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return n;
}

std::optional<uint64_t> hex_of(std::string_view text) {
  if (text.starts_with("0x")) text.remove_prefix(2);
  return number_of<uint64_t>(text, 16);
}

std::vector<std::string_view> words_of(std::string_view text) {
  std::vector<std::string_view> out;
  for (const std::string_view word : split(text, ' '))
    if (!trim(word).empty()) out.push_back(trim(word));
  return out;
}

// The rest of the first line that begins so.
std::optional<std::string_view> line_behind(std::string_view text, std::string_view begin) {
  for (const std::string_view line : split(text, '\n'))
    if (line.starts_with(begin)) return trim(line.substr(begin.size()));
  return std::nullopt;
}

// The n-th number of a line with tabs between.
std::optional<uint32_t> number_at(std::string_view text, std::string_view begin, size_t n) {
  const auto line = line_behind(text, begin);
  if (!line) return std::nullopt;
  const auto fields = split(*line, '\t');
  return n < fields.size() ? number_of<uint32_t>(trim(fields[n])) : std::nullopt;
}

// mountinfo writes a blank as "\040".
std::string unescaped(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    const auto code = text[i] == '\\' ? number_of<unsigned>(text.substr(i + 1, 3), 8) : std::nullopt;
    if (code && i + 3 < text.size() && *code < 256) {
      out += static_cast<char>(*code);
      i += 3;
    } else {
      out += text[i];
    }
  }
  return out;
}

constexpr long kDescriptorCalls[] = {SYS_read,   SYS_write,     SYS_pread64,   SYS_pwrite64, SYS_readv,
                                     SYS_writev, SYS_preadv,    SYS_pwritev,   SYS_preadv2,  SYS_pwritev2,
                                     SYS_fsync,  SYS_fdatasync, SYS_fstat,     SYS_lseek,    SYS_getdents64,
                                     SYS_ioctl,  SYS_fallocate, SYS_ftruncate, SYS_flock,    SYS_close,
                                     SYS_fcntl,  SYS_fadvise64};
constexpr long kPathAtCalls[] = {SYS_openat,  SYS_openat2,    SYS_newfstatat, SYS_statx,     SYS_unlinkat,
                                 SYS_mkdirat, SYS_readlinkat, SYS_faccessat,  SYS_faccessat2};
#ifdef __x86_64__
constexpr long kPathCalls[] = {SYS_open,   SYS_stat,   SYS_lstat,    SYS_access, SYS_mkdir,
                               SYS_unlink, SYS_rename, SYS_readlink, SYS_statfs, SYS_truncate};
#else
constexpr long kPathCalls[] = {SYS_statfs, SYS_truncate};
#endif

template <size_t N>
bool holds(const long (&calls)[N], int64_t number) {
  return std::find(std::begin(calls), std::end(calls), number) != std::end(calls);
}

}  // namespace

std::optional<ProcStat> parse_stat(std::string_view text) {
  const size_t open = text.find('('), close = text.rfind(')');
  if (open == text.npos || close == text.npos || close < open) return std::nullopt;
  const auto fields = split(trim(text.substr(close + 1)), ' ');
  constexpr size_t kParent = 1, kStart = 19;
  if (fields.size() <= kStart || fields[0].size() != 1) return std::nullopt;
  const auto parent = number_of<uint32_t>(fields[kParent]);
  const auto start = number_of<uint64_t>(fields[kStart]);
  if (!parent || !start) return std::nullopt;
  ProcStat out;
  for (const char c : to_utf8(text.substr(open + 1, close - open - 1)))
    out.name += static_cast<unsigned char>(c) < ' ' || c == 0x7f ? '?' : c;
  out.state = fields[0][0];
  out.parent = *parent;
  out.start_ticks = *start;
  return out;
}

std::optional<ProcStatus> parse_status(std::string_view text) {
  const auto uid = number_at(text, "Uid:", 1), gid = number_at(text, "Gid:", 1);
  if (!uid || !gid) return std::nullopt;
  ProcStatus out;
  out.uid = *uid;
  out.gid = *gid;
  out.tracer = number_at(text, "TracerPid:", 0).value_or(0);
  if (const auto caught = line_behind(text, "SigCgt:")) out.caught = hex_of(*caught).value_or(0);
  if (const auto pending = line_behind(text, "ShdPnd:")) out.pending = hex_of(*pending).value_or(0);
  return out;
}

std::optional<ProcSyscall> parse_syscall(std::string_view text) {
  ProcSyscall out;
  const auto words = words_of(trim(text));
  if (words.empty()) return std::nullopt;
  if (words[0] == "running") {
    out.running = true;
    return out;
  }
  const auto number = number_of<int64_t>(words[0]);
  if (!number) return std::nullopt;
  out.number = *number;
  if (out.number < 0) return out;
  if (words.size() <= out.arguments.size()) return std::nullopt;
  for (size_t i = 0; i < out.arguments.size(); ++i) {
    const auto argument = hex_of(words[i + 1]);
    if (!argument) return std::nullopt;
    out.arguments[i] = *argument;
  }
  return out;
}

FileArgument file_argument(int64_t number) {
  if (number < 0) return FileArgument::kNone;
  if (holds(kDescriptorCalls, number)) return FileArgument::kDescriptor;
  if (holds(kPathCalls, number)) return FileArgument::kPath;
  return holds(kPathAtCalls, number) ? FileArgument::kPathAt : FileArgument::kNone;
}

std::vector<std::string> parse_kernel_stack(std::string_view text) {
  constexpr size_t kFrames = 64;
  std::vector<std::string> out;
  for (const std::string_view line : split(text, '\n')) {
    const size_t begin = line.find("] ");
    if (begin == line.npos || out.size() == kFrames) continue;
    const std::string_view name = trim(line.substr(begin + 2));
    out.emplace_back(name.substr(0, name.find('+')));
  }
  return out;
}

std::vector<Mount> parse_mounts(std::string_view text, size_t most) {
  std::vector<Mount> out;
  for (const std::string_view line : split(text, '\n')) {
    const auto words = words_of(line);
    const auto dash = std::find(words.begin(), words.end(), "-");
    constexpr size_t kPoint = 4;
    if (words.size() <= kPoint || words.end() - dash < 3 || out.size() == most) continue;
    const auto id = number_of<uint64_t>(words[0]);
    if (id) out.push_back({*id, unescaped(words[kPoint]), std::string(dash[1]), unescaped(dash[2])});
  }
  return out;
}

const Mount* mount_of(const std::vector<Mount>& mounts, std::string_view path) {
  const Mount* best = nullptr;
  for (const Mount& mount : mounts) {
    const std::string_view point = mount.point == "/" ? std::string_view() : mount.point;
    const bool below = path.starts_with(point) && (path.size() == point.size() || path[point.size()] == '/');
    // A later mount on the same point covers the earlier one.
    if (below && (!best || mount.point.size() >= best->point.size())) best = &mount;
  }
  return best;
}

const Mount* mount_of(const std::vector<Mount>& mounts, uint64_t id) {
  const auto found = std::find_if(mounts.begin(), mounts.end(), [id](const Mount& m) { return m.id == id; });
  return found == mounts.end() ? nullptr : &*found;
}

std::optional<uint64_t> parse_mount_id(std::string_view text) {
  const auto line = line_behind(text, "mnt_id:");
  return line ? number_of<uint64_t>(*line) : std::nullopt;
}

bool is_served(std::string_view fs_type) {
  constexpr std::string_view kTypes[] = {
      "nfs", "nfs4",      "cifs",   "smb3",  "smbfs",    "lustre",   "ceph",  "9p",    "beegfs", "gpfs",
      "afs", "glusterfs", "wekafs", "pvfs2", "virtiofs", "orangefs", "panfs", "ocfs2", "gfs2",   "autofs"};
  if (fs_type == "fuse" || fs_type == "fuseblk" || fs_type.starts_with("fuse.")) return true;
  return std::find(std::begin(kTypes), std::end(kTypes), fs_type) != std::end(kTypes);
}

bool waits_for_server(std::string_view wchan) {
  constexpr std::string_view kBegins[] = {
      "request_wait_answer", "fuse_", "nfs_", "nfs4_",   "rpc_wait_bit", "cifs_",
      "wait_for_response",   "ceph_", "ll_",  "ptlrpc_", "p9_client",    "autofs_wait"};
  return std::any_of(std::begin(kBegins), std::end(kBegins),
                     [&](std::string_view begin) { return wchan.starts_with(begin); });
}

RankEnvironment parse_environment(std::string_view text) {
  // Most specific first: in a Slurm task, torchrun's rank takes precedence.
  constexpr std::string_view kRanks[] = {
      "RANK=", "OMPI_COMM_WORLD_RANK=", "PMIX_RANK=", "PMI_RANK=", "SLURM_PROCID="};
  constexpr std::string_view kPipe = "TORCH_NCCL_DEBUG_INFO_PIPE_FILE=";
  constexpr uint32_t kRankMax = 0xfffffffe;
  RankEnvironment out;
  size_t best = std::size(kRanks);
  for (const std::string_view entry : split(text, '\0')) {
    out.elastic = out.elastic || entry.starts_with("TORCHELASTIC_RUN_ID=");
    if (entry.starts_with(kPipe)) out.recorder_pipe = entry.substr(kPipe.size());
    for (size_t i = 0; i < best; ++i) {
      if (!entry.starts_with(kRanks[i])) continue;
      const auto rank = number_of<uint32_t>(entry.substr(kRanks[i].size()));
      if (rank && *rank <= kRankMax) out.rank = rank, out.source = best = i;
      break;
    }
  }
  return out;
}

bool gave_rank(const RankEnvironment& parent, const RankEnvironment& child) {
  if (!child.rank) return false;
  if (!parent.rank || (child.elastic && !parent.elastic)) return true;
  return child.source < parent.source && child.rank != parent.rank;
}

Cgroups parse_cgroups(std::string_view text) {
  Cgroups out;
  for (const std::string_view line : split(text, '\n')) {
    const size_t colon = line.find(':');
    const size_t second = colon == line.npos ? colon : line.find(':', colon + 1);
    if (second == line.npos) continue;
    const std::string_view controllers = line.substr(colon + 1, second - colon - 1);
    const std::string path(line.substr(second + 1));
    if (path.find("..") != path.npos) continue;
    if (line.substr(0, colon) == "0" && controllers.empty()) out.unified = path;
    const auto names = split(controllers, ',');
    if (std::find(names.begin(), names.end(), "freezer") != names.end()) out.freezer = path;
  }
  return out;
}

}  // namespace culprit::capture
