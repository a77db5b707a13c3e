// Makes a LogBatch of a piece of text: splits lines, strips headers, masks messages. The result depends only
// on the text and the options, never on what the parser saw before: several threads with a parser each give
// the same as one. What depends on earlier lines (records of several lines) is left to the engine. A parser
// belongs to one thread.
#pragma once

#include <memory>

#include "core/logs/batch.h"
#include "core/logs/header.h"
#include "core/logs/line_scanner.h"
#include "model/batch.h"

namespace culprit::logs {

struct ParseOptions {
  Zone zone;                  // of times that name none
  TimeNs since_ns = kNoTime;  // lines outside are skipped; kNoTime: no bound
  TimeNs until_ns = kNoTime;
};

class LineParser {
 public:
  // Without a scanner no line is a hit of a rule.
  explicit LineParser(const ParseOptions& options, std::unique_ptr<LineScanner> scanner = nullptr);
  ~LineParser();
  LineParser(LineParser&&) noexcept;

  // `batch` is overwritten; its memory is used again.
  void parse(const TextChunk& chunk, const SourceInfo& source, LogBatch& batch);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace culprit::logs
