#include "core/job_scope.h"

#include <algorithm>

#include "core/logs/host_alias.h"

namespace culprit::core {

JobScope::JobScope(const detect::View& view, const JobFile& job) {
  for (const std::string& host : job.hosts) add_host(host);
  if (!view.by_rank)
    for (const detect::Unit& host : view.hosts) add_host(host.name);
  const logs::JobLog& log = *view.log;
  for (SourceId id = 0; id < log.sources().size(); ++id) {
    const SourceInfo& source = log.sources()[id];
    if (!source.agent.empty()) add_host(source.agent);
    if (source.kind == SourceKind::kKernel) continue;
    const auto [first, last] = log.span_of(id);
    add_time(first, last);
  }
}

void JobScope::add_host(std::string_view name) {
  if (!name.empty()) hosts_.insert(logs::common_host_name(name));
}

void JobScope::add_times(const JobSummary& other) { add_time(other.first_ns, other.last_ns); }

bool JobScope::has(std::string_view host) const {
  return hosts_.empty() || host.empty() || hosts_.contains(logs::common_host_name(host));
}

void JobScope::add_time(TimeNs first, TimeNs last) {
  if (first == kNoTime) return;
  first_ns_ = first_ns_ == kNoTime ? first : std::min(first_ns_, first);
  last_ns_ = last_ns_ == kNoTime ? last : std::max(last_ns_, last);
}

}  // namespace culprit::core
