#include "ingest/live/ring_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "base/limits.h"
#include "base/text.h"
#include "ingest/file.h"
#include "io/descriptors.h"

namespace culprit::ingest {
namespace {

// Offsets of formats.md section 3.
constexpr size_t kVersionAt = 8, kRecordSizeAt = 12, kCapacityAt = 16;
constexpr size_t kWrittenAt = 64, kReadAt = 128, kDroppedAt = 192;
constexpr size_t kJobAt = 256, kJobBytes = 48, kRankAt = 320, kDeviceAt = 324;

static_assert(std::endian::native == std::endian::little, "rings are of this host, and little-endian");

template <class T>
T value_at(std::string_view bytes, size_t at) {
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

RingCounts counts_of(std::string_view bytes) {
  return {value_at<uint64_t>(bytes, kWrittenAt), value_at<uint64_t>(bytes, kReadAt),
          value_at<uint64_t>(bytes, kDroppedAt)};
}

// Reads exactly `size` bytes. A shorter file was truncated.
Status read_whole(int descriptor, char* out, size_t size, uint64_t offset) {
  while (size > 0) {
    const ssize_t got = pread(descriptor, out, size, static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return fail(ErrorCode::kIo, std::strerror(errno));
    if (got == 0) return fail(ErrorCode::kInvalid, "it was truncated");
    out += got;
    offset += static_cast<uint64_t>(got);
    size -= static_cast<size_t>(got);
  }
  return {};
}

tl::unexpected<Error> no_ring(std::string what) { return fail(ErrorCode::kInvalid, std::move(what)); }

template <class T>
bool take_number(std::string_view* rest, T* out) {
  const auto [end, error] = std::from_chars(rest->data(), rest->data() + rest->size(), *out);
  if (error != std::errc()) return false;
  rest->remove_prefix(static_cast<size_t>(end - rest->data()));
  return true;
}

bool skip_char(std::string_view* rest, char c) {
  if (rest->empty() || rest->front() != c) return false;
  rest->remove_prefix(1);
  return true;
}

// The state of the process and its start in clock ticks since the boot: fields 3 and 22. The program name,
// field 2, may contain any bytes, so fields are counted after its last bracket.
std::optional<std::pair<char, uint64_t>> state_and_start(std::string_view stat) {
  const size_t bracket = stat.rfind(')');
  if (bracket == std::string_view::npos) return std::nullopt;
  const std::vector<std::string_view> fields = split(trim(stat.substr(bracket + 1)), ' ');
  if (fields.size() < 20 || fields[0].empty()) return std::nullopt;
  uint64_t start = 0;
  std::string_view text = fields[19];
  if (!take_number(&text, &start)) return std::nullopt;
  return std::pair(fields[0][0], start);
}

std::string read_small(const std::string& path, struct stat* status) {
  std::string text(4096, '\0');
  const int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return {};
  const ssize_t got =
      fstat(descriptor, status) == 0 ? pread(descriptor, text.data(), text.size(), 0) : ssize_t{-1};
  close(descriptor);
  text.resize(got < 0 ? 0 : static_cast<size_t>(got));
  return text;
}

}  // namespace

Result<RingHeader> parse_ring_header(std::string_view bytes, uint64_t file_size) {
  if (bytes.size() < kRingHeaderUsed || file_size < kRingHeaderBytes) return no_ring("shorter than a header");
  if (bytes.substr(0, 8) != "CULPRING") return no_ring("it does not begin with CULPRING");
  const auto version = value_at<uint32_t>(bytes, kVersionAt);
  if (version != 1) return no_ring(fmt::format("version {} is not known", version));
  const auto record_size = value_at<uint32_t>(bytes, kRecordSizeAt);
  if (record_size != kRingRecordBytes)
    return no_ring(fmt::format("records of {} bytes, not 64", record_size));
  RingHeader header;
  header.capacity = value_at<uint64_t>(bytes, kCapacityAt);
  if (!std::has_single_bit(header.capacity) || header.capacity > limits::kRingRecords)
    return no_ring(fmt::format("its capacity of {} is not a power of two up to {}", header.capacity,
                               limits::kRingRecords));
  if (file_size < kRingHeaderBytes + header.capacity * kRingRecordBytes)
    return no_ring(fmt::format("shorter than its capacity of {} records", header.capacity));
  header.counts = counts_of(bytes);
  const std::string_view job = bytes.substr(kJobAt, kJobBytes);
  header.job = to_utf8(job.substr(0, job.find('\0')));
  header.rank = value_at<uint32_t>(bytes, kRankAt);
  header.device = value_at<uint32_t>(bytes, kDeviceAt);
  return header;
}

RingRange ring_range(const RingCounts& counts, uint64_t capacity, uint64_t next) {
  RingRange range;
  range.backwards = counts.written < next;
  if (range.backwards) return range;
  const uint64_t oldest = counts.written > capacity ? counts.written - capacity : 0;
  // Records before `read` may be overwritten at any moment; a count beyond `written` is ignored.
  const uint64_t freed = counts.read <= counts.written ? counts.read : 0;
  range.first = std::max({next, oldest, freed});
  range.count = counts.written - range.first;
  return range;
}

std::optional<RingName> parse_ring_name(std::string_view name) {
  RingName out;
  std::string_view rest = name;
  if (!take_number(&rest, &out.pid) || !skip_char(&rest, '-') || !take_number(&rest, &out.tid) ||
      !skip_char(&rest, '-') || !take_number(&rest, &out.start))
    return std::nullopt;
  out.making = rest == ".ring.tmp";
  if (!out.making && rest != ".ring") return std::nullopt;
  return out;
}

std::optional<RingName> parse_stacks_name(std::string_view name) {
  RingName out;
  std::string_view rest = name;
  if (!take_number(&rest, &out.pid) || !skip_char(&rest, '-') || !take_number(&rest, &out.start) ||
      rest != ".stacks")
    return std::nullopt;
  return out;
}

std::optional<uint32_t> producer_of(int descriptor) {
  struct flock lock {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  if (fcntl(descriptor, F_GETLK, &lock) != 0 || lock.l_type == F_UNLCK) return std::nullopt;
  return lock.l_pid > 0 ? static_cast<uint32_t>(lock.l_pid) : 0;
}

RingProcess find_ring_process(const std::string& proc, const RingName& name) {
  struct stat status {};
  const auto found = state_and_start(read_small(fmt::format("{}/{}/stat", proc, name.pid), &status));
  if (!found || found->first == 'Z' || found->first == 'X') return {};
  const auto ticks_per_s = static_cast<uint64_t>(sysconf(_SC_CLK_TCK));
  // <start> in the name is the creation of the ring in nanoseconds since the boot or, for other producers,
  // the start of the process in ticks. A process younger than the ring only reuses the pid.
  const uint64_t started_ns =
      static_cast<uint64_t>(static_cast<double>(found->second) * 1e9 / static_cast<double>(ticks_per_s));
  const uint64_t slack_ns = 2 * kNsPerSecond / ticks_per_s;
  const bool same = name.start == found->second || name.start + slack_ns >= started_ns;
  return {same, status.st_uid};
}

Result<RingFile> RingFile::open(int folder, const std::string& name) {
  struct stat status {};
  // Checked before the open: opening a device has side effects.
  if (fstatat(folder, name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0)
    return tl::unexpected(system_error(name, errno));
  if (!S_ISREG(status.st_mode)) return no_ring(name + ": not a regular file");
  RingFile file;
  file.descriptor_ = openat(folder, name.c_str(), O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
  const bool missing = file.descriptor_ < 0 && (errno == EMFILE || errno == ENFILE);
  if (missing || io::is_reserved(file.descriptor_))
    return fail(ErrorCode::kLimit, name + ": too many open files: raise LimitNOFILE of the unit");
  if (file.descriptor_ < 0 || fstat(file.descriptor_, &status) != 0)
    return tl::unexpected(system_error(name, errno));
  if (!S_ISREG(status.st_mode)) return no_ring(name + ": not a regular file");
  // The daemon writes a count into the file: another name could belong to another user's file.
  if (status.st_nlink != 1) return no_ring(name + ": it has more than one name (a hard link)");
  char bytes[kRingHeaderUsed];
  const Status read = read_whole(file.descriptor_, bytes, sizeof bytes, 0);
  if (!read) return no_ring(name + ": no ring: " + (status.st_size == 0 ? "it is empty" : read.error().text));
  Result<RingHeader> header =
      parse_ring_header({bytes, sizeof bytes}, static_cast<uint64_t>(std::max<off_t>(0, status.st_size)));
  if (!header) return no_ring(name + ": no ring: " + header.error().text);
  file.header_ = std::move(*header);
  std::copy_n(bytes, sizeof file.identity_, file.identity_);
  file.device_ = status.st_dev;
  file.inode_ = status.st_ino;
  file.uid_ = status.st_uid;
  return file;
}

RingFile::RingFile(RingFile&& other) noexcept { *this = std::move(other); }

RingFile& RingFile::operator=(RingFile&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  device_ = other.device_;
  inode_ = other.inode_;
  uid_ = other.uid_;
  header_ = std::move(other.header_);
  std::copy(std::begin(other.identity_), std::end(other.identity_), identity_);
  return *this;
}

RingFile::~RingFile() {
  if (descriptor_ >= 0) close(descriptor_);
}

Result<RingCounts> RingFile::counts() {
  char bytes[kRingHeaderUsed];
  if (const Status read = read_whole(descriptor_, bytes, sizeof bytes, 0); !read)
    return tl::unexpected(read.error());
  if (std::memcmp(bytes, identity_, sizeof identity_) != 0) return no_ring("its header changed");
  RingCounts counts = counts_of({bytes, sizeof bytes});
  RingCounts& last = header_.counts;
  if (counts.written == last.written && counts.dropped == last.dropped) return counts;
  // Counts change during the read, and the kernel may copy a half-changed one. The smaller value of two reads
  // is a valid count.
  if (const Status read = read_whole(descriptor_, bytes, sizeof bytes, 0); !read)
    return tl::unexpected(read.error());
  const RingCounts again = counts_of({bytes, sizeof bytes});
  counts.written = std::min(counts.written, again.written);
  counts.dropped = std::min(counts.dropped, again.dropped);
  // Records up to `written` must be read after the count.
  std::atomic_thread_fence(std::memory_order_acquire);
  last = counts;
  return counts;
}

Status RingFile::read(uint64_t first, uint64_t count, std::string* out) {
  while (count > 0) {
    const uint64_t slot = first & (header_.capacity - 1);
    const uint64_t run = std::min(count, header_.capacity - slot);
    const size_t before = out->size();
    out->resize(before + run * kRingRecordBytes);
    Status read = read_whole(descriptor_, out->data() + before, run * kRingRecordBytes,
                             kRingHeaderBytes + slot * kRingRecordBytes);
    if (!read) {
      out->resize(before);
      return read;
    }
    first += run;
    count -= run;
  }
  std::atomic_thread_fence(std::memory_order_acquire);
  return {};
}

Status RingFile::set_read(uint64_t count) {
  const ssize_t put = pwrite(descriptor_, &count, sizeof count, kReadAt);
  if (put == static_cast<ssize_t>(sizeof count)) return {};
  return tl::unexpected(system_error("its read count", put < 0 ? errno : EIO));
}

}  // namespace culprit::ingest
