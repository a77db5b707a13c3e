#include "core/logs/line_feed.h"

#include <algorithm>

#include "base/limits.h"

namespace culprit::logs {
namespace {

// Larger buffers are freed: thousands of sources wait with a line of a few hundred bytes.
constexpr size_t kKeptBuffer = 4096;

}  // namespace

// Keeps text without a newline.
void LineFeed::keep(std::string_view text) {
  const size_t most = limits::kLineBytes + 1;  // one byte more, which marks the line as cut
  const std::string_view kept = text.substr(0, most - std::min(most, rest_.size()));
  rest_ += kept;
  lost_ += text.size() - kept.size();
}

void LineFeed::emit(std::string_view lines, bool last, const Take& take) {
  const uint64_t size = lines.size() + lost_;
  take({source_, index_++, offset_, lines, size, last});
  offset_ += size;
  lost_ = 0;
}

void LineFeed::emit_rest(bool last, const Take& take) {
  emit(rest_, last, take);
  rest_.clear();
  if (rest_.capacity() > kKeptBuffer) rest_.shrink_to_fit();
}

void LineFeed::feed(std::string_view bytes, const Take& take) {
  while (!bytes.empty()) {
    const std::string_view part = bytes.substr(0, limits::kChunkBytes);
    bytes.remove_prefix(part.size());
    const size_t end = part.rfind('\n');
    if (end == std::string_view::npos) {
      keep(part);
      continue;
    }
    if (rest_.empty()) {
      emit(part.substr(0, end + 1), false, take);
    } else {
      const size_t first = part.find('\n');
      keep(part.substr(0, first));
      rest_ += part.substr(first, end + 1 - first);
      emit_rest(false, take);
    }
    keep(part.substr(end + 1));
  }
}

void LineFeed::break_line(const Take& take) {
  if (!rest_.empty()) emit_rest(false, take);
}

void LineFeed::end(const Take& take) { emit_rest(true, take); }

void LineFeed::pause(bool with_rest, const Take& take) {
  if (with_rest) return emit_rest(true, take);
  take({source_, index_++, offset_, {}, 0, true});
}

}  // namespace culprit::logs
