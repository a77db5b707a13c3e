#include "core/detect/comm/step_kinds.h"

#include <algorithm>

#include "core/detect/comm/bars.h"
#include "core/detect/comm/robust.h"

namespace culprit::comm {
namespace {

// A step in which the median rank works this many times as long as usual is of another kind.
constexpr float kSpecial = 1.3f;

}  // namespace

bool StepKinds::is_of_all(const std::deque<StepResult>& steps, uint32_t step) const {
  return special[step] || 2 * work_ms[step] >= steps[step].step_ms - usual_ms;
}

bool StepKinds::is_alike(const std::deque<StepResult>& steps, uint32_t step, double longer_ms) const {
  return alike(steps[step].step_ms - usual_ms, longer_ms) && !is_of_all(steps, step);
}

// The slowest rank differs among special steps. If more than a quarter are marked, none is special.
StepKinds kinds_of_steps(const std::deque<StepResult>& steps) {
  StepKinds out;
  std::vector<double> times;
  std::vector<float> usual, of_step;
  for (const StepResult& s : steps) {
    times.push_back(s.step_ms);
    of_step.clear();
    for (const RankStep& r : s.ranks) of_step.push_back(r.self - r.excess);
    usual.push_back(lower_median(of_step));
  }
  out.usual_ms = lower_median(times);
  std::vector<float> sorted = usual;
  const float middle = lower_median(sorted);
  for (const float ms : usual) {
    out.special.push_back(ms > kSpecial * middle);
    out.work_ms.push_back(ms - middle);
  }
  if (4 * std::ranges::count(out.special, true) > std::ssize(out.special))
    out.special.assign(out.special.size(), false);
  return out;
}

}  // namespace culprit::comm
