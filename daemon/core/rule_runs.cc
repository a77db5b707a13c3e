#include "core/rule_runs.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "core/diagnose/signs.h"

namespace culprit::core {

RuleRuns::RuleRuns(std::shared_ptr<rules::Ruleset> rules, rules::FunctionWatch* watch, bool live)
    : rules_(std::move(rules)), live_(live) {
  if (!rules_) return;
  if (live_) on_arrival_.emplace(rules_, watch);
  in_time_.emplace(rules_, watch);
}

void RuleRuns::quarantine(const std::string& rule) {
  for (auto* run : {&on_arrival_, &in_time_})
    if (*run) (*run)->quarantine(rule);
}

void RuleRuns::overrun(const std::string& rule) {
  for (auto* run : {&on_arrival_, &in_time_})
    if (*run) (*run)->overrun(rule);
}

void RuleRuns::replace(std::shared_ptr<rules::Ruleset> rules, logs::JobLog& log) {
  std::vector<uint32_t> to(rules_ ? rules_->rules().size() : 0, logs::JobLog::kNoRule);
  for (uint32_t i = 0; i < to.size(); ++i) {
    const rules::Rule& old = rules_->rules()[i];
    const auto index = rules ? rules->find(old.id) : std::nullopt;
    if (index && rules->rules()[*index].text_hash == old.text_hash) to[i] = *index;
  }
  log.renumber_rules(to);
  for (auto* run : {&on_arrival_, &in_time_}) {
    if (run == &on_arrival_ && !live_) continue;
    if (!rules)
      run->reset();
    else if (*run)
      (*run)->replace(rules);
    else
      run->emplace(rules);
  }
  rules_ = std::move(rules);
}

std::vector<Finding> RuleRuns::find_new(const logs::JobLog& log) {
  std::vector<Finding> out;
  if (!on_arrival_) return out;
  const uint64_t from = std::exchange(looked_at_, log.rule_lines_added());
  for (const logs::RuleLine& line : log.rule_lines_since(from)) {
    const rules::Rule& rule = on_arrival_->ruleset().rules()[line.rule];
    if (line.mentioned || !on_arrival_->add(diagnose::hit_of(log, line)) ||
        rule.severity < Severity::kError || line.handled)
      continue;
    out.push_back(diagnose::finding_of(log, line, rule));
  }
  return out;
}

uint64_t RuleRuns::dropped_faults(const logs::JobLog& log) const {
  uint64_t dropped = log.dropped_of_rule(logs::JobLog::kNoRule);
  for (uint32_t rule = 0; rules_ && rule < rules_->rules().size(); ++rule)
    if (rules_->rules()[rule].severity >= Severity::kError) dropped += log.dropped_of_rule(rule);
  return dropped;
}

void RuleRuns::add_troubles(std::vector<Problem>& out) const {
  std::map<std::string, Problem> by_rule;
  for (const auto* run : {&on_arrival_, &in_time_}) {
    if (!*run) continue;
    for (const rules::RuleTrouble& t : (*run)->troubles()) {
      const auto index = (*run)->ruleset().find(t.rule);
      by_rule[t.rule] = {index ? (*run)->ruleset().rules()[*index].place.file : "", std::nullopt,
                         fmt::format("{} ({} errors, {} overruns{})", t.what, t.errors, t.overruns,
                                     t.quarantined ? ": not asked any more" : "")};
    }
  }
  for (auto& [rule, problem] : by_rule) out.push_back(std::move(problem));
  if (in_time_ && in_time_->dropped() > 0)
    out.push_back({"", std::nullopt,
                   fmt::format("{} hits found no room in the windows of their rules", in_time_->dropped())});
}

}  // namespace culprit::core
