#include "ingest/live/kernel.h"

#include <fcntl.h>
#include <unistd.h>
#include <xxhash.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <utility>

#include <fmt/format.h>

#include "base/ascii.h"
#include "base/limits.h"
#include "ingest/file.h"

namespace culprit::ingest {
namespace {

// The end of the line that begins at `from`: after its newline, or the end of the bytes.
size_t line_end(std::string_view bytes, size_t from) {
  const size_t end = bytes.find('\n', from);
  return end == std::string_view::npos ? bytes.size() : end + 1;
}

bool take_field(std::string_view* rest, uint64_t* out) {
  const auto [end, error] = std::from_chars(rest->data(), rest->data() + rest->size(), *out);
  if (error != std::errc()) return false;
  rest->remove_prefix(static_cast<size_t>(end - rest->data()));
  return true;
}

bool take_char(std::string_view* rest, char c) {
  if (rest->empty() || rest->front() != c) return false;
  rest->remove_prefix(1);
  return true;
}

// The kernel writes \xNN for control characters, non-ASCII bytes and the backslash.
std::string unescape(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    const bool escape = text[i] == '\\' && i + 3 < text.size() && text[i + 1] == 'x';
    const int high = escape ? hex_value(text[i + 2]) : -1, low = escape ? hex_value(text[i + 3]) : -1;
    if (high < 0 || low < 0) {
      out += text[i];
      continue;
    }
    out += static_cast<char>(high * 16 + low);
    i += 3;
  }
  return out;
}

class SystemDevice : public KernelDevice {
 public:
  explicit SystemDevice(int descriptor) : descriptor_(descriptor) {}
  ~SystemDevice() override { close(descriptor_); }

  int descriptor() const override { return descriptor_; }
  int64_t read(char* out, size_t size) override {
    const ssize_t got = ::read(descriptor_, out, size);
    return got < 0 ? -errno : got;
  }
  int rewind() override { return lseek(descriptor_, 0, SEEK_SET) == 0 ? 0 : -errno; }

 private:
  int descriptor_;
};

// The remedy: systemd opens the device with its own rights and passes it to the daemon.
constexpr std::string_view kMend = "let systemd hand it over: systemctl enable --now culpritd-kmsg.socket";

}  // namespace

std::optional<KernelRecord> parse_kernel_record(std::string_view raw) {
  const std::string_view line = raw.substr(0, line_end(raw, 0));
  std::string_view rest = line;
  uint64_t priority = 0;
  KernelRecord record;
  if (!take_field(&rest, &priority) || priority > UINT32_MAX || !take_char(&rest, ',') ||
      !take_field(&rest, &record.sequence) || !take_char(&rest, ',') ||
      !take_field(&rest, &record.since_boot_us) || !take_char(&rest, ','))
    return std::nullopt;
  if (record.sequence == UINT64_MAX) return std::nullopt;  // no sequence number could follow
  // Flags, and fields that later kernels may add, up to the semicolon.
  const size_t semicolon = rest.find(';');
  if (semicolon == std::string_view::npos) return std::nullopt;
  record.priority = static_cast<uint32_t>(priority & 7);
  record.facility = static_cast<uint32_t>(priority >> 3);
  record.text = rest.substr(semicolon + 1);
  if (record.text.ends_with('\n')) record.text.remove_suffix(1);
  record.dictionary = raw.substr(line.size(), first_kernel_record(raw).size() - line.size());
  return record;
}

std::string_view first_kernel_record(std::string_view bytes) {
  size_t end = line_end(bytes, 0);
  while (end < bytes.size() && bytes[end] == ' ') end = line_end(bytes, end);
  return bytes.substr(0, end);
}

std::string kernel_text(std::string_view raw_record, TimeNs boot_ns) {
  const std::optional<KernelRecord> record = parse_kernel_record(raw_record);
  if (!record || record->facility != 0) return {};
  std::string head = "kernel: ";
  // An impossible time (the number in a record is untrusted) counts as unknown.
  constexpr uint64_t kSinceBootMaxUs = 100ull * 365 * 24 * 3600 * 1'000'000;
  if (boot_ns != kNoTime && boot_ns >= 0 && record->since_boot_us < kSinceBootMaxUs) {
    const Civil at = civil_from_ns(boot_ns + static_cast<TimeNs>(record->since_boot_us) * kNsPerUs);
    head = fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:06}+00:00 kernel: ", at.year, at.month, at.day,
                       at.hour, at.minute, at.second, at.nanosecond / 1000);
  }
  const std::string text = unescape(record->text);
  std::string out;
  size_t from = 0;
  do {
    const size_t end = std::min(text.find('\n', from), text.size());
    out.append(head).append(text, from, end - from).push_back('\n');
    from = end + 1;
  } while (from < text.size());
  return out;
}

Result<std::unique_ptr<KernelDevice>> open_kernel_device(const std::string& path) {
  const int descriptor = open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
  if (descriptor >= 0) return std::make_unique<SystemDevice>(descriptor);
  Error error = system_error(path, errno);
  if (error.code == ErrorCode::kDenied) error.text += fmt::format("; {}", kMend);
  return tl::unexpected(std::move(error));
}

