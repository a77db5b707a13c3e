// Where a simulated job's time goes: each nanosecond is in one phase and has one cause, so the parts add up
// to the wall time exactly. Values; one owner.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "base/time.h"

namespace culprit::sim {

enum class Phase : uint8_t {
  kUseful,      // training that is never lost
  kSave,        // stopped for a checkpoint
  kSlow,        // longer steps than without the slow host
  kRolledBack,  // training since the checkpoint that was used
  kDetect,      // failed, and not ended
  kStop,        // its processes are being ended
  kDecide,      // ended, and no order to run again
  kStart,       // from that order until it trains
  kNoHosts,     // an order, but too few hosts
  kPerson,      // held: a person has to act
  kCount
};
constexpr size_t kPhases = static_cast<size_t>(Phase::kCount);
const char* to_string(Phase phase);

// Time by cause and phase. Cause 0: none; cause n: incident_kinds()[n - 1].
class TimeTable {
 public:
  explicit TimeTable(size_t kinds) : rows_(kinds + 1) {}
  void add(size_t cause, Phase phase, TimeNs ns) { rows_[cause][static_cast<size_t>(phase)] += ns; }
  void add(const TimeTable& other);
  TimeNs of(size_t cause, Phase phase) const { return rows_[cause][static_cast<size_t>(phase)]; }
  TimeNs of(Phase phase) const;
  TimeNs of_cause(size_t cause) const;  // all but useful time
  TimeNs all() const;
  size_t causes() const { return rows_.size(); }

 private:
  std::vector<std::array<TimeNs, kPhases>> rows_;
};

// Training between two failures. Saves come each `every_ns` of wall time and stop the training for
// `stall_ns`. Work counts as useful at once and is taken back if it is lost.
class Training {
 public:
  Training(TimeNs every_ns, TimeNs stall_ns) : every_ns_(every_ns), stall_ns_(stall_ns) {}

  // Adds wall time at this many per cent of additional time a step.
  void advance(TimeNs wall_ns, int64_t slow_percent, size_t slow_cause, TimeTable& table);
  // A failure: what is not saved is lost.
  void fail(size_t cause, TimeTable& table);
  // The newest save turns out to be bad after fail(): its training is lost as well.
  void fall_back(size_t cause, TimeTable& table);
  TimeNs until_saved() const { return every_ns_ + stall_ns_ - at_ns_; }
  uint64_t saves() const { return saves_; }

 private:
  void add_span(TimeNs wall_ns, int64_t slow_percent, size_t slow_cause, TimeTable& table);
  void save();

  TimeNs every_ns_, stall_ns_;
  TimeNs at_ns_ = 0;                      // within a cycle of training and stall
  TimeNs unsaved_ns_ = 0, saved_ns_ = 0;  // work since the newest save, and of the newest interval
  uint64_t saves_ = 0;
};

}  // namespace culprit::sim
