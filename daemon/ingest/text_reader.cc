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

constexpr size_t kSearchPart = 64 << 10;

// The bytes needed for a chunk: the byte before it (a newline or not), its range, the kept part of a line
// beyond its end, and one more byte, which shows whether the line ends there.
struct Window {
  uint64_t begin = 0;   // offset in the text
  size_t capacity = 0;  // bytes, at most
  size_t limit = 0;     // end of the chunk's range in the window
};

Window window_of(uint64_t index, const ChunkRule& rule) {
  const size_t before = index > 0 ? 1 : 0;
  return {index * rule.chunk_bytes - before, before + rule.chunk_bytes + rule.line_bytes + 1,
          before + rule.chunk_bytes};
}

// Offset of the chunk's first line in the window; `have` if no line begins in the chunk.
size_t first_line(const char* data, size_t have, const Window& window, uint64_t index) {
  if (index == 0 || have == 0) return 0;
  // A line that begins after the range's last byte belongs to the next chunk.
  const void* newline = std::memchr(data, '\n', std::min(have, window.limit - 1));
  return newline ? static_cast<size_t>(static_cast<const char*>(newline) - data) + 1 : have;
}

// Sets the members of the chunk from the `have` bytes of its window. If `have` is less than the window's
// capacity, the text ends there.
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

// Replaces the last bytes that a chunk has of a cut line with the line's end.
class LineEnd {
 public:
  LineEnd(ChunkBuffer& chunk, const ChunkRule& rule)
      : bytes_(std::min(limits::kLineEndBytes, rule.line_bytes / 4)),
        at_(chunk.store.data() + (chunk.bytes.data() - chunk.store.data()) + chunk.bytes.size() - 1 - bytes_),
        end_(at_, bytes_) {}

  // The next bytes of the text. Returns the number of bytes up to the end of the line; all bytes if the line
  // does not end in `part`.
  size_t add(std::string_view part) {
    const size_t size = std::min(part.find('\n'), part.size());
    end_.append(part.substr(size - std::min(size, bytes_), std::min(size, bytes_)));
    end_.erase(0, end_.size() - bytes_);
    return size;
  }
  void skip_hole() { end_.assign(bytes_, '\0'); }
  void write() { end_.copy(at_, bytes_); }

 private:
  size_t bytes_;
  char* at_;
  std::string end_;
};

// Limit of the search for a line's end. In a plain file other chunks read these bytes again, and reading a
// file's first lines must not read a terabyte.
constexpr size_t kLineSearchBytes = 64 << 20;

void read_line_end(const File& file, ChunkBuffer& chunk, uint64_t at, const ChunkRule& rule) {
  LineEnd line(chunk, rule);
  std::string part;
  for (size_t read = 0; read < kLineSearchBytes; read += part.size()) {
    if (const uint64_t data = file.data_from(at); data > at) {
      line.skip_hole();
      at = data;
    }
    part.resize(kSearchPart);
    part.resize(file.read_at(part.data(), part.size(), at).bytes);
    const size_t size = line.add(part);
    if (size < part.size() || part.empty()) return line.write();
    at += part.size();
  }
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
  return file.compression != Compression::kNone || file.wide || file.stream != nullptr ||
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
  // Skips holes, where no line begins: a writer that continues after its log was truncated can leave
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
  // A newline replaced the byte at the end of the window.
  if (chunk.cut) read_line_end(*opened, chunk, window.begin + window.capacity - 1, rule);
  return chunk;
}

struct StreamReader::Impl {
  Decompressor text;
  ChunkRule rule;
  uint64_t index = 0;
  std::string carry;  // bytes read beyond the last chunk's end, with the byte before it
  bool ended = false;
  uint64_t empty = 0;       // number of next chunks that lie within a line of an earlier chunk
  uint64_t last_range = 0;  // range of the last of these chunks, if the text ends in it

  void skip_line(ChunkBuffer& chunk, const Window& window);
};

// Reads up to the end of the line that the chunk cuts.
void StreamReader::Impl::skip_line(ChunkBuffer& chunk, const Window& window) {
  LineEnd line(chunk, rule);
  uint64_t at = window.begin + window.capacity - 1;
  std::string part(1, carry.back()), next;
  size_t size = line.add(part);
  const uint64_t until = at + kLineSearchBytes;
  while (size == part.size() && at < until) {
    at += part.size();
    // Bounded so that the bytes read fit into the window of their chunk.
    next.resize(std::min(kSearchPart, std::max<size_t>(rule.line_bytes, 1)));
    next.resize(text.read(next.data(), next.size()));
    part.swap(next);
    if (part.empty()) break;
    size = line.add(part);
  }
  const bool found = size < part.size() || part.empty();
  if (found) line.write();
  const uint64_t c = rule.chunk_bytes;
  // If no byte follows the line, no chunk follows.
  if (found && size + 1 == part.size()) {
    next.resize(1);
    next.resize(text.read(next.data(), 1));
    part += next;
  }
  if (found && part.size() <= size + 1) {
    const uint64_t end = at + part.size(), last = (end - 1) / c;
    empty = last - index;
    last_range = end - last * c;
    return;
  }
  // The chunk in which the next line begins, or in which the search ended.
  const uint64_t goes_on = (at + size + (found ? 1 : 0)) / c;
  empty = goes_on - index - 1;
  const uint64_t begin = goes_on * c - 1;
  carry.assign(begin < at ? at - begin : 0, '\0');
  carry += std::string_view(part).substr(begin < at ? 0 : begin - at);
}

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
  if (self.empty > 0) {
    chunk.store.reserve(1);
    frame(chunk, 0, self.index, self.rule);
    chunk.last = self.ended = --self.empty == 0 && self.last_range > 0;
    chunk.range_bytes = chunk.last ? self.last_range : self.rule.chunk_bytes;
    ++self.index;
    return chunk;
  }
  char* data = chunk.store.reserve(window.capacity);
  size_t have = self.carry.size();
  std::memcpy(data, self.carry.data(), have);
  have += self.text.read(data + have, window.capacity - have);
  // Before frame(), which may overwrite a byte of the carry.
  self.carry.clear();
  if (have > window.limit) self.carry.assign(data + window.limit - 1, have - window.limit + 1);
  frame(chunk, have, self.index, self.rule);
  chunk.last = self.ended = have <= window.limit;
  if (chunk.cut) self.skip_line(chunk, window);
  ++self.index;
  return chunk;
}

const std::optional<Problem>& StreamReader::problem() const { return impl_->text.problem(); }
uint64_t StreamReader::consumed() const { return impl_->text.consumed(); }

}  // namespace culprit::ingest
