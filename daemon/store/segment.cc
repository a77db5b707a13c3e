#include "store/segment.h"

#include <fmt/format.h>
#include <zstd.h>

#include <algorithm>
#include <charconv>

#include "base/bytes.h"
#include "base/check.h"
#include "base/hash.h"

namespace culprit::store {

namespace {

constexpr std::string_view kSegmentMagic = "CULPSEGM";
constexpr std::string_view kFrameMagic = "CFRM";
constexpr size_t kSegmentHashAt = kSegmentHeaderBytes - 8;
constexpr size_t kFrameHashAt = kFrameHeaderBytes - 8;
// Bytes per read in the search for a sound header.
constexpr size_t kSearchBytes = 256 << 10;
constexpr std::string_view kSuffix = ".seg";
// Flag in the kind of a frame.
constexpr uint32_t kDeclares = 0x100;

}  // namespace

std::string encode(const SegmentHeader& header) {
  std::string out(kSegmentMagic);
  put(out, header.version);
  put(out, static_cast<uint32_t>(kSegmentHeaderBytes));
  put(out, header.epoch);
  put(out, header.number);
  put(out, header.created_ns);
  put(out, header.kind);
  put(out, static_cast<uint8_t>(header.cleaned));
  CULPRIT_CHECK(out.size() <= kSegmentHashAt);
  out.resize(kSegmentHashAt, '\0');
  put(out, hash64(out));
  return out;
}

std::optional<SegmentHeader> decode_segment_header(std::string_view bytes) {
  if (bytes.size() < kSegmentHeaderBytes || !bytes.starts_with(kSegmentMagic)) return std::nullopt;
  if (get_at<uint64_t>(bytes, kSegmentHashAt) != hash64(bytes.substr(0, kSegmentHashAt))) return std::nullopt;
  SegmentHeader header;
  header.version = get_at<uint32_t>(bytes, 8);
  header.epoch = get_at<uint64_t>(bytes, 16);
  header.number = get_at<uint64_t>(bytes, 24);
  header.created_ns = get_at<TimeNs>(bytes, 32);
  header.kind = get_at<SegmentKind>(bytes, 40);
  header.cleaned = get_at<uint8_t>(bytes, 41) != 0;
  return header;
}

std::string encode(const FrameHeader& header) {
  std::string out(kFrameMagic);
  put(out, static_cast<uint32_t>(header.kind) | (header.declares ? kDeclares : 0));
  put(out, header.raw_size);
  put(out, header.stored_size);
  put(out, header.epoch);
  put(out, header.segment);
  put(out, header.sequence);
  put(out, header.time_ns);
  put(out, header.stream_mask);
  put(out, header.payload_hash);
  put(out, hash64(out));
  CULPRIT_CHECK(out.size() == kFrameHeaderBytes);
  return out;
}

std::string pack_frame(FrameHeader header, std::string_view raw) {
  CULPRIT_CHECK(raw.size() <= kFrameRawMax);
  std::string stored(ZSTD_compressBound(raw.size()), '\0');
  const size_t size = ZSTD_compress(stored.data(), stored.size(), raw.data(), raw.size(), 1);
  CULPRIT_CHECK(!ZSTD_isError(size));  // the place is as large as zstd asks for
  stored.resize(size);
  header.raw_size = static_cast<uint32_t>(raw.size());
  header.stored_size = static_cast<uint32_t>(stored.size());
  header.payload_hash = hash64(stored);
  return encode(header) + stored;
}

std::optional<FrameHeader> decode_frame_header(std::string_view bytes) {
  if (bytes.size() < kFrameHeaderBytes || !bytes.starts_with(kFrameMagic)) return std::nullopt;
  if (get_at<uint64_t>(bytes, kFrameHashAt) != hash64(bytes.substr(0, kFrameHashAt))) return std::nullopt;
  FrameHeader header;
  const auto word = get_at<uint32_t>(bytes, 4), kind = word & ~kDeclares;
  header.declares = word & kDeclares;
  header.raw_size = get_at<uint32_t>(bytes, 8);
  header.stored_size = get_at<uint32_t>(bytes, 12);
  if (kind > static_cast<uint32_t>(FrameKind::kOrigin) || header.raw_size > kFrameRawMax ||
      header.stored_size > ZSTD_COMPRESSBOUND(kFrameRawMax))
    return std::nullopt;
  header.kind = static_cast<FrameKind>(kind);
  header.epoch = get_at<uint64_t>(bytes, 16);
  header.segment = get_at<uint64_t>(bytes, 24);
  header.sequence = get_at<uint64_t>(bytes, 32);
  if (header.sequence > kSequenceMax) return std::nullopt;
  header.time_ns = get_at<TimeNs>(bytes, 40);
  header.stream_mask = get_at<uint64_t>(bytes, 48);
  header.payload_hash = get_at<uint64_t>(bytes, 56);
  return header;
}

std::string segment_name(uint64_t number) { return fmt::format("{:016x}{}", number, kSuffix); }

std::optional<uint64_t> segment_number(std::string_view name) {
  if (name.size() != 16 + kSuffix.size() || !name.ends_with(kSuffix)) return std::nullopt;
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + 16, number, 16);
  // Accepts only names that segment_name() makes: two files must not have the same number.
  if (error != std::errc{} || end != name.data() + 16 || segment_name(number) != name) return std::nullopt;
  return number;
}

