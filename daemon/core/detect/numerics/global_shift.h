// Detects simultaneous changes of all ranks: hard or bad samples everywhere, an unstable optimiser, or a
// planned change. Each rank has its own samples, so a loss far above usual on all ranks has a common cause.
// Bad samples have no earlier symptoms. An unstable optimiser has: norms of activations, queries, keys or
// updates (per learning rate) grow by half within a few steps, or the loss climbs above its best. A planned
// change appears in the loop's own values: learning rate, tokens, data stage, or a pause such as a restart. A
// planned change is reported if metrics move after it. Owned by one detector; one thread.
#pragma once

#include <array>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "core/detect/numerics/cases.h"
#include "core/detect/numerics/replica_check.h"
#include "core/detect/numerics/tail.h"
#include "core/detect/numerics/window.h"

namespace culprit::numerics {

class GlobalShift {
 public:
  std::vector<Alarm> step(const Frame& frame, const Window& window, const Marks& astray);
  // A learning rate set above its earlier maximum.
  struct Leap {
    int64_t step = 0;
    double from = 0, to = 0, most = 0;  // `most`: maximum before the leap
    std::string metric;
  };

  // Whether the training shows signs of instability: growing norms, too large updates, or a recent leap of
  // the learning rate.
  bool is_loose() const { return grown_.has_value() || is_fast() || leap_before(step_).has_value(); }
  // The leap of the learning rate that explains a change that began at `step`.
  std::optional<Leap> leap_before(int64_t step) const;
  static std::string title_of(const Leap& leap);
  // Whether the job restarted at this step: earlier values are no baseline for later ones.
  bool is_restarted() const { return restart_step_ == step_ && steps_ > 0; }
  // The loop announced a restart; it takes effect with the next step.
  void announce_restart() { is_announced_ = true; }

 private:
  // Medians of one metric over the ranks.
  struct Series {
    uint32_t column = 0;
    Role role = Role::kOther;
    std::deque<double> last;      // logarithms, newest last
    double level = 0, scale = 0;  // slow mean, and mean distance from it
    double moved[2] = {0, 0};     // movement since a planned change, down and up
    uint32_t steps = 0;
  };
  struct Rush {
    int64_t since = 0;
    size_t steps = 0;
  };
  struct Plan {
    int64_t step = 0;
    std::string what;
    bool reported = false;
  };

  std::optional<double> median(const Frame& frame, uint32_t column, const Marks& astray);
  void add_medians(const Frame& frame, const Window& window, const Marks& astray);
  void follow(const Frame& frame, const Window& window);
  void plan(int64_t step, std::string what);
  void see_plan(const Frame& frame, const Window& window);
  void see_pause(const Frame& frame);
  void see_rate(double was, double now, const Frame& frame, const std::string& name);
  void see_weights(const Frame& frame, const Window& window);
  void see_pace(const Frame& frame, const Window& window, std::vector<Alarm>& alarms);
  void restart(int64_t step, std::string what);
  bool is_fast() const;
  void follow_plan(const Frame& frame, const Window& window, std::vector<Alarm>& alarms);
  void see_growth();
  void see_losses(const Frame& frame, const Window& window, const Marks& astray, std::vector<Alarm>& alarms);
  void see_start(const Frame& frame, const Window& window, std::vector<Alarm>& alarms);
  void see_climb(const Frame& frame, const Window& window, std::vector<Alarm>& alarms);
  void raise(Alarm alarm, std::vector<Alarm>& alarms) const;

  std::vector<std::optional<double>> medians_;  // of this step, by column
  std::vector<std::optional<double>> before_;   // of the previous step
  std::vector<Series> series_;
  std::optional<uint32_t> loss_, rate_, param_, update_;
  std::optional<uint32_t> grown_;  // the column whose norm grew
  std::optional<Plan> plan_;
  std::optional<Leap> leap_;
  std::optional<int64_t> restart_step_;
  bool is_announced_ = false;
  double rate_most_ = 0;
  uint32_t rates_ = 0;
  std::deque<double> drifts_;       // relative changes of the parameter norm, by step
  uint32_t fast_steps_ = 0;         // consecutive
  std::optional<Rush> rush_;        // updates that are far too large
  std::optional<int64_t> fast_at_;  // value of steps_ at the end of the last run of kGrowthSteps fast steps
  int64_t step_ = 0, steps_ = 0, first_step_ = 0;
  // Recent changes of the learning rate; number of consecutive steps with equal tokens.
  std::deque<double> rate_changes_;
  uint32_t tokens_alike_ = 0;
  std::deque<double> pauses_;  // seconds, by step
  TimeNs last_ns_ = kNoTime;

  // Losses of all ranks.
  std::vector<float> usual_loss_;        // by slot, logarithm; NaN: not seen
  std::vector<double> distinct_losses_;  // of this step
  Tail past_;
  std::deque<double> oddness_;  // of the last steps, over all ranks
  bool reported_ = false;
  // Course of the loss.
  double fast_ = 0, slow_ = 0, best_ = 0;
  std::deque<double> roughness_;
  int64_t climbs_since_ = 0;
  uint32_t above_first_ = 0;
  double first_most_ = 0;  // logarithm of the highest loss in the first step
  bool climb_reported_ = false;

  std::vector<double> room_;
  std::vector<float> sorted_;
};

}  // namespace culprit::numerics
