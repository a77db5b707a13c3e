#include "core/detect/flight/view.h"

#include <algorithm>

namespace culprit::flight {

FlightView::FlightView(std::span<const FlightDump> dumps, std::vector<Problem>& problems)
    : dumps_(dumps), under_(dumps.size()), older_(dumps.size(), false) {
  look_over();
  if (!anything_) return;
  teams_ = teams_of(dumps_);
  std::erase_if(teams_, [](const FlightTeam& t) { return t.pipeline || t.progress.empty(); });
  find_older(problems);
}

void FlightView::look_over() {
  for (uint32_t d = 0; d < dumps_.size(); ++d) {
    const FlightDump& dump = dumps_[d];
    FlightUnder& under = under_[d];
    for (uint32_t i = 0; i < dump.ops.size(); ++i) {
      const FlightOp& op = dump.ops[i];
      if (op.done) continue;
      const bool send = op.p2p && dump.words[op.name].starts_with("send");
      (!op.p2p ? under.collective : send ? under.send : under.receive) = true;
      if (!send && under.first == UINT32_MAX) under.first = i;
    }
    for (const FlightGroup& g : dump.groups)
      if (dump.ops.empty() && g.enqueued && g.completed && *g.completed < *g.enqueued)
        under.collective = true;
    anything_ = anything_ || !under.none();
  }
}

// Finds outdated dumps. A rank only leaves an operation after all ranks entered it. If another rank's dump
// lacks its entry, that dump was written earlier.
void FlightView::find_older(std::vector<Problem>& problems) {
  for (const FlightTeam& team : teams_) {
    const auto most = std::max_element(
        team.progress.begin(), team.progress.end(),
        [](const GroupProgress& a, const GroupProgress& b) { return a.completed < b.completed; });
    for (const GroupProgress& at : team.progress)
      if (at.enqueued < most->completed && any_synchronises(*most, at.enqueued, most->completed))
        older_[at.dump] = true;
  }
  for (uint32_t d = 0; d < dumps_.size(); ++d)
    if (older_[d])
      problems.push_back({dumps_[d].file, std::nullopt,
                          "was written at another time than the dumps of its peers, which have "
                          "completed what it had not enqueued: it says nothing of the hang"});
  for (FlightTeam& team : teams_)
    std::erase_if(team.progress, [&](const GroupProgress& at) { return older_[at.dump]; });
}

bool FlightView::any_synchronises(const GroupProgress& at, int64_t after, int64_t to) const {
  bool seen = false;
  for (const FlightOp& op : dumps_[at.dump].ops) {
    if (op.group != at.group || op.p2p || op.seq <= after || op.seq > to) continue;
    seen = true;
    if (synchronises(dumps_[at.dump].words[op.name])) return true;
  }
  return !seen;
}

// Whether the job was running normally: all open operations were at most a second old when the dump was
// written. Copied files have other modification times, so the result is false for them.
bool FlightView::snapshot_of_work() const {
  constexpr TimeNs kBrief = kNsPerSecond;
  for (uint32_t d = 0; d < dumps_.size(); ++d) {
    if (under_[d].none() || older_[d]) continue;
    if (dumps_[d].written_ns == kNoTime) return false;
    for (const FlightOp& op : dumps_[d].ops) {
      if (op.done) continue;
      const TimeNs age = dumps_[d].written_ns - op.created_ns;
      if (op.created_ns == kNoTime || age < 0 || age > kBrief) return false;
    }
  }
  return true;
}

size_t FlightView::informative_dumps() const {
  return dumps_.size() - static_cast<size_t>(std::count(older_.begin(), older_.end(), true));
}

}  // namespace culprit::flight
