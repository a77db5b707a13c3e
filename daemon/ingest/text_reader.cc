#include "ingest/text_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <system_error>
#include <utility>

#include "base/check.h"
#include "ingest/file.h"

namespace culprit::ingest {
namespace {

// The bytes needed for a chunk: the byte before it (is it a newline?), its range, the part of a line that may
// be kept beyond its end, and one byte more, which shows whether the line ends there.
struct Window {
  uint64_t begin = 0;   // in the text
  size_t capacity = 0;  // bytes, at most
  size_t limit = 0;     // end of the chunk's range in the window
};

Window window_of(uint64_t index, const ChunkRule& rule) {
  const size_t before = index > 0 ? 1 : 0;
  return {index * rule.chunk_bytes - before, before + rule.chunk_bytes + rule.line_bytes + 1,
          before + rule.chunk_bytes};
}

// Offset of the chunk's first line in the window; `have` if no line begins there.
size_t first_line(const char* data, size_t have, const Window& window, uint64_t index) {
  if (index == 0 || have == 0) return 0;
  // A line that begins after the range's last byte belongs to the next chunk.
  const void* newline = std::memchr(data, '\n', std::min(have, window.limit - 1));
  return newline ? static_cast<size_t>(static_cast<const char*>(newline) - data) + 1 : have;
}

// Sets the members of the chunk from the `have` bytes of its window. Fewer than the window's capacity: the
// text ends there.
void frame(ChunkBuffer& chunk, size_t have, uint64_t index, const ChunkRule& rule) {
  const Window window = window_of(index, rule);
  char* data = chunk.store.data();
  const size_t before = index > 0 ? 1 : 0;
  const size_t start = first_line(data, have, window, index);
  size_t stop = have;
  chunk.cut = false;
  if (start < have && have > window.limit) {
    stop = window.limit;
    if (data[window.limit - 1] != '\n') {
      const auto* newline =
          static_cast<const char*>(std::memchr(data + window.limit, '\n', have - window.limit));
      stop = newline ? static_cast<size_t>(newline - data) + 1 : have;
      chunk.cut = newline == nullptr && have == window.capacity;
      if (chunk.cut) data[stop - 1] = '\n';
    }
  }
  chunk.index = index;
  chunk.bytes = start < stop ? std::string_view(data + start, stop - start) : std::string_view();
  chunk.offset = window.begin + (chunk.bytes.empty() ? before : start);
  chunk.range_bytes = std::min(have, window.limit) - std::min(have, before);
}

}  // namespace

char* ByteStore::reserve(size_t size) {
  if (size > capacity_) {
    bytes_.reset();  // first, so that both are never allocated at once
    bytes_ = std::make_unique_for_overwrite<char[]>(size);
    capacity_ = size;
  }
  return bytes_.get();
}

uint64_t chunk_count(uint64_t size, const ChunkRule& rule) {
  return size == 0 ? 1 : (size - 1) / rule.chunk_bytes + 1;
}

bool is_stream(const SourceFile& file) {
  return file.compression != Compression::kNone || file.stream != nullptr ||
         (file.size == 0 && file.kind != FileKind::kEmpty);
}

Result<ChunkBuffer> read_plain_chunk(const SourceFile& file, uint64_t index, ChunkBuffer recycled,
                                     const ChunkRule& rule) {
  CULPRIT_CHECK(rule.chunk_bytes > 0);
  auto opened = File::open(file.path);
  if (!opened) return tl::unexpected(std::move(opened.error()));
  const Window window = window_of(index, rule);
  ChunkBuffer chunk = std::move(recycled);
  chunk.problem.reset();
  chunk.last = index + 1 >= chunk_count(file.size, rule);
  size_t wanted =
      file.size > window.begin ? std::min<uint64_t>(window.capacity, file.size - window.begin) : 0;
  // No line begins in a hole. A writer that continues after its log was truncated can leave a hole of
  // terabytes.
  if (index > 0 && wanted > 0 && opened->data_from(window.begin) >= window.begin + window.limit) {
    const size_t in_range = std::min(wanted, window.limit) - 1;
    chunk.store.reserve(1);
    frame(chunk, 0, index, rule);
    chunk.range_bytes = in_range;
    return chunk;
  }
  char* data = chunk.store.reserve(std::max<size_t>(wanted, 1));
  const ReadOutcome outcome = opened->read_at(data, wanted, window.begin);
  if (outcome.error != 0 && outcome.bytes == 0) return tl::unexpected(system_error(file.path, outcome.error));
  const uint64_t end = window.begin + outcome.bytes;
  const bool ends_here = end >= index * rule.chunk_bytes && outcome.bytes < window.limit;
  if (outcome.bytes < wanted && ends_here) {
    const std::string why = outcome.error != 0
                                ? "could not be read on: " + std::generic_category().message(outcome.error)
                                : fmt::format("was cut from {} bytes while it was read", file.size);
    chunk.problem = Problem{file.path, end, why};
  }
  frame(chunk, outcome.bytes, index, rule);
  return chunk;
}

struct StreamReader::Impl {
  Decompressor text;
  ChunkRule rule;
  uint64_t index = 0;
  std::string carry;  // bytes read beyond the last chunk's end, with the byte before it
  bool ended = false;
};

StreamReader::StreamReader(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
StreamReader::StreamReader(StreamReader&&) noexcept = default;
StreamReader& StreamReader::operator=(StreamReader&&) noexcept = default;
StreamReader::~StreamReader() = default;

Result<StreamReader> StreamReader::open(const SourceFile& file, const ChunkRule& rule) {
  auto text = Decompressor::open(file);
  if (!text) return tl::unexpected(std::move(text.error()));
  return over(std::move(*text), rule);
}

StreamReader StreamReader::over(Decompressor text, const ChunkRule& rule) {
  CULPRIT_CHECK(rule.chunk_bytes > 0);
  return StreamReader(std::make_unique<Impl>(Impl{std::move(text), rule, 0, {}, false}));
}

std::optional<ChunkBuffer> StreamReader::next(ChunkBuffer recycled) {
  Impl& self = *impl_;
  if (self.ended) return std::nullopt;
  const Window window = window_of(self.index, self.rule);
  ChunkBuffer chunk = std::move(recycled);
  chunk.problem.reset();
  char* data = chunk.store.reserve(window.capacity);
  size_t have = self.carry.size();
  std::memcpy(data, self.carry.data(), have);
  have += self.text.read(data + have, window.capacity - have);
  // Before framing, which may overwrite one of its bytes.
  self.carry.clear();
  if (have > window.limit) self.carry.assign(data + window.limit - 1, have - window.limit + 1);
  frame(chunk, have, self.index, self.rule);
  chunk.last = self.ended = have <= window.limit;
  ++self.index;
  return chunk;
}

const std::optional<Problem>& StreamReader::problem() const { return impl_->text.problem(); }
uint64_t StreamReader::consumed() const { return impl_->text.consumed(); }

}  // namespace culprit::ingest
