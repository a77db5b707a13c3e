#include "cli/attempt_wait.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/clock.h"
#include "base/random.h"
#include "cli/verbs.h"
#include "core/recover/decide.h"

namespace culprit::cli {
namespace {

constexpr TimeNs kProbeWithin = 10 * kNsPerSecond;

}  // namespace

std::vector<app::ProbeTarget> unanswered_now(const std::vector<app::ProbeTarget>& services) {
  return app::unanswered(services, kProbeWithin);
}

ServiceWait wait_for_services(std::vector<app::ProbeTarget> away, TimeNs until,
                              const std::function<bool(TimeNs)>& pause) {
  const std::string name = away.front().text();
  report_error(fmt::format("{} does not answer; the next attempt begins when it does", name));
  for (uint32_t times = 0; wall_now() < until; ++times) {
    if (!pause(std::min(recover::probe_wait(times, random_share()), until - wall_now())))
      return ServiceWait::kEnded;
    away = unanswered_now(away);
    if (away.empty()) return report_error(name + " answers again"), ServiceWait::kAnswers;
  }
  return ServiceWait::kSilent;
}

}  // namespace culprit::cli
