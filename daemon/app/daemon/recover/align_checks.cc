#include "app/daemon/recover/align_checks.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "core/detect/numerics/align.h"

namespace culprit::app {
namespace {

using numerics::AlignAnswer;
using recover::CheckAnswer;

constexpr TimeNs kAskAlignAgain = 5 * kNsPerSecond;  // after an agent that had no answer yet
constexpr TimeNs kForTheAnswer = 5 * kNsPerSecond;   // of the order's time, for the way of the answer
constexpr TimeNs kLongestStep = 3600 * kNsPerSecond;
constexpr TimeNs kWithin = 300 * kNsPerSecond;  // of an order without a limit
constexpr size_t kOrdersMost = 1000;

// Of all devices of a host: one that differs decides, then one that is unknown.
struct HostAnswer {
  CheckAnswer answer = CheckAnswer::kPassed;
  std::string why;
  size_t more = 0;  // devices with this answer, besides the first

  void add(const numerics::JudgedDevice& device) {
    const CheckAnswer one = device.answer == AlignAnswer::kDiffers   ? CheckAnswer::kFailed
                            : device.answer == AlignAnswer::kUnknown ? CheckAnswer::kNoAnswer
                                                                     : CheckAnswer::kPassed;
    const bool leads = one != answer && (one == CheckAnswer::kFailed || answer == CheckAnswer::kPassed);
    if (!why.empty() && !leads) {
      more += one == answer;
      return;
    }
    answer = one;
    more = 0;
    why = fmt::format("{}: {}", device.device, device.why);
  }
  std::string sentence() const { return more > 0 ? fmt::format("{}, and {} more", why, more) : why; }
};

}  // namespace

void AlignChecks::order(const recover::CheckOrder& order, TimeNs now) {
  const bool is_full = !orders_.contains(order.decision) && orders_.size() >= kOrdersMost;
  for (const std::string& host : order.hosts)
    if (is_full)
      answers_.push_back(
          {host, CheckAnswer::kNoAnswer, "too many alignments wait", false, recover::CheckKind::kAlign});
  if (is_full) return;
  Order& open = orders_[order.decision];
  open.until_ns = order.until_ns == kNoTime ? now + kWithin : order.until_ns;
  for (const std::string& host : order.hosts) open.hosts.try_emplace(host).first->second.next_ns = now;
  beat(now);
}

void AlignChecks::ask(const std::string& decision, const Order& order, const std::string& name, Host& host,
                      TimeNs now) {
  host.next_ns = now + kAskAlignAgain;
  if (const std::string job = ways_.job_on(name); !job.empty()) {
    host.why = fmt::format("job {} runs on it", job);
    return;
  }
  const TimeNs within = std::min(order.until_ns - now - kForTheAnswer, kLongestStep);
  if (within < kNsPerSecond) return;
  host.asked = ways_.send(name, peer::AlignHost{decision, static_cast<uint32_t>(within / kNsPerMs)});
  host.why = host.asked ? "its agent has not answered in time" : "its agent is not connected";
}

void AlignChecks::answered(const std::string& host, const peer::AlignResult& result, TimeNs now) {
  const auto order = orders_.find(result.decision);
  if (order == orders_.end()) return;
  const auto at = order->second.hosts.find(host);
  if (at == order->second.hosts.end() || !at->second.asked || at->second.ended) return;
  Host& its = at->second;
  its.asked = false;
  its.rows = result.rows;
  its.why = shorten(to_terminal(result.why), peer::kSentenceBytes);
  its.ended = !its.rows.empty() || !result.later;
  its.next_ns = now + kAskAlignAgain;
}

void AlignChecks::beat(TimeNs now) {
  for (auto at = orders_.begin(); at != orders_.end();) {
    Order& order = at->second;
    bool waits = false;
    for (auto& [name, host] : order.hosts) {
      if (host.ended) continue;
      if (host.asked && ways_.boot_of(name).empty()) host.asked = false, host.next_ns = now;  // lost
      if (!host.asked && now >= host.next_ns && now < order.until_ns) ask(at->first, order, name, host, now);
      waits = true;
    }
    if (waits && now < order.until_ns) {
      ++at;
      continue;
    }
    end(at->first, order, now);
    at = orders_.erase(at);
  }
}

// The host is the one of the connection, whatever its rows say.
void AlignChecks::end(const std::string& decision, const Order& order, TimeNs now) {
  numerics::Alignment alignment;
  for (const auto& [name, host] : order.hosts)
    for (const peer::AlignRow& row : host.rows)
      alignment.add({name, to_terminal(row.at), to_terminal(row.kind), row.digest, row.stable, now});
  std::map<std::string, HostAnswer> judged;
  for (const numerics::JudgedDevice& device : alignment.judge()) judged[device.host].add(device);
  for (const auto& [name, host] : order.hosts) {
    const auto its = judged.find(name);
    if (its == judged.end()) {
      answers_.push_back({name, CheckAnswer::kNoAnswer, host.rows.empty() ? host.why : "too many devices",
                          false, recover::CheckKind::kAlign});
      continue;
    }
    const CheckAnswer answer = its->second.answer;
    answers_.push_back({name, answer, its->second.sentence(), false, recover::CheckKind::kAlign});
    ways_.send(name,
               peer::AlignJudged{decision, static_cast<peer::CheckAnswer>(answer), answers_.back().why});
  }
}

}  // namespace culprit::app
