#include "app/jobs/job_agents.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/limits.h"
#include "base/text.h"

namespace culprit::app {
namespace {

// Limit of agents per host in logs; several agents may read one shared file.
constexpr size_t kTellers = 4;

}  // namespace

std::optional<SourceId> JobAgents::source(const SourceKey& key) const {
  const auto known = sources_.find(key);
  return known == sources_.end() ? std::nullopt : std::optional(known->second);
}

void JobAgents::note_host(const std::string& agent, const std::string& host) {
  if (host.empty() || host == agent || tellers_.size() >= limits::kWriters) return;
  std::vector<std::string>& known = tellers_[host];
  if (known.size() < kTellers && std::find(known.begin(), known.end(), agent) == known.end())
    known.push_back(agent);
}

void JobAgents::add_agents_of(const std::string& host, std::vector<std::string>& out) const {
  const auto add = [&](const std::string& name) {
    if (std::find(out.begin(), out.end(), name) == out.end()) out.push_back(name);
  };
  const auto others = tellers_.find(host);
  if (others == tellers_.end() || hosts_.contains(host)) add(host);
  if (others == tellers_.end()) return;
  for (const std::string& agent : others->second) add(agent);
}

detect::Unheard JobAgents::unheard(const Away& away) const {
  detect::Unheard out;
  for (const auto& [host, since] : away) out.insert(host);
  for (const auto& [host, agents] : tellers_)
    if (!hosts_.contains(host) &&
        std::all_of(agents.begin(), agents.end(), [&](const std::string& a) { return away.contains(a); }))
      out.insert(host);
  return out;
}

bool JobAgents::hears_progress(const Away& away) const {
  if (away.empty() || progress_of_.empty()) return true;
  return std::any_of(progress_of_.begin(), progress_of_.end(),
                     [&](const std::string& host) { return !away.contains(host); });
}

void report_away(const JobAgents::Away& away, Report& report) {
  constexpr size_t kNamed = 8;
  size_t named = 0;
  for (const auto& [host, since] : away)
    if (named++ < kNamed)
      report.missing.push_back(
          fmt::format("{}'s agent has been away since {} UTC; what it wrote since is unknown", host,
                      format_time(since).substr(11, 8)));
  if (named > kNamed)
    report.missing.push_back(fmt::format("{} more are away", counted(named - kNamed, "agent")));
}

}  // namespace culprit::app
