// Common helpers of this room's tests: a temporary folder, compressors, and a plain implementation of the
// rule of chunks for comparison.
#pragma once

#include <lzma.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include "ingest/text_reader.h"

namespace culprit::ingest::testing {

class TempFolder {
 public:
  TempFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "culprit-ingest-XXXXXX").string();
    path_ = ::mkdtemp(name.data());
  }
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;
  ~TempFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  std::string path(const std::string& below = "") const {
    return below.empty() ? path_ : path_ + "/" + below;
  }
  std::string write(const std::string& below, std::string_view bytes) const {
    std::filesystem::create_directories(std::filesystem::path(path(below)).parent_path());
    std::ofstream(path(below), std::ios::binary) << bytes;
    return path(below);
  }

 private:
  std::string path_;
};

// With a checksum, as the zstd program writes it.
inline std::string zstd(std::string_view text) {
  ZSTD_CCtx* context = ZSTD_createCCtx();
  (void)ZSTD_CCtx_setParameter(context, ZSTD_c_checksumFlag, 1);
  std::string out(ZSTD_compressBound(text.size()), '\0');
  out.resize(ZSTD_compress2(context, out.data(), out.size(), text.data(), text.size()));
  ZSTD_freeCCtx(context);
  return out;
}

inline std::string gzip(std::string_view text) {
  z_stream stream = {};
  (void)deflateInit2(&stream, 6, Z_DEFLATED, 16 + 15, 8, Z_DEFAULT_STRATEGY);
  std::string out(deflateBound(&stream, text.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  (void)deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  (void)deflateEnd(&stream);
  return out;
}

inline std::string xz(std::string_view text) {
  std::string out(lzma_stream_buffer_bound(text.size()), '\0');
  size_t size = 0;
  (void)lzma_easy_buffer_encode(1, LZMA_CHECK_CRC64, nullptr, reinterpret_cast<const uint8_t*>(text.data()),
                                text.size(), reinterpret_cast<uint8_t*>(out.data()), &size, out.size());
  out.resize(size);
  return out;
}

inline std::string compress(std::string_view text, Compression compression) {
  switch (compression) {
    case Compression::kZstd:
      return zstd(text);
    case Compression::kGzip:
      return gzip(text);
    case Compression::kXz:
      return xz(text);
    case Compression::kNone:
      break;
  }
  return std::string(text);
}

constexpr Compression kAllCompressions[] = {Compression::kNone, Compression::kZstd, Compression::kGzip,
                                            Compression::kXz};

// A chunk's values, without its memory.
struct Seen {
  uint64_t index, offset, range_bytes;
  bool last, cut;
  std::string bytes;
  bool operator==(const Seen&) const = default;
};
inline std::ostream& operator<<(std::ostream& out, const Seen& seen) {
  return out << seen.index << " @" << seen.offset << " of " << seen.range_bytes << (seen.last ? " last" : "")
             << (seen.cut ? " cut" : "") << " '" << seen.bytes << "'";
}
inline Seen seen(const ChunkBuffer& chunk) {
  return {chunk.index, chunk.offset, chunk.range_bytes, chunk.last, chunk.cut, std::string(chunk.bytes)};
}

inline std::vector<Seen> read_stream(StreamReader reader) {
  std::vector<Seen> all;
  ChunkBuffer recycled;
  while (auto chunk = reader.next(std::move(recycled))) {
    all.push_back(seen(*chunk));
    recycled = std::move(*chunk);
  }
  return all;
}

// The rule of chunks as documented, line by line.
inline std::vector<Seen> expected_chunks(std::string_view text, const ChunkRule& rule) {
  std::vector<Seen> all(chunk_count(text.size(), rule));
  for (uint64_t i = 0; i < all.size(); ++i) {
    const uint64_t begin = i * rule.chunk_bytes;
    all[i] = {i,     begin, std::min<uint64_t>(rule.chunk_bytes, text.size() - begin), i + 1 == all.size(),
              false, ""};
  }
  for (size_t at = 0; at < text.size();) {
    const size_t newline = text.find('\n', at);
    const size_t end = newline == text.npos ? text.size() : newline + 1;
    Seen& chunk = all[at / rule.chunk_bytes];
    const size_t most = (chunk.index + 1) * rule.chunk_bytes + rule.line_bytes;
    if (chunk.bytes.empty()) chunk.offset = at;
    chunk.cut = end > most + 1 || (end == most + 1 && newline == text.npos);
    if (chunk.cut) {
      const size_t of_end = rule.line_bytes / 4, last = newline == text.npos ? end : newline;
      chunk.bytes += text.substr(at, most - at - of_end);
      chunk.bytes += text.substr(last - of_end, of_end);
      chunk.bytes += '\n';
    } else {
      chunk.bytes += text.substr(at, end - at);
    }
    at = end;
  }
  return all;
}

}  // namespace culprit::ingest::testing
