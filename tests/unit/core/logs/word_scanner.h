// Finds "rules" by words only, in place of core/rules: 0 for a message about an error, 1 for an exit code, 2
// (a general rule) for either.
#pragma once

#include <memory>

#include "core/logs/line_scanner.h"

namespace culprit::logs {

class WordScanner final : public LineScanner {
 public:
  void begin(std::string_view) override {}
  void on_line(const ScannedText& line, LogBatch& batch) override {
    const bool error = line.message.find("Error: ") != std::string_view::npos;
    const bool code = line.message.find("exitcode") != std::string_view::npos;
    if (error) add(line, batch, 0, false);
    if (code) add(line, batch, 1, false);
    if (error || code) add(line, batch, 2, true);
  }
  static std::unique_ptr<LineScanner> make() { return std::make_unique<WordScanner>(); }

 private:
  static void add(const ScannedText& line, LogBatch& batch, uint32_t rule, bool general) {
    const auto first = static_cast<uint32_t>(batch.holes.size());
    batch.holes.push_back(line.message.substr(0, 3));
    batch.hits.push_back({line.index, rule, first, 1, Meaning::kFault, line.level, general, line.kernel});
  }
};

}  // namespace culprit::logs
