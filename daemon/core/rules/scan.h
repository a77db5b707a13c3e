// The rules found in a block of text, looking only at lines in which one of their literals stands: what
// matching costs by itself, for the benchmark. Pure.
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
  std::span<const RuleMatch> matches;  // may be empty: a literal stood there and nothing more
};

// `block` holds whole lines; `take` gets the lines in order.
void scan_block(Scanner& scanner, std::string_view block, logs::HeaderParser& headers,
                const std::function<void(const ScannedLine&)>& take);

}  // namespace culprit::rules
