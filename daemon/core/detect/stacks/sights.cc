#include "core/detect/stacks/sights.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/detect/stacks/crowd.h"

namespace culprit::stacks {
namespace {

scene::SightState state_of(const Crowd& crowd, const Member& member) {
  const Found& found = member.found;
  if (found.stopped) return scene::SightState::kStopped;
  if (waits(found.where)) return scene::SightState::kInCall;
  if (is_open(found.where)) return scene::SightState::kUnknown;
  if (found.where == Where::kFile) return scene::SightState::kStorage;
  if (found.where == Where::kDeviceCall) return scene::SightState::kDeviceCall;
  return found.proven || (found.whole && !is_common_place(crowd, member)) ? scene::SightState::kElsewhere
                                                                          : scene::SightState::kUnknown;
}

}  // namespace

StackSights sights_of(const Samples& samples) {
  StackSights out;
  const Crowd crowd = make_crowd(samples);
  for (const Member& member : crowd.members) {
    const Found& found = member.found;
    scene::Sight sight;
    sight.source = scene::SightSource::kStack;
    sight.rank = member.process->rank;
    sight.host = member.process->host;
    if (member.process->pid != 0) sight.pid = member.process->pid;
    sight.state = state_of(crowd, member);
    if (waits(found.where)) {
      sight.call.emplace();
      sight.call->op = found.op;
      sight.call->site = found.site;
    }
    std::string at;
    if (!found.frames.empty()) {
      const Standing& s = found.frames[std::min(found.tells, found.frames.size() - 1)];
      at = fmt::format(" ({})", shown(samples.frame(s.frame), s.line));
    }
    sight.doing = fmt::format("{}{}", found.stopped ? "stopped" : phrase(found.where), at);
    sight.at_ns = member.sample->time_ns;
    sight.evidence.host = member.process->host;
    sight.evidence.rank = member.process->rank;
    sight.evidence.file = member.sample->file;
    if (member.sample->line > 0) sight.evidence.line = member.sample->line;
    sight.evidence.text = fmt::format("{} is {}", name_of(*member.process), sight.doing);
    sight.evidence.time_ns = sight.at_ns;
    out.sights.push_back(std::move(sight));
  }
  for (const auto& [rank, reason] : samples.silent()) {
    scene::Departure departure;
    departure.source = scene::SightSource::kStack;
    departure.kind = scene::DepartureKind::kUnresponsive;
    departure.rank = rank;
    departure.reason = reason;
    out.departures.push_back(std::move(departure));
  }
  return out;
}

}  // namespace culprit::stacks
