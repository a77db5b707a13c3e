#include "ingest/decompress.h"

#include <fmt/format.h>
#include <lzma.h>
#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <cstring>
#include <system_error>
#include <utility>

#include "base/limits.h"
#include "base/wide_text.h"
#include "ingest/file.h"

namespace culprit::ingest {
namespace {

// Two blocks of zstd's largest size (128 KiB), so that most blocks are decoded in place.
constexpr size_t kInputBytes = 256 << 10;
constexpr size_t kWideBytes = 64 << 10;
// An xz dictionary of the size of the largest zstd window, and the decoder's own tables.
constexpr uint64_t kXzMemoryBytes = (uint64_t{1} << limits::kZstdWindowLogMax) + (32 << 20);

struct Step {
  size_t taken = 0, given = 0;
  const char* damage = nullptr;  // reason why the rest cannot be decoded
};

// Decodes a part of the input into a part of the output.
class Codec {
 public:
  virtual ~Codec() = default;
  virtual Step step(std::string_view in, char* out, size_t size, bool input_ended) = 0;
  // Whether the input may end here.
  virtual bool complete() const = 0;
};

class ZstdCodec final : public Codec {
 public:
  ZstdCodec() : stream_(ZSTD_createDStream()) {
    if (stream_ == nullptr) return;
    first_ = ZSTD_initDStream(stream_);
    (void)ZSTD_DCtx_setParameter(stream_, ZSTD_d_windowLogMax, limits::kZstdWindowLogMax);
    wanted_ = first_;
  }
  ~ZstdCodec() override { ZSTD_freeDStream(stream_); }
  ZstdCodec(const ZstdCodec&) = delete;
  ZstdCodec& operator=(const ZstdCodec&) = delete;

  Step step(std::string_view in, char* out, size_t size, bool) override {
    if (stream_ == nullptr) return {0, 0, "no memory for the decoder"};
    // zstd discards the output of a call that fails. To keep all sound blocks before damage, a call gets at
    // most one block of input, and none while output is pending.
    if (pending_) {
      const Step flushed = decode({in.data(), 0, 0}, out, size);
      if (flushed.given > 0 || flushed.damage != nullptr) return flushed;
    }
    return decode({in.data(), std::min(in.size(), wanted_), 0}, out, size);
  }
  bool complete() const override { return complete_; }

 private:
  Step decode(ZSTD_inBuffer from, char* out, size_t size) {
    ZSTD_outBuffer to = {out, size, 0};
    const size_t left = ZSTD_decompressStream(stream_, &to, &from);
    Step step = {from.pos, to.pos, nullptr};
    if (ZSTD_isError(left)) {
      step.damage = ZSTD_getErrorName(left);
      return step;
    }
    pending_ = left != 0 && to.pos == size;
    complete_ = left == 0;
    // zstd's next input size includes the header of the following block (3 bytes), which may be damaged.
    constexpr size_t kBlockHeader = 3;
    wanted_ = left == 0 ? first_ : left > kBlockHeader ? left - kBlockHeader : left;
    return step;
  }

  ZSTD_DStream* stream_;
  size_t first_ = 0, wanted_ = 0;
  bool pending_ = false, complete_ = false;
};

class GzipCodec final : public Codec {
 public:
  // 16 + 15: gzip's header and trailer, the largest window.
  GzipCodec() { ready_ = inflateInit2(&stream_, 16 + 15) == Z_OK; }
  ~GzipCodec() override {
    if (ready_) (void)inflateEnd(&stream_);
  }
  GzipCodec(const GzipCodec&) = delete;
  GzipCodec& operator=(const GzipCodec&) = delete;

  Step step(std::string_view in, char* out, size_t size, bool) override {
    if (!ready_) return {0, 0, "no memory for the decoder"};
    if (complete_ && !in.empty()) {
      // The last member may be followed by zeros that pad it to a block of a tape or disk.
      if (in[0] == '\0') return {in.size() - std::min(in.size(), zeros_to(in)), 0, nullptr};
      if (in[0] != '\x1f') return {0, 0, "what follows the last member is no gzip data"};
      (void)inflateReset(&stream_);
      complete_ = false;
    }
    stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(in.data()));
    stream_.avail_in = static_cast<uInt>(in.size());
    stream_.next_out = reinterpret_cast<Bytef*>(out);
    stream_.avail_out = static_cast<uInt>(std::min<size_t>(size, 1u << 30));
    const uInt room = stream_.avail_out;
    const int status = inflate(&stream_, Z_NO_FLUSH);
    Step step = {in.size() - stream_.avail_in, room - stream_.avail_out, nullptr};
    complete_ = status == Z_STREAM_END;
    if (status == Z_NEED_DICT) step.damage = "needs a dictionary";
    if (status < 0 && status != Z_BUF_ERROR) step.damage = stream_.msg ? stream_.msg : "damaged";
    return step;
  }
  bool complete() const override { return complete_; }

