// Judges one step after another. Checks each group of peers for differences and all ranks for common changes,
// and keeps the faults found. A plain value: a copy judges incomplete steps and is discarded. Owned by one
// detector; one thread.
#pragma once

#include <vector>

#include "core/detect/numerics/cases.h"
#include "core/detect/numerics/events.h"
#include "core/detect/numerics/global_shift.h"
#include "core/detect/numerics/outlier_rank.h"
#include "core/detect/numerics/overflow.h"
#include "core/detect/numerics/peers.h"
#include "core/detect/numerics/replica_check.h"

namespace culprit::numerics {

class Judge {
 public:
  explicit Judge(Layout layout) : layout_(layout), peers_(std::move(layout)) {}

  void step(const Frame& frame, const Window& window);
  void add_check(const Check& check, TimeNs time_ns, Window& window);
  // The loop announced a restart; it begins with the next step.
  void announce_restart() { together_.announce_restart(); }
  // Begins a new run: resets the learned values and keeps the faults.
  void restart();

  // Outlier score by slot after the last step: 0 like its peers, 1 certainly different.
  const std::vector<float>& odd() const { return odd_; }
  const Cases& cases() const { return cases_; }

 private:
  struct Team {
    ReplicaCheck equal;
    Sum sum;
    OutlierRank apart;
  };
  void judge_team(size_t index, const Frame& frame, const Window& window);
  void see_odd(const ReplicaCheck& equal, const ReplicaCheck::Odd& odd, const Frame& frame,
               const Window& window);
  void see_healed(const std::vector<uint32_t>& slots, const Frame& frame);
  bool see_not_finite(const Peers::Group& group, const Frame& frame, const Window& window);
  void see_sum(const ReplicaCheck& equal, const Sum::Wrong& wrong, const Frame& frame, const Window& window);

  Case* suspected(uint32_t slot);
  void prove(uint32_t slot, const Check& check, TimeNs time_ns, std::string why);
  void add_replay(uint32_t slot, const Check& check, TimeNs time_ns);
  void add_audit(uint32_t slot, uint32_t by, const Check& check, TimeNs time_ns);
  bool is_unstable(const Frame& frame) const;
  bool blame_rate(Alarm& alarm);
  void recur(Case& known, const Frame& frame);
  void see_together(Alarm alarm, const Frame& frame);
  void see_apart(const OutlierRank::Alarm& alarm, const Frame& frame, const Window& window);

  Layout layout_;
  Peers peers_;
  std::vector<Team> teams_;  // parallel to peers_.groups()
  Marks astray_;             // by slot
  std::vector<float> odd_;
  GlobalShift together_;
  Overflow overflow_;
  Cases cases_;
};

}  // namespace culprit::numerics
