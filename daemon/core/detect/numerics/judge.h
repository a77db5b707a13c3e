// Judges one step after another: asks each group of peers what differs, and all of them what changed
// together, and keeps the faults found. A plain value: a copy judges steps that are not whole yet, and is
// thrown away. Owned by one detector; one thread.
#pragma once

#include <vector>

#include "core/detect/numerics/apart.h"
#include "core/detect/numerics/cases.h"
#include "core/detect/numerics/equal.h"
#include "core/detect/numerics/events.h"
#include "core/detect/numerics/overflow.h"
#include "core/detect/numerics/peers.h"
#include "core/detect/numerics/together.h"

namespace culprit::core::numerics {

class Judge {
 public:
  explicit Judge(Layout layout) : layout_(layout), peers_(std::move(layout)) {}

  void step(const Frame& frame, const Window& window);
  void take(const Check& check, TimeNs time_ns, Window& window);
  // The loop announced a restart, which begins with the next step.
  void announce_restart() { together_.announce_restart(); }
  // A new run begins: what was learned of the last one's course is forgotten, its faults are kept.
  void restart();

  // By slot, how far it is from its peers after the last step: 0 as they are, 1 surely not.
  const std::vector<float>& odd() const { return odd_; }
  const Cases& cases() const { return cases_; }

 private:
  struct Team {
    Equal equal;
    Sum sum;
    Apart apart;
  };
  void judge_team(size_t index, const Frame& frame, const Window& window);
  void see_odd(const Equal& equal, const Equal::Odd& odd, const Frame& frame, const Window& window);
  void see_healed(const std::vector<uint32_t>& slots, const Frame& frame);
  bool see_not_finite(const Peers::Group& group, const Frame& frame, const Window& window);
  void see_sum(const Equal& equal, const Sum::Wrong& wrong, const Frame& frame, const Window& window);

  Case* suspected(uint32_t slot);
  void prove(uint32_t slot, const Check& check, TimeNs time_ns, std::string why);
  void take_replay(uint32_t slot, const Check& check, TimeNs time_ns);
  void take_audit(uint32_t slot, uint32_t by, const Check& check, TimeNs time_ns);
  bool is_unstable(const Frame& frame) const;
  bool blame_rate(Alarm& alarm);
  void recur(Case& known, const Frame& frame);
  void see_together(Alarm alarm, const Frame& frame);
  void see_apart(const Apart::Alarm& alarm, const Frame& frame, const Window& window);

  Layout layout_;
  Peers peers_;
  std::vector<Team> teams_;  // beside peers_.groups()
  Marks astray_;             // by slot
  std::vector<float> odd_;
  Together together_;
  Overflow overflow_;
  Cases cases_;
};

}  // namespace culprit::core::numerics
