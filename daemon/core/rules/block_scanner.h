// A Scanner for the line parser: finds rules in the lines of a batch. One thread.
#pragma once

#include <memory>
#include <vector>

#include "core/logs/line_scanner.h"
#include "core/rules/ruleset.h"

namespace culprit::rules {

class BlockScanner final : public logs::LineScanner {
 public:
  explicit BlockScanner(const Ruleset& ruleset);
  void begin(std::string_view block) override;
  void on_line(const logs::ScannedText& line, logs::LogBatch& batch) override;

 private:
  Scanner scanner_;
  std::vector<logs::Meaning> known_;  // by rule
};

// The meaning of a rule's lines for code that does not know the rule.
logs::Meaning known_by(const Rule& rule);

}  // namespace culprit::rules
