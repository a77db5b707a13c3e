// Texts of the data or of a model that a program prints: samples of prompts and completions. Such a text may
// hold a traceback, and no process of the job raised it. A text is known as quoted when a heading ends it
// ("=== end of sample ===") before the program's own lines go on. One thread.
#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/logs/job_log.h"

namespace culprit::logs {

class QuotedTexts {
 public:
  // A line of a record. If it ends a quoted text: the line at which that text begins.
  std::optional<uint64_t> take(uint32_t record, const FormShape& shape, bool own_time, uint64_t line) {
    if (!shape.quotes && !shape.heading && begins_.empty()) return std::nullopt;
    std::optional<uint64_t> begin;
    const bool ends = own_time || shape.progress || shape.heading;
    if (const auto at = begins_.find(record); at != begins_.end() && ends) {
      if (shape.heading && !own_time) begin = at->second;
      begins_.erase(at);
    }
    if (shape.quotes) begins_.try_emplace(record, line);
    return begin;
  }

 private:
  std::unordered_map<uint32_t, uint64_t> begins_;  // by record: of the text that is being quoted
};

// The lines of one such text.
struct QuotedLines {
  uint32_t source = 0, writer = 0;
  uint64_t begin = 0, end = 0;
};

// Templates that no line has outside of quoted texts are no evidence of anything.
void discount_quoted(const std::vector<QuotedLines>& quoted, std::vector<TemplateStats>& templates);

}  // namespace culprit::logs
