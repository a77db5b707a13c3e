#include "core/detect/ras/ras_states.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/limits.h"
#include "base/text.h"
#include "core/detect/ras/observations.h"

namespace culprit::ras {
namespace {

// Limit on hosts with a known name.
constexpr size_t kRasNames = 16'384;

}  // namespace

void RasStates::add(RasInput input) {
  const RasState& state = input.state;
  ranks_ = std::max(ranks_, state.ranks);
  if (!state.address.empty() && !state.host.empty() && hosts_.size() < kRasNames)
    hosts_[state.address] = state.host;
  const auto known = of_host_.find(state.host);
  if (known == of_host_.end() && of_host_.size() >= limits::kRasHosts) {
    ++dropped_;
    const auto oldest = std::min_element(of_host_.begin(), of_host_.end(), [](const auto& a, const auto& b) {
      return a.second.state.at_ns < b.second.state.at_ns;
    });
    of_host_.erase(oldest);
  }
  of_host_[state.host] = std::move(input);
}

const RasInput* RasStates::newest() const {
  const RasInput* out = nullptr;
  for (const auto& [host, input] : of_host_)
    if (!out || input.state.at_ns > out->state.at_ns) out = &input;
  return out;
}

// Whether the state is from a standstill, and not from a moment between two steps.
bool RasStates::counts(const RasState& state, const Moment& moment) {
  if (moment.now == kNoTime) return true;
  if (moment.moved_ns != kNoTime) return state.at_ns > moment.moved_ns;
  TimeNs since = state.still >= 2 ? state.still_since_ns : state.at_ns;
  for (const RasCommState& comm : state.comms)
    if (comm.answers >= 2) since = std::min(since, comm.since_ns);
  return state.at_ns - since >= moment.after_ns;
}

std::optional<RasStates::RasJudgement> RasStates::judge(const Moment& moment) const {
  const RasInput* const input = newest();
  if (!input || !counts(input->state, moment)) return std::nullopt;
  ras::RasContext context;
  context.place = moment.place;
  context.file = input->file;
  context.offset = input->offset;
  context.once = moment.now == kNoTime;
  context.host = [this](const std::string& address) {
    const auto known = hosts_.find(address);
    return known == hosts_.end() ? std::optional<std::string>() : known->second;
  };
  RasJudgement out;
  out.verdict = ras::judge(input->state, context);
  out.exits = ras::observations_of(input->state, context).exits;
  out.all_answer =
      out.exits.empty() && input->state.exited_processes == 0 && input->state.dead_processes == 0;
  if (const uint64_t dropped = input->state.dropped; dropped > 0)
    out.problems.push_back({input->file, input->offset,
                            counted(dropped, "part") + " of RAS's answer not understood or not kept"});
  return out;
}

}  // namespace culprit::ras
