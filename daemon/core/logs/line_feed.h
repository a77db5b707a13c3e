// A source's bytes, cut anywhere, as the whole lines that LineParser takes: keeps the line that has no end
// yet, as much of it as parsing looks at. Pure; one thread. What take() is given is borrowed for the call.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "model/batch.h"

namespace culprit::logs {

class LineFeed {
 public:
  using Take = std::function<void(const TextChunk&)>;

  explicit LineFeed(SourceId source = 0) : source_(source) {}

  void feed(std::string_view bytes, const Take& take);
  // What follows is not the rest of the line that has no end yet.
  void break_line(const Take& take);
  // Nothing follows.
  void end(const Take& take);
  // The source is quiet: records are complete; with_rest: so is the last line, which has no newline.
  void pause(bool with_rest, const Take& take);
  std::string_view rest() const { return rest_; }
  SourceId source() const { return source_; }

 private:
  void keep(std::string_view text);
  void give(std::string_view lines, bool last, const Take& take);
  void give_rest(bool last, const Take& take);

  SourceId source_;
  std::string rest_;   // of the line that has no end yet
  uint64_t lost_ = 0;  // bytes of that line beyond
  uint64_t offset_ = 0, index_ = 0;
};

}  // namespace culprit::logs
