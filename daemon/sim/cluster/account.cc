#include "sim/cluster/account.h"

#include <algorithm>

namespace culprit::sim {

const char* to_string(Phase phase) {
  constexpr const char* kNames[] = {"useful", "save",   "slow",  "rolled-back", "detect",
                                    "stop",   "decide", "start", "no-hosts",    "person"};
  return phase < Phase::kCount ? kNames[static_cast<size_t>(phase)] : "";
}

void TimeTable::add(const TimeTable& other) {
  for (size_t cause = 0; cause < rows_.size() && cause < other.rows_.size(); ++cause)
    for (size_t phase = 0; phase < kPhases; ++phase) rows_[cause][phase] += other.rows_[cause][phase];
}

TimeNs TimeTable::of(Phase phase) const {
  TimeNs sum = 0;
  for (const auto& row : rows_) sum += row[static_cast<size_t>(phase)];
  return sum;
}

TimeNs TimeTable::of_cause(size_t cause) const {
  TimeNs sum = 0;
  for (size_t phase = 1; phase < kPhases; ++phase) sum += rows_[cause][phase];
  return sum;
}

TimeNs TimeTable::all() const {
  TimeNs sum = 0;
  for (const auto& row : rows_)
    for (const TimeNs ns : row) sum += ns;
  return sum;
}

void Training::advance(TimeNs wall_ns, int64_t slow_percent, size_t slow_cause, TimeTable& table) {
  while (wall_ns > 0) {
    const TimeNs step =
        std::min(wall_ns, at_ns_ < every_ns_ ? every_ns_ - at_ns_ : every_ns_ + stall_ns_ - at_ns_);
    if (at_ns_ < every_ns_)
      add_span(step, slow_percent, slow_cause, table);
    else
      table.add(0, Phase::kSave, step);
    at_ns_ += step;
    wall_ns -= step;
    if (at_ns_ == every_ns_ + stall_ns_) save();
  }
}

void Training::add_span(TimeNs wall_ns, int64_t slow_percent, size_t slow_cause, TimeTable& table) {
  const TimeNs work = slow_percent == 0 ? wall_ns : wall_ns / (100 + slow_percent) * 100;
  if (wall_ns != work) table.add(slow_cause, Phase::kSlow, wall_ns - work);
  unsaved_ns_ += work;
  table.add(0, Phase::kUseful, work);
}

void Training::save() {
  saved_ns_ = unsaved_ns_;
  unsaved_ns_ = at_ns_ = 0;
  ++saves_;
}

void Training::fail(size_t cause, TimeTable& table) {
  table.add(0, Phase::kUseful, -unsaved_ns_);
  table.add(cause, Phase::kRolledBack, unsaved_ns_);
  unsaved_ns_ = at_ns_ = 0;
}

void Training::fall_back(size_t cause, TimeTable& table) {
  table.add(0, Phase::kUseful, -saved_ns_);
  table.add(cause, Phase::kRolledBack, saved_ns_);
  saved_ns_ = 0;
}

}  // namespace culprit::sim
