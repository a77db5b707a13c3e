// Detects texts from the data or a model that a program prints: samples of prompts and completions. Such a
// text may contain a traceback that no process of the job raised. A text counts as quoted if a heading ends
// it ("=== end of sample ===") before the program's own lines continue. One thread.
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
  // Adds a line of a record. If it ends a quoted text, returns the line at which that text begins.
  std::optional<uint64_t> add_line(uint32_t record, const FormShape& shape, bool own_time, uint64_t line) {
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
  std::unordered_map<uint32_t, uint64_t> begins_;  // by record: first line of the current quoted text
};

// The lines of one quoted text.
struct QuotedLines {
  uint32_t source = 0, writer = 0;
  uint64_t begin = 0, end = 0;
};

// Clears the evidence of templates that occur only in quoted texts.
void discount_quoted(const std::vector<QuotedLines>& quoted, std::vector<TemplateStats>& templates);

}  // namespace culprit::logs
