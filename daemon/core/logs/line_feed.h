// Converts a source's bytes, in pieces of any size, to whole lines for LineParser, and UTF-16 to UTF-8.
// Stores the incomplete last line: its beginning and end, up to the length that parsing reads, with runs of
// NULs shortened. Parts of a container runtime's line wait for the last part, up to the same length. Pure;
// one thread. The argument of `take` is borrowed for the call.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "base/wide_text.h"
#include "model/batch.h"

namespace culprit::logs {

class LineFeed {
 public:
  using Take = std::function<void(const TextChunk&)>;

  explicit LineFeed(SourceId source = 0) : source_(source) {}

  void feed(std::string_view bytes, const Take& take);
  // Discontinuity: the next bytes do not continue the incomplete line.
  void break_line(const Take& take);
  // The source has ended.
  void end(const Take& take);
  // The source is quiet, so its records are complete. with_rest: the last line is complete without a newline.
  void pause(bool with_rest, const Take& take);
  // The incomplete line, without parts that wait.
  std::string_view rest() const { return rest_; }
  // Bytes of memory for what waits.
  size_t waiting() const { return rest_.size() + parts_.size(); }
  SourceId source() const { return source_; }

 private:
  void feed_text(std::string_view text, const Take& take);
  void keep(std::string_view text);
  void append(std::string_view text);
  void emit(std::string_view lines, bool last, const Take& take);
  void emit_whole(std::string_view lines, const Take& take);
  void emit_rest(bool last, const Take& take);

  SourceId source_;
  WideText wide_;
  std::string rest_;   // of the incomplete line
  std::string parts_;  // lines before it, from a runtime's first part on whose last part is not here yet
  uint64_t lost_ = 0;  // bytes of that line beyond the limit
  uint64_t offset_ = 0, index_ = 0;
};

}  // namespace culprit::logs
