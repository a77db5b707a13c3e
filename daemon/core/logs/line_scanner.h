// What looks for known wordings in the lines of a block while they are parsed: core/rules does. One thread.
#pragma once

#include <cstddef>
#include <string_view>

#include "core/logs/batch.h"

namespace culprit::logs {

struct ScannedText {
  uint32_t index = 0;          // of the line in its batch
  size_t begin = 0, end = 0;   // of the line in the block
  std::string_view message;    // within it
  Level level = Level::kNone;  // as its header says
  bool kernel = false;         // a kernel's message
  bool event = false;          // an event of a trace
};

class LineScanner {
 public:
  virtual ~LineScanner() = default;
  // A block of whole lines, borrowed until the next one.
  virtual void begin(std::string_view block) = 0;
  // Whether a line that ends at `end` need be given to take().
  bool wants(size_t end) const { return next_ <= end; }
  // Lines come in order; what is found is appended to the batch's hits.
  virtual void take(const ScannedText& line, LogBatch& batch) = 0;

 protected:
  size_t next_ = 0;  // no line that ends before it has anything
};

}  // namespace culprit::logs
