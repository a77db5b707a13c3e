#include "app/daemon/recover/spare_checks.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace culprit::app {

std::vector<std::string> SpareChecks::due(const std::vector<std::string>& spares, TimeNs every_ns,
                                          TimeNs now) {
  every_ns_ = every_ns;
  // A check that runs on a host that was handed over still ends; its answer is about no spare then.
  std::erase_if(spares_,
                [&](const auto& one) { return std::ranges::find(spares, one.first) == spares.end(); });
  std::vector<std::string> out;
  if (every_ns == 0) return out;
  size_t running =
      static_cast<size_t>(std::ranges::count_if(spares_, [](const auto& one) { return one.second.waits; }));
  for (const std::string& host : spares) {
    Spare& spare = spares_[host];
    if (spare.waits || running >= kAtOnce) continue;
    const bool is_due = spare.next_ns == kNoTime || now >= spare.next_ns || spare.next_ns - now > every_ns;
    if (!is_due) continue;
    spare.waits = true;
    ++running;
    out.push_back(host);
  }
  return out;
}

SpareChecks::Taken SpareChecks::answered(const recover::HostChecked& answer, TimeNs now) {
  const auto at = spares_.find(answer.host);
  if (at == spares_.end() || !at->second.waits) return {};
  Spare& spare = at->second;
  spare.waits = false;
  spare.last = answer.answer;
  if (answer.answer == recover::CheckAnswer::kNoAnswer) {
    spare.next_ns = now + std::min(spare.delay_ns, every_ns_);
    spare.delay_ns = std::min(2 * spare.delay_ns, every_ns_);
    if (std::exchange(spare.why, answer.why) == answer.why) return {true, ""};
    return {true,
            fmt::format("the spare {} is not checked, so its state is unknown: {}", answer.host, answer.why)};
  }
  spare.delay_ns = kFirstDelay;
  spare.why.clear();
  const bool failed = answer.answer == recover::CheckAnswer::kFailed;
  spare.next_ns = now + (failed ? std::min(kAfterFailure, every_ns_) : every_ns_);
  return {true, ""};
}

std::vector<std::string> SpareChecks::failed() const {
  std::vector<std::string> out;
  for (const auto& [host, spare] : spares_)
    if (spare.last == recover::CheckAnswer::kFailed) out.push_back(host);
  return out;
}

}  // namespace culprit::app