Result<std::unique_ptr<KernelDevice>> adopt_kernel_device(int descriptor) {
  const int flags = fcntl(descriptor, F_GETFL);
  if (flags < 0 || fcntl(descriptor, F_SETFL, flags | O_NONBLOCK) != 0 ||
      fcntl(descriptor, F_SETFD, FD_CLOEXEC) != 0)
    return tl::unexpected(system_error("the descriptor handed over for kernel messages", errno));
  return std::make_unique<SystemDevice>(descriptor);
}

uint64_t boot_fingerprint(const std::string& path) {
  char id[64];
  const int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  const ssize_t got = descriptor < 0 ? 0 : ::read(descriptor, id, sizeof id);
  if (descriptor >= 0) close(descriptor);
  return XXH3_64bits(id, got < 0 ? 0 : static_cast<size_t>(got));
}

KernelLog::KernelLog(std::unique_ptr<KernelDevice> device, KernelOptions options,
                     std::span<const StreamState> known)
    : device_(std::move(device)), options_(std::move(options)), buffer_(limits::kKernelRecordBytes, '\0') {
  for (const StreamState& state : known)
    if (state.info.kind == OriginKind::kKernel && !state.ended) known_.push_back(state);
}

int KernelLog::descriptor() const { return device_->descriptor(); }

// Continues the source of this boot; ends those of other boots.
void KernelLog::begin(const Round& round, KernelRead* out) {
  for (const StreamState& state : std::exchange(known_, {})) {
    const bool same =
        state.place && KernelPlace::from(*state.place).boot == options_.boot && stream_ == kNoStream;
    if (same) {
      stream_ = state.info.id;
      offset_ = state.size;
      next_ = KernelPlace::from(*state.place).next;
      continue;
    }
    Piece piece;
    piece.stream = state.info.id;
    piece.offset = state.size;
    piece.time_ns = round.now;
    piece.place = state.place;
    piece.ends = true;
    out->batch.pieces.push_back(std::move(piece));
  }
  // A device from systemd is positioned after the records that an earlier run read, stored or not. A pipe
  // cannot be rewound and is read from its present position.
  device_->rewind();
}

KernelLog::KernelRead KernelLog::read(const Round& round) {
  KernelRead out;
  if (!std::exchange(begun_, true)) begin(round, &out);
  Piece piece;
  uint64_t left = round.budget_bytes, refusals = 0;
  while (left > 0) {
    const int64_t got = device_->read(buffer_.data(), buffer_.size());
    if (got == -EINTR) continue;
    // Records were overwritten, or one exceeds the buffer. The device continues after them; the number of the
    // next record shows how many are missing.
    if (got == -EPIPE || got == -EINVAL) {
      left -= std::min<uint64_t>(left, 64);
      ++refusals;
      continue;
    }
    if (got == -EAGAIN) break;
    if (got <= 0) {
      out.error = got < 0 ? system_error(options_.path, static_cast<int>(-got))
                          : Error{ErrorCode::kIo, options_.path + ": it came to an end"};
      break;
    }
    const std::string_view raw(buffer_.data(), static_cast<size_t>(got));
    left -= std::min<uint64_t>(left, raw.size());
    on_record(raw, round, &piece, &out);
  }
  // The whole budget went to failed reads: the device returns no more records.
  if (left == 0 && piece.bytes.empty() && out.batch.pieces.empty() && refusals > 0)
    out.error = Error{ErrorCode::kIo, options_.path + ": it refuses to be read"};
  flush(round, &piece, &out);
  out.more = left == 0 && !out.error;
  return out;
}

void KernelLog::on_record(std::string_view raw, const Round& round, Piece* piece, KernelRead* out) {
  const std::optional<KernelRecord> record = parse_kernel_record(raw);
  if (record && next_ && record->sequence < *next_) return;  // stored by an earlier run
  if (record && next_ && record->sequence > *next_) {
    flush(round, piece, out);
    const uint64_t lost = record->sequence - *next_;
    piece->gap = Gap{0, lost, "the kernel overwrote records before they were read"};
    stats_.lost += lost;
  }
  if (piece->bytes.size() + raw.size() > limits::kPieceBytes) flush(round, piece, out);
  piece->bytes.append(raw);
  if (record) next_ = record->sequence + 1;
  ++stats_.records;
  stats_.bytes += raw.size();
  stats_.malformed += !record;
  stats_.foreign += record && record->facility != 0;
}

void KernelLog::flush(const Round& round, Piece* piece, KernelRead* out) {
  Piece full = std::exchange(*piece, {});
  if (full.bytes.empty()) return;
  if (stream_ == kNoStream) {
    StreamInfo info;
    info.id = stream_ = options_.allocate();
    info.kind = OriginKind::kKernel;
    info.path = options_.path;
    info.opened_ns = round.now;
    info.boot_ns = round.now - round.now_mono;
    out->batch.opened.push_back(std::move(info));
  }
  full.stream = stream_;
  full.offset = offset_;
  full.time_ns = round.now;
  full.place = KernelPlace{options_.boot, next_.value_or(0)}.stored();
  offset_ += full.bytes.size();
  out->batch.pieces.push_back(std::move(full));
}

}  // namespace culprit::ingest