 private:
  // The number of bytes of `in` after its leading zeros.
  static size_t zeros_to(std::string_view in) {
    const size_t first = in.find_first_not_of('\0');
    return first == in.npos ? 0 : in.size() - first;
  }

  z_stream stream_ = {};
  bool ready_ = false, complete_ = false;
};

class XzCodec final : public Codec {
 public:
  XzCodec() { ready_ = lzma_stream_decoder(&stream_, kXzMemoryBytes, LZMA_CONCATENATED) == LZMA_OK; }
  ~XzCodec() override { lzma_end(&stream_); }
  XzCodec(const XzCodec&) = delete;
  XzCodec& operator=(const XzCodec&) = delete;

  Step step(std::string_view in, char* out, size_t size, bool input_ended) override {
    if (!ready_) return {0, 0, "no memory for the decoder"};
    stream_.next_in = reinterpret_cast<const uint8_t*>(in.data());
    stream_.avail_in = in.size();
    stream_.next_out = reinterpret_cast<uint8_t*>(out);
    stream_.avail_out = size;
    // liblzma learns only from the end of input that no further stream follows.
    const lzma_ret status = lzma_code(&stream_, input_ended ? LZMA_FINISH : LZMA_RUN);
    complete_ = status == LZMA_STREAM_END;
    return {in.size() - stream_.avail_in, size - stream_.avail_out, damage_of(status)};
  }
  bool complete() const override { return complete_; }

 private:
  static const char* damage_of(lzma_ret status) {
    switch (status) {
      case LZMA_OK:
      case LZMA_STREAM_END:
      case LZMA_BUF_ERROR:
        return nullptr;  // the caller detects the missing progress
      case LZMA_MEMLIMIT_ERROR:
        return "needs a dictionary of more than the 128 MiB allowed";
      case LZMA_MEM_ERROR:
        return "no memory for the decoder";
      case LZMA_FORMAT_ERROR:
        return "what stands here is no xz stream";
      case LZMA_OPTIONS_ERROR:
        return "uses options that this build does not know";
      default:
        return "the data is corrupt";
    }
  }

  lzma_stream stream_ = LZMA_STREAM_INIT;
  bool ready_ = false, complete_ = false;
};

std::unique_ptr<Codec> make_codec(Compression compression) {
  switch (compression) {
    case Compression::kZstd:
      return std::make_unique<ZstdCodec>();
    case Compression::kGzip:
      return std::make_unique<GzipCodec>();
    case Compression::kXz:
      return std::make_unique<XzCodec>();
    case Compression::kNone:
      break;
  }
  return nullptr;
}

const char* name_of(Compression compression) {
  switch (compression) {
    case Compression::kZstd:
      return "zstd";
    case Compression::kGzip:
      return "gzip";
    case Compression::kXz:
      return "xz";
    case Compression::kNone:
      break;
  }
  return "plain";
}

}  // namespace

struct Decompressor::Impl {
  std::string name;
  Compression compression = Compression::kNone;
  std::unique_ptr<Codec> codec;  // null: the bytes pass unchanged
  std::string head;              // owned bytes that precede those of `file`
  std::string_view in;           // bytes not decoded yet: in `head`, `buffer` or borrowed memory
  File file;                     // not open: `in` is all input
  std::unique_ptr<char[]> buffer;
  bool input_ended = false, done = false;
  uint64_t consumed = 0, produced = 0;
  std::optional<Problem> problem;
  int read_error = 0;
  bool is_wide = false;
  WideText wide;
  std::string text;  // decoded text; not returned yet from `text_at` on
  size_t text_at = 0;

  void stop(std::string what) {
    done = true;
    problem = Problem{name, consumed, std::move(what)};
  }

  ReadOutcome read_file(char* out, size_t size) {
    return file.is_open() ? file.read(out, size) : ReadOutcome{};
  }
  void stop_reading(int error) {
    read_error = error;
    stop("could not be read on: " + std::generic_category().message(error));
  }

  size_t copy(char* out, size_t size) {
    size_t given = std::min(size, in.size());
    if (given > 0) std::memcpy(out, in.data(), given);
    in.remove_prefix(given);
    if (given < size) {
      const ReadOutcome outcome = read_file(out + given, size - given);
      done = outcome.bytes < size - given;
      given += outcome.bytes;
      consumed += given;
      if (outcome.error != 0) stop_reading(outcome.error);
      return given;
    }
    consumed += given;
    return given;
  }

  void refill() {
    if (!buffer) buffer = std::make_unique_for_overwrite<char[]>(kInputBytes);
    const ReadOutcome outcome = read_file(buffer.get(), kInputBytes);
    in = std::string_view(buffer.get(), outcome.bytes);
    input_ended = in.empty();
    // Bytes before the error are decoded first; the next read fails again.
    if (outcome.error != 0 && in.empty()) stop_reading(outcome.error);
  }

