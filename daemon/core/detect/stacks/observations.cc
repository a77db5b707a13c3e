#include "core/detect/stacks/observations.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/detect/stacks/members.h"

namespace culprit::stacks {
namespace {

hang::ObservedState state_of(const Members& all_members, const Member& member) {
  const Found& found = member.found;
  if (found.stopped) return hang::ObservedState::kStopped;
  if (waits(found.where)) return hang::ObservedState::kInCall;
  if (is_open(found.where)) return hang::ObservedState::kUnknown;
  if (found.where == Where::kFile) return hang::ObservedState::kStorage;
  if (found.where == Where::kDeviceCall) return hang::ObservedState::kDeviceCall;
  return found.proven || (found.whole && !is_common_place(all_members, member))
             ? hang::ObservedState::kElsewhere
             : hang::ObservedState::kUnknown;
}

}  // namespace

StackObservations observations_of(const Samples& samples) {
  StackObservations out;
  const Members all_members = members_of(samples);
  for (const Member& member : all_members.members) {
    const Found& found = member.found;
    hang::Observation observation;
    observation.source = hang::ObservationSource::kStack;
    observation.rank = member.process->rank;
    observation.host = member.process->host;
    if (member.process->pid != 0) observation.pid = member.process->pid;
    observation.state = state_of(all_members, member);
    if (waits(found.where)) {
      observation.call.emplace();
      observation.call->op = found.op;
      observation.call->site = found.site;
    }
    std::string at;
    if (!found.frames.empty()) {
      const CodePlace& s = found.frames[std::min(found.tells, found.frames.size() - 1)];
      at = fmt::format(" ({})", shown(samples.frame(s.frame), s.line));
    }
    observation.doing = fmt::format("{}{}", found.stopped ? "stopped" : phrase(found.where), at);
    observation.at_ns = member.sample->time_ns;
    observation.evidence.host = member.process->host;
    observation.evidence.rank = member.process->rank;
    observation.evidence.file = member.sample->file;
    if (member.sample->line > 0) observation.evidence.line = member.sample->line;
    observation.evidence.text = fmt::format("{} is {}", name_of(*member.process), observation.doing);
    observation.evidence.time_ns = observation.at_ns;
    out.observations.push_back(std::move(observation));
  }
  for (const auto& [rank, reason] : samples.silent()) {
    hang::RankExit exit_found;
    exit_found.source = hang::ObservationSource::kStack;
    exit_found.kind = hang::ExitKind::kUnresponsive;
    exit_found.rank = rank;
    exit_found.reason = reason;
    out.exits.push_back(std::move(exit_found));
  }
  return out;
}

}  // namespace culprit::stacks
