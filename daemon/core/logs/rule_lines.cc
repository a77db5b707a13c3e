#include "core/logs/rule_lines.h"

#include <utility>

#include "base/limits.h"

namespace culprit::logs {

RuleLines::RuleLines() : lines_(limits::kRuleLineBytes), uncaught_(limits::kUncaughtBytes) {}

void RuleLines::add(RuleLine line, uint64_t form) {
  RetainedLines& to = line.rule == JobLog::kNoRule ? uncaught_ : lines_;
  to.add(std::move(line), form);
}

void RuleLines::trim() {
  lines_.trim();
  uncaught_.trim();
}

bool RuleLines::mark_death(const LogPlace& place) {
  const bool of_rule = lines_.mark_death(place);
  return uncaught_.mark_death(place) || of_rule;
}

void RuleLines::drop_quoted(const LogPlace& end, uint64_t begin) {
  const auto quoted = [&](const RuleLine& line) {
    return line.place.source == end.source && line.place.writer == end.writer && line.place.line >= begin &&
           line.place.line <= end.line;
  };
  lines_.discard(quoted);
  uncaught_.discard(quoted);
}

void renumber(std::vector<RuleLine>& lines, const std::vector<uint32_t>& to) {
  for (RuleLine& line : lines) line.rule = line.rule < to.size() ? to[line.rule] : JobLog::kNoRule;
  std::erase_if(lines, [](const RuleLine& line) { return line.rule == JobLog::kNoRule; });
}

}  // namespace culprit::logs