  size_t decode(char* out, size_t size) {
    size_t given = 0;
    while (given < size && !done) {
      if (in.empty() && !input_ended) refill();
      if (done) break;
      const bool at_end = in.empty() && input_ended;
      if (at_end && codec->complete()) {
        done = true;
        break;
      }
      const Step step = codec->step(in, out + given, size - given, input_ended);
      in.remove_prefix(step.taken);
      consumed += step.taken;
      given += step.given;
      produced += step.given;
      check(step, at_end);
    }
    return given;
  }

  size_t read_bytes(char* out, size_t size) {
    if (done) return 0;
    return codec ? decode(out, size) : copy(out, size);
  }

  void add_narrow(std::string_view bytes) {
    const size_t tail = wide_tail(bytes);
    text = bytes.substr(0, tail);
    bytes.remove_prefix(tail);
    if (wide.takes(bytes)) wide.decode(bytes, text);
  }

  size_t read_text(char* out, size_t size) {
    size_t given = 0;
    std::string bytes;
    while (given < size) {
      if (text_at == text.size()) {
        text.clear();
        text_at = 0;
        bytes.resize(kWideBytes);
        bytes.resize(read_bytes(bytes.data(), bytes.size()));
        if (bytes.empty()) break;
        if (wide.takes(bytes))
          wide.decode(bytes, text);
        else
          add_narrow(bytes);
      }
      const size_t n = text.copy(out + given, size - given, text_at);
      given += n;
      text_at += n;
    }
    return given;
  }

  void check(const Step& step, bool at_end) {
    const char* format = name_of(compression);
    if (step.damage != nullptr) {
      stop(fmt::format("damaged {} data after {} bytes of text: {}", format, produced, step.damage));
    } else if (step.taken == 0 && step.given == 0 && !codec->complete()) {
      // Output space left without progress: the input is truncated, or (never observed) the decoder is stuck.
      stop(fmt::format("the {} {} after {} bytes of text", format,
                       at_end ? "data is cut off" : "decoder stands still", produced));
    } else if (produced > limits::kExpansionFreeBytes && produced / limits::kExpansionRatioMax > consumed) {
      stop(fmt::format("the {} data expands more than {} times: stopped after {} bytes of text", format,
                       limits::kExpansionRatioMax, produced));
    }
  }
};

Decompressor::Decompressor(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Decompressor::Decompressor(Decompressor&&) noexcept = default;
Decompressor& Decompressor::operator=(Decompressor&&) noexcept = default;
Decompressor::~Decompressor() = default;

Result<Decompressor> Decompressor::open(const SourceFile& file) {
  Result<File> opened = file.stream ? Result<File>(std::move(*file.stream)) : File::open(file.path);
  if (!opened) return tl::unexpected(std::move(opened.error()));
  if (!opened->is_open()) return fail(ErrorCode::kInvalid, file.path + ": can be read only once");
  auto impl = std::make_unique<Impl>();
  impl->name = file.path;
  impl->compression = file.compression;
  impl->codec = make_codec(file.compression);
  impl->head = file.head;
  impl->in = impl->head;
  impl->file = std::move(*opened);
  impl->is_wide = file.wide;
  return Decompressor(std::move(impl));
}

Decompressor Decompressor::over(std::string_view bytes, Compression compression, std::string name) {
  auto impl = std::make_unique<Impl>();
  impl->name = std::move(name);
  impl->compression = compression;
  impl->codec = make_codec(compression);
  impl->in = bytes;
  return Decompressor(std::move(impl));
}

size_t Decompressor::read(char* out, size_t size) {
  return impl_->is_wide ? impl_->read_text(out, size) : impl_->read_bytes(out, size);
}

bool Decompressor::read_up_to(size_t limit, std::string& out) {
  // Starts small: most files are small, and the buffer of a read is zeroed first.
  constexpr size_t kFirst = 64 << 10, kMost = 1 << 20;
  bool full = true;
  for (size_t step = kFirst; full && out.size() < limit; step = std::min(2 * step, kMost)) {
    const size_t had = out.size();
    out.resize(had + step);
    const size_t got = read(out.data() + had, step);
    out.resize(had + got);
    full = got == step;
  }
  return full;
}

const std::optional<Problem>& Decompressor::problem() const { return impl_->problem; }
int Decompressor::read_error() const { return impl_->read_error; }
uint64_t Decompressor::consumed() const { return impl_->consumed; }

Result<std::string> read_small_file(const SourceFile& file, size_t limit) {
  auto opened = Decompressor::open(file);
  if (!opened) return tl::unexpected(std::move(opened.error()));
  std::string text;
  constexpr size_t kPiece = 64 << 10;
  for (;;) {
    const size_t before = text.size();
    text.resize(before + std::min(kPiece, limit + 1 - before));
    const size_t n = opened->read(text.data() + before, text.size() - before);
    const bool ended = n < text.size() - before;
    text.resize(before + n);
    if (text.size() > limit)
      return fail(ErrorCode::kLimit, fmt::format("{}: is larger than {} bytes", file.path, limit));
    if (ended) break;
  }
  if (opened->problem()) return fail(ErrorCode::kInvalid, file.path + ": " + opened->problem()->what);
  return text;
}

}  // namespace culprit::ingest
