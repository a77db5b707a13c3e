#include "core/logs/line_feed.h"

#include <algorithm>
#include <utility>

#include "base/limits.h"
#include "core/logs/runtime_line.h"

namespace culprit::logs {
namespace {

// Larger buffers are freed: thousands of sources may each hold an incomplete line of a few hundred bytes.
constexpr size_t kRetainedBuffer = 4096;

}  // namespace

// Stores text without a newline. Runs of NULs are cut to the length that marks a hole; at a line's begin they
// are dropped.
void LineFeed::keep(std::string_view text) {
  while (!text.empty()) {
    append(text.substr(0, text.find('\0')));
    text.remove_prefix(std::min(text.find('\0'), text.size()));
    const size_t run = std::min(text.find_first_not_of('\0'), text.size());
    const size_t before = rest_.size() - (rest_.find_last_not_of('\0') + 1);
    const size_t retained =
        rest_.empty() ? 0 : std::min(run, limits::kHoleNuls - std::min(limits::kHoleNuls, before));
    append(text.substr(0, retained));
    lost_ += run - retained;
    text.remove_prefix(run);
  }
}

// Drops the middle of an overlong line. One byte more than parsing reads marks the line as cut.
void LineFeed::append(std::string_view text) {
  constexpr size_t kBegin = limits::kLineBytes - limits::kLineEndBytes, kEnd = limits::kLineEndBytes + 1;
  if (rest_.size() + text.size() > kBegin + 2 * kEnd) {
    const size_t missing = kBegin - std::min(kBegin, rest_.size());
    rest_ += text.substr(0, missing);
    text.remove_prefix(missing);
    const size_t whole = rest_.size() - kBegin + text.size();
    const size_t of_text = std::min(text.size(), kEnd);
    rest_.erase(kBegin, rest_.size() - kBegin - std::min(rest_.size() - kBegin, kEnd - of_text));
    text.remove_prefix(text.size() - of_text);
    lost_ += whole - (rest_.size() - kBegin) - text.size();
  }
  rest_ += text;
}

void LineFeed::emit(std::string_view lines, bool last, const Take& take) {
  const uint64_t size = lines.size() + lost_;
  take({source_, index_++, offset_, lines, size, last});
  offset_ += size;
  lost_ = 0;
}

// Whole lines: those from a runtime's unfinished parts on wait. A source of such parts alone waits for few.
void LineFeed::emit_whole(std::string_view lines, const Take& take) {
  std::string joined;
  if (!parts_.empty()) {
    joined = std::exchange(parts_, {}).append(lines);
    lines = joined;
  }
  const size_t end = may_have_parts(lines) ? unfinished_parts(lines) : lines.size();
  const size_t waits = lines.size() - end > limits::kLineBytes ? 0 : lines.size() - end;
  if (waits < lines.size()) emit(lines.substr(0, lines.size() - waits), false, take);
  parts_ = lines.substr(lines.size() - waits);
}

void LineFeed::emit_rest(bool last, const Take& take) {
  if (!parts_.empty()) rest_.insert(0, std::exchange(parts_, {}));
  emit(rest_, last, take);
  rest_.clear();
  if (rest_.capacity() > kRetainedBuffer) rest_.shrink_to_fit();
}

void LineFeed::feed(std::string_view bytes, const Take& take) {
  if (!wide_.takes(bytes)) return feed_text(bytes, take);
  std::string text;
  wide_.decode(bytes, text);
  feed_text(text, take);
}

void LineFeed::feed_text(std::string_view bytes, const Take& take) {
  while (!bytes.empty()) {
    const std::string_view part = bytes.substr(0, limits::kChunkBytes);
    bytes.remove_prefix(part.size());
    const size_t end = part.rfind('\n');
    if (end == std::string_view::npos) {
      keep(part);
      continue;
    }
    if (rest_.empty()) {
      emit_whole(part.substr(0, end + 1), take);
    } else {
      const size_t first = part.find('\n');
      keep(part.substr(0, first));
      rest_ += part.substr(first, end + 1 - first);
      std::string lines;
      lines.swap(rest_);
      emit_whole(lines, take);
    }
    keep(part.substr(end + 1));
  }
}

void LineFeed::break_line(const Take& take) {
  if (waiting() > 0) emit_rest(false, take);
}

void LineFeed::end(const Take& take) { emit_rest(true, take); }

void LineFeed::pause(bool with_rest, const Take& take) {
  if (with_rest) return emit_rest(true, take);
  take({source_, index_++, offset_, {}, 0, true});
}

}  // namespace culprit::logs
