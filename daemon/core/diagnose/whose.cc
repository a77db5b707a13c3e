#include "core/diagnose/whose.h"

#include <algorithm>

#include "core/diagnose/subject.h"

namespace culprit::diagnose {
namespace {

bool has_hole(const rules::Rule& rule, std::string_view name) {
  return std::ranges::find(rule.holes, name) != rule.holes.end();
}

}  // namespace

Whose::Whose(const logs::JobLog& log, const rules::Ruleset& rules) {
  for (const logs::RuleLine& line : log.rule_lines()) {
    if (line.mentioned) continue;
    const rules::Rule& rule = rules.rules()[line.rule];
    const Place place{line.place.source, line.place.line};
    if (has_hole(rule, "failed_rank")) ends_[place] = number_in(hole_of(rule, line, "failed_rank"));
  }
}

std::optional<uint32_t> Whose::first_to_fail(const logs::RuleLine& line) const {
  const auto at = ends_.upper_bound({line.place.source, line.place.line});
  return at != ends_.end() && at->first.first == line.place.source ? at->second : std::nullopt;
}

}  // namespace culprit::diagnose
