// Parses a piece of text to a LogBatch: splits lines, strips headers, masks messages. The result depends only
// on the text and the options, not on earlier text: several threads with one parser each give the result of
// one. The engine joins records of several lines. A parser belongs to one thread.
#pragma once

#include <memory>

#include "core/logs/batch.h"
#include "core/logs/header.h"
#include "core/logs/line_scanner.h"
#include "model/batch.h"

namespace culprit::logs {

struct ParseOptions {
  Zone zone;                  // for times without a zone
  TimeNs since_ns = kNoTime;  // lines outside are skipped; kNoTime: no limit
  TimeNs until_ns = kNoTime;
};

class LineParser {
 public:
  // Without a scanner no line matches a rule.
  explicit LineParser(const ParseOptions& options, std::unique_ptr<LineScanner> scanner = nullptr);
  ~LineParser();
  LineParser(LineParser&&) noexcept;

  // Overwrites `batch` and reuses its memory.
  void parse(const TextChunk& chunk, const SourceInfo& source, LogBatch& batch);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace culprit::logs
