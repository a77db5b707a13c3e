// Finds the rules in a block of text, with work only for lines that contain a literal: the pure cost of
// matching, for the benchmark. Pure.
#pragma once

#include <functional>
#include <span>
#include <string_view>

#include "core/logs/header.h"
#include "core/rules/matcher.h"

namespace culprit::rules {

struct ScannedLine {
  size_t begin = 0, end = 0;  // in the block
  logs::Header header;
  std::string_view message;
  std::span<const RuleMatch> matches;  // may be empty: the line has a literal but no match
};

// `block` contains whole lines; `take` receives the lines in order.
void scan_block(Scanner& scanner, std::string_view block, logs::HeaderParser& headers,
                const std::function<void(const ScannedLine&)>& take);

}  // namespace culprit::rules
