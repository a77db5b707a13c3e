// Interface for finding known wordings in lines while parsing; implemented by core/rules. One thread.
#pragma once

#include <cstddef>
#include <string_view>

#include "core/logs/batch.h"

namespace culprit::logs {

struct ScannedText {
  uint32_t index = 0;          // of the line in its batch
  size_t begin = 0, end = 0;   // of its message in the block
  std::string_view message;    // in the batch
  Level level = Level::kNone;  // from the line's header
  bool kernel = false;         // a kernel message
  bool event = false;          // a trace event
  Service service = Service::kNone;
  bool whole = false;  // `message` is a line of level fatal including its header
};

class LineScanner {
 public:
  virtual ~LineScanner() = default;
  // Starts a block of whole messages, one per line, borrowed until the last message was queried.
  virtual void begin(std::string_view block) = 0;
  // Whether on_line() needs a message that ends at `end`.
  bool wants(size_t end) const { return next_ <= end; }
  // Call for lines in order; appends matches to the batch's hits.
  virtual void on_line(const ScannedText& line, LogBatch& batch) = 0;

 protected:
  size_t next_ = 0;  // messages that end before this offset match nothing
};

}  // namespace culprit::logs
