#include "app/daemon/recover/host_checks.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/text.h"

namespace culprit::app {
namespace {

constexpr TimeNs kAskAgain = 10 * kNsPerSecond;       // after an agent that had no answer
constexpr TimeNs kAfterBoot = 60 * kNsPerSecond;      // its services start
constexpr TimeNs kReturnWithin = 300 * kNsPerSecond;  // limit of a check after a restart of the host
constexpr TimeNs kFirstDelay = 600 * kNsPerSecond;    // to the next one if it had no answer, doubled up to
constexpr TimeNs kLongestDelay = 6 * 3600 * kNsPerSecond;
constexpr size_t kWaitsMost = 50'000;
constexpr TimeNs kLongestCheck = 3600 * kNsPerSecond;

}  // namespace

void HostChecks::order(const recover::CheckOrder& order, TimeNs now) {
  const TimeNs until = order.until_ns == kNoTime ? now + kReturnWithin : order.until_ns;
  for (const std::string& host : order.hosts) {
    if (!waits_.contains(host) && waits_.size() >= kWaitsMost) {
      answers_.push_back({host, recover::CheckAnswer::kNoAnswer, "too many checks wait"});
      continue;
    }
    const auto [at, fresh] = waits_.try_emplace(host, Wait{order.decision, until, now, false, {}});
    if (!fresh) at->second.until_ns = std::max(at->second.until_ns, until);
  }
  beat(now);
}

void HostChecks::ask(const std::string& host, Wait& wait, TimeNs now) {
  wait.next_ns = now + kAskAgain;
  if (std::string job = ways_.job_on(host); !job.empty()) {
    wait.why = fmt::format("job {} runs on it", job);
    return;
  }
  const TimeNs within = std::min(wait.until_ns - now, kLongestCheck);
  wait.asked = ways_.ask(host, {wait.decision, static_cast<uint32_t>(within / kNsPerMs)});
  wait.why = wait.asked ? "its agent has not answered in time" : "its agent is not connected";
}

void HostChecks::answered(const std::string& host, const peer::CheckResult& result, TimeNs now) {
  const auto at = waits_.find(host);
  if (at == waits_.end() || !at->second.asked || at->second.decision != result.decision) return;
  Wait& wait = at->second;
  const std::string why = shorten(to_terminal(result.why), peer::kSentenceBytes);
  switch (result.answer) {
    case peer::CheckAnswer::kPassed:
      return end(host, recover::CheckAnswer::kPassed, why, now);
    case peer::CheckAnswer::kFailed:
      return end(host, recover::CheckAnswer::kFailed, why, now);
    case peer::CheckAnswer::kNoAnswer:
      wait.asked = false;
      wait.next_ns = now + kAskAgain;
      wait.why = why;
  }
}

void HostChecks::end(const std::string& host, recover::CheckAnswer answer, const std::string& why,
                     TimeNs now) {
  waits_.erase(host);
  answers_.push_back({host, answer, why});
  const auto at = isolated_.find(host);
  if (at == isolated_.end() || at->second.delay_ns == 0) return;
  Isolated& isolated = at->second;
  if (answer != recover::CheckAnswer::kNoAnswer) {
    isolated.delay_ns = 0;
    return;
  }
  isolated.next_ns = now + isolated.delay_ns;
  isolated.delay_ns = std::min(2 * isolated.delay_ns, kLongestDelay);
}

void HostChecks::see_isolated(const std::map<std::string, std::string>& isolated, bool may_check,
                              TimeNs now) {
  std::erase_if(isolated_, [&](const auto& one) {
    const auto at = isolated.find(one.first);
    return at == isolated.end() || at->second != one.second.op;
  });
  for (const auto& [host, op] : isolated) {
    Isolated& known = isolated_.try_emplace(host, Isolated{op, "", kNoTime, 0}).first->second;
    const std::string boot = ways_.boot_of(host);
    if (boot.empty()) continue;
    const std::string before = std::exchange(known.boot, boot);
    if (!before.empty() && before != boot) {
      known.next_ns = now + kAfterBoot;
      known.delay_ns = kFirstDelay;
    }
    if (!may_check || known.next_ns == kNoTime || now < known.next_ns || waits_.contains(host)) continue;
    known.next_ns = kNoTime;
    order({op, "", {host}, fmt::format("{} was restarted", host), now + kReturnWithin}, now);
  }
}

void HostChecks::beat(TimeNs now) {
  std::vector<std::pair<std::string, std::string>> late;
  for (auto& [host, wait] : waits_) {
    if (wait.asked && ways_.boot_of(host).empty()) {  // its answer is lost
      wait.asked = false;
      wait.next_ns = now;
    }
    if (now >= wait.until_ns)
      late.emplace_back(host, wait.why);
    else if (!wait.asked && now >= wait.next_ns)
      ask(host, wait, now);
  }
  for (const auto& [host, why] : late) end(host, recover::CheckAnswer::kNoAnswer, why, now);
}

}  // namespace culprit::app
