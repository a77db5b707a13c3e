// A Scanner as the line parser uses it: rules found in a batch's lines. One thread.
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
  void take(const logs::ScannedText& line, logs::LogBatch& batch) override;

 private:
  Scanner scanner_;
  std::vector<logs::Known> known_;  // by rule
};

// What a rule's lines say to those who do not know the rule.
logs::Known known_by(const Rule& rule);

}  // namespace culprit::rules