Result<std::vector<uint64_t>> list_segments(io::Files& files, const std::string& folder) {
  const auto names = files.list(folder);
  if (!names) return tl::unexpected(names.error());
  std::vector<uint64_t> numbers;
  for (const std::string& name : *names)
    if (const auto number = segment_number(name)) numbers.push_back(*number);
  std::sort(numbers.begin(), numbers.end());
  return numbers;
}

Result<std::optional<uint64_t>> newest_epoch(io::Files& files, const std::string& folder) {
  const auto numbers = list_segments(files, folder);
  if (!numbers) return tl::unexpected(numbers.error());
  for (size_t i = numbers->size(); i-- > 0;) {
    auto reader = SegmentReader::open(files, folder, (*numbers)[i]);
    if (!reader) continue;  // deleted since
    const auto epoch = reader->epoch();
    if (epoch && *epoch) return *epoch;
  }
  return std::nullopt;
}

Unpacker::Unpacker() : context_(ZSTD_createDCtx()) {}
Unpacker::~Unpacker() { ZSTD_freeDCtx(context_); }

bool Unpacker::unpack(const FrameHeader& header, std::string_view stored, std::string& out) {
  if (stored.size() != header.stored_size || hash64(stored) != header.payload_hash) return false;
  if (ZSTD_getFrameContentSize(stored.data(), stored.size()) != header.raw_size) return false;
  out.resize(header.raw_size);
  // One call into existing memory: zstd allocates no window, whatever size the frame requests.
  return ZSTD_decompressDCtx(context_, out.data(), out.size(), stored.data(), stored.size()) ==
         header.raw_size;
}

SegmentReader::SegmentReader() : unpacker_(std::make_unique<Unpacker>()) {}
SegmentReader::SegmentReader(SegmentReader&&) noexcept = default;
SegmentReader& SegmentReader::operator=(SegmentReader&&) noexcept = default;
SegmentReader::~SegmentReader() = default;

Result<SegmentReader> SegmentReader::open(io::Files& files, const std::string& folder, uint64_t number) {
  auto file = files.open(folder + "/" + segment_name(number), io::OpenFor::kRead);
  if (!file) return tl::unexpected(file.error());
  return open(std::move(*file), number);
}

Result<SegmentReader> SegmentReader::open(std::unique_ptr<io::FileHandle> file, uint64_t number) {
  SegmentReader reader;
  reader.file_ = std::move(file);
  const auto status = reader.file_->status();
  if (!status) return tl::unexpected(status.error());
  reader.size_ = status->size;
  reader.number_ = number;
  const auto whole = reader.read(reader.head_, kSegmentHeaderBytes, 0);
  if (!whole) return tl::unexpected(whole.error());
  if (*whole) reader.header_ = decode_segment_header(reader.head_);
  if (reader.header_ && reader.header_->number != number) reader.header_.reset();  // a renamed file
  // After a damaged segment header, frames are still at their usual offsets.
  reader.position_ = std::min<uint64_t>(kSegmentHeaderBytes, reader.size_);
  reader.any_origin_ = reader.header_ && reader.header_->kind != SegmentKind::kSpool;
  reader.sound_end_ = reader.header_ ? reader.position_ : 0;
  return reader;
}

