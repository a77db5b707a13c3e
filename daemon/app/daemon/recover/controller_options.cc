#include "app/daemon/recover/controller_options.h"

namespace culprit::app {
namespace {

double share(int64_t permille) { return static_cast<double>(permille) / 1000; }

}  // namespace

recover::ControllerOptions controller_options(const Config::Act& act) {
  recover::ControllerOptions out;
  recover::GuardOptions& guard = out.guard;
  guard.mode = act.mode == ActMode::kAct   ? recover::Mode::kAct
               : act.mode == ActMode::kAsk ? recover::Mode::kAsk
                                           : recover::Mode::kObserve;
  const recover::Stages stages{act.isolate, act.restart, act.check, act.give_back};
  if (act.partitions.empty()) guard.stages = stages;
  for (const std::string& partition : act.partitions) guard.partitions[partition] = stages;
  guard.short_window_ns = act.breaker.window_ns;
  guard.short_limit = {static_cast<uint32_t>(act.breaker.window_hosts), share(act.breaker.window_permille)};
  guard.long_limit = {static_cast<uint32_t>(act.breaker.day_hosts), share(act.breaker.day_permille)};
  guard.at_once_limit = {static_cast<uint32_t>(act.breaker.at_once_hosts),
                         share(act.breaker.at_once_permille)};
  guard.veto_ns = act.veto_ns;
  guard.probation_ns = act.probation_ns;
  out.policy.isolate_confidence = static_cast<double>(act.confidence) / 100;
  out.policy.align = true;  // with the stage check, where hosts have check.align
  out.bounds.question_ns = act.question_ns;
  out.advise = act.advise;
  return out;
}

}  // namespace culprit::app
