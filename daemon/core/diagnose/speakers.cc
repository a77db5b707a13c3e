#include "core/diagnose/speakers.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace culprit::diagnose {
namespace {

std::string whom_to_ask(const Finding& f, const std::vector<std::string>& targets) {
  const std::string hosts = targets.empty() ? std::string("the host") : shown_list(targets);
  if (!f.said_by.hosts.empty())
    return fmt::format("Ask the kernel's log of {} before you isolate it.", hosts);
  return fmt::format("Ask {}; confirm with the kernel's log or a device test of {} before you isolate it.",
                     shown_list(f.said_by.uids), hosts);
}

std::string if_confirmed(const std::string& remedy) {
  return remedy.empty() ? "" : " If it is confirmed: " + remedy;
}

}  // namespace

std::vector<Principal> users_of(const logs::JobLog& log, std::span<const logs::RuleLine* const> lines) {
  std::set<Principal> users;
  for (const logs::RuleLine* line : lines) {
    const auto& user = log.sources()[line->place.source].user;
    if (!user) return {};
    users.insert(*user);
  }
  return {users.begin(), users.end()};
}

std::vector<std::string> hearsay_of(const detect::View& view, std::span<const logs::RuleLine* const> lines,
                                    std::span<const uint32_t> accused) {
  if (accused.empty() || view.by_rank) return {};
  std::set<std::string> hosts;
  for (const logs::RuleLine* line : lines) {
    const std::string& agent = view.log->sources()[line->place.source].agent;
    if (agent.empty() || std::ranges::find(accused, view.host_named(agent)) != accused.end()) return {};
    hosts.insert(agent);
  }
  return {hosts.begin(), hosts.end()};
}

bool is_claim(const Finding& f) {
  if (f.said_by.uids.empty() && f.said_by.hosts.empty()) return false;
  if (f.action == ActionKind::kIsolate || f.detector == DetectorKind::kPlugin) return true;
  return f.as_kernel && !f.said_by.uids.empty();  // not a user's own words
}

void cap_claim(const Finding& f, Diagnosis& d) {
  if (!is_claim(f)) return;
  d.said_by = f.said_by;
  d.confidence = std::min(d.confidence, kClaimed);
  d.why.push_back(sentence(f.said_by));
  if (d.action.kind != ActionKind::kIsolate) return;
  d.action.kind = ActionKind::kCheck;
  d.remedy = whom_to_ask(f, d.action.targets) + if_confirmed(d.remedy);
}

void cap_claim(Finding& f) {
  if (!is_claim(f)) return;
  f.confidence = std::min(f.confidence, kClaimed);
  f.why.push_back(sentence(f.said_by));
  if (f.action != ActionKind::kIsolate) return;
  f.remedy = whom_to_ask(f, {}) + if_confirmed(f.remedy);
  f.action = ActionKind::kCheck;
}

}  // namespace culprit::diagnose