// False if the file ends before.
Result<bool> SegmentReader::read(std::string& out, size_t size, uint64_t offset) {
  if (offset > size_ || size > size_ - offset) return false;
  out.resize(size);
  const auto got = file_->read_at(out.data(), size, offset);
  if (!got) return tl::unexpected(got.error());
  return *got == size;
}

// In a spool, a frame of another segment or spool is a remnant of a power loss. In an archive, frames keep
// the numbers of their spools.
bool SegmentReader::belongs(const FrameHeader& frame) const {
  if (any_origin_) return true;
  return frame.segment == number_ && (!header_ || frame.epoch == header_->epoch);
}

Result<std::optional<uint64_t>> SegmentReader::epoch() {
  if (header_) return std::optional(header_->epoch);
  const auto found = find_header(position_);
  if (!found) return tl::unexpected(found.error());
  if (!*found) return std::nullopt;
  const auto frame = header_at(**found);
  if (!frame) return tl::unexpected(frame.error());
  return *frame ? std::optional((*frame)->epoch) : std::nullopt;
}

Result<std::optional<FrameHeader>> SegmentReader::header_at(uint64_t offset) {
  const auto whole = read(head_, kFrameHeaderBytes, offset);
  if (!whole) return tl::unexpected(whole.error());
  if (!*whole) return std::nullopt;
  std::optional<FrameHeader> header = decode_frame_header(head_);
  if (header && !belongs(*header)) header.reset();
  return header;
}

Result<std::optional<uint64_t>> SegmentReader::find_header(uint64_t from) {
  std::string window;
  while (from + kFrameHeaderBytes <= size_) {
    const size_t size = std::min<uint64_t>(kSearchBytes, size_ - from);
    const auto whole = read(window, size, from);
    if (!whole) return tl::unexpected(whole.error());
    if (!*whole) return std::nullopt;
    const std::string_view bytes(window);
    for (size_t at = bytes.find(kFrameMagic); at != std::string_view::npos;
         at = bytes.find(kFrameMagic, at + 1)) {
      if (at + kFrameHeaderBytes > size) break;  // the next window covers it
      const auto header = decode_frame_header(bytes.substr(at));
      if (header && belongs(*header)) return from + at;
    }
    from += size - (kFrameHeaderBytes - 1);
  }
  return std::nullopt;
}

Result<bool> SegmentReader::next(const Wanted& wanted) {
  for (;;) {
    const auto header = header_at(position_);
    if (!header) return tl::unexpected(header.error());
    if (!*header) {
      const auto found = find_header(position_ + 1);
      if (!found) return tl::unexpected(found.error());
      if (!*found) return false;
      damaged_bytes_ += **found - position_;
      position_ = **found;
      continue;
    }
    frame_ = **header;
    const uint64_t begin = position_, end = position_ + kFrameHeaderBytes + frame_.stored_size;
    if (end > size_) return false;  // torn
    if (skips(wanted)) {
      position_ = sound_end_ = end;
      continue;
    }
    frame_head_ = head_;
    frame_at_ = begin;
    const auto whole = read(stored_, frame_.stored_size, begin + kFrameHeaderBytes);
    if (!whole) return tl::unexpected(whole.error());
    position_ = end;
    content_.clear();
    const bool sound = *whole && (wanted.content ? unpacker_->unpack(frame_, stored_, content_)
                                                 : hash64(stored_) == frame_.payload_hash);
    if (sound) {
      sound_end_ = end;
      return true;
    }
    damaged_frames_ += 1;
    damaged_bytes_ += end - begin;
  }
}

bool SegmentReader::skips(const Wanted& wanted) const {
  if (wanted.epoch && frame_.epoch != *wanted.epoch) return true;
  if (frame_.kind != FrameKind::kData) return !wanted.checkpoints;
  return frame_.sequence <= wanted.behind || (frame_.stream_mask & wanted.streams) == 0;
}

Status SegmentReader::refresh() {
  const auto status = file_->status();
  if (!status) return tl::unexpected(status.error());
  size_ = status->size;
  return {};
}

}  // namespace culprit::store
