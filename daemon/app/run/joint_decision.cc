#include "app/run/joint_decision.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <utility>

#include "base/text.h"
#include "model/headline.h"

namespace culprit::app {
namespace {

constexpr int kFailed = 1;                         // status of an attempt that failed without one
constexpr int kNotFound = 127, kNotStarted = 126;  // as in a shell
constexpr const char* kSilent = "member.silent";   // root of a failure with no evidence but silence

class Decider {
 public:
  explicit Decider(const JointFacts& facts) : f_(facts) {}

  AgreedDecision decide() {
    out_.by = f_.by;
    a_.number = f_.plan.attempt;
    a_.resume = f_.plan.resume;
    a_.revision = f_.plan.revision;
    a_.without = f_.plan.without;
    out_.interrupted = is_interrupted(f_);
    a_.from = f_.best;
    read_ends();
    a_.failure.ran_on = f_.plan.hosts;
    if (!has_failed(f_)) return std::move(out_);
    if (a_.status == 0) a_.status = kFailed;
    find_failure();
    recover::Ledger ledger = f_.ledger;
    ledger.add(a_.failure);
    a_.decision = recover::decide(ledger, a_.failure, means(), f_.limits);
    if (f_.forbidden) stop("not started again: --no-retry-on " + leading(*f_.report)->rule.value_or(""));
    if (a_.status == kNotFound || a_.status == kNotStarted)
      stop("not started again: the command cannot be run");
    if (out_.interrupted) stop("");
    if (a_.decision.again) plan_next(ledger);
    return std::move(out_);
  }

 private:
  void read_ends() {
    TimeNs first = kNoTime;
    for (const auto& [host, end] : f_.ends) {
      if (end.spare) {
        spares_.push_back(host);
        continue;
      }
      if (a_.begin_ns == kNoTime || end.begin_ns < a_.begin_ns) a_.begin_ns = end.begin_ns;
      a_.end_ns = std::max(a_.end_ns, end.end_ns);
      if (!end.stuck.empty()) out_.absent.push_back(host);
      const bool own = end.status != 0 && !end.ended_by_us;
      const TimeNs at = comparable_end(end);
      if (own && (first == kNoTime || at < first)) first = at, a_.status = end.status;
    }
    for (const std::string& host : f_.plan.hosts)
      if (!f_.ends.contains(host)) out_.absent.push_back(host);
    if (a_.end_ns == kNoTime) a_.end_ns = f_.now;
    if (a_.begin_ns == kNoTime) a_.begin_ns = a_.end_ns;  // no host told
    std::ranges::sort(spares_, natural_less);
  }

  void find_failure() {
    judge(a_, f_.report, f_.by, f_.best);
    recover::Failure& failure = a_.failure;
    failure.ran_on = f_.plan.hosts;
    std::ranges::sort(failure.ran_on);
    failure.first_to_fail = first_to_fail(f_.ends);
    name_members(failure.advice, f_.plan.hosts);
    name_devices(failure.advice);
    const TimeNs since = f_.saved_ns == kNoTime ? a_.begin_ns : std::max(a_.begin_ns, f_.saved_ns);
    a_.lost_ns = std::max<TimeNs>(0, a_.end_ns - since);
    if (f_.saved_step) add_progress(failure, *f_.saved_step, f_.plan.resume_step);
    if ((f_.report && f_.report->verdict) || out_.absent.empty()) return;
    // Silence is no cause that a log states, but the host cannot take part in any case.
    failure.root = kSilent;
    failure.advice.kind = Restart::kElsewhere;
    failure.advice.hosts = out_.absent;
    const auto end = f_.ends.find(out_.absent.front());
    a_.headline = end != f_.ends.end() ? fmt::format("{}: {}", end->first, end->second.stuck)
                                       : fmt::format("{} gave no answer", fmt::join(out_.absent, ", "));
  }

  // The devices by their UUIDs, if the host can do without them.
  void name_devices(RestartAdvice& advice) {
    if (!f_.min_gpus || advice.hosts.size() != 1) return;
    const auto end = f_.ends.find(advice.hosts.front());
    if (end != f_.ends.end())
      may_leave_devices_ = leave_out(end->second.gpus, advice, *f_.min_gpus).has_value();
  }

  recover::Means means() const {
    recover::Means out;
    // Spares for hosts that are absent anyway serve no other host.
    const auto blamed = std::ranges::count_if(out_.absent, [&](const std::string& host) {
      return std::ranges::count(a_.failure.advice.hosts, host) > 0;
    });
    const size_t needed = out_.absent.size() - static_cast<size_t>(blamed);
    out.spares = static_cast<uint32_t>(spares_.size() - std::min(spares_.size(), needed));
    out.left_ns = f_.left_ns;
    out.code = f_.code;
    out.chance = f_.chance;
    out.may_leave_devices = may_leave_devices_;
    return out;
  }

  void plan_next(const recover::Ledger& ledger) {
    std::set<std::string> without(out_.absent.begin(), out_.absent.end());
    without.insert(a_.decision.hosts.begin(), a_.decision.hosts.end());
    auto hosts = next_hosts(f_.plan.hosts, without, spares_);
    if (!hosts) {
      stop(fmt::format("not started again: it must run without {}, and no spare host is left",
                       fmt::join(without, ", ")));
      a_.decision.code = recover::kElsewhereHelps;
      return;
    }
    a_.leaves_out.assign(without.begin(), without.end());
    a_.lost_ns += a_.decision.wait_ns;
    AttemptPlan& next = out_.next;
    next.attempt = f_.plan.attempt + 1;
    const uint32_t used = ledger.fruitless();
    next.left = f_.limits.retries > used ? f_.limits.retries - used : 0;
    next.hosts = std::move(*hosts);
    next.port = f_.ends.at(next.hosts.front()).port;
    next.without = f_.plan.without;
    next.revision = a_.decision.revision.empty() ? f_.plan.revision : a_.decision.revision;
    if (a_.decision.way == recover::Way::kDevices)
      next.without.insert(next.without.end(), a_.decision.devices.begin(), a_.decision.devices.end());
    if (a_.decision.probe) out_.services = f_.services;
  }

  void stop(std::string why) {
    a_.decision = {};
    a_.decision.why = std::move(why);
  }

  const JointFacts& f_;
  AgreedDecision out_;
  Attempt& a_ = out_.attempt;
  std::vector<std::string> spares_;
  bool may_leave_devices_ = false;
};

}  // namespace

bool has_failed(const JointFacts& facts) {
  return std::ranges::any_of(facts.plan.hosts,
                             [&](const std::string& h) { return !facts.ends.contains(h); }) ||
         std::ranges::any_of(
             facts.ends, [](const auto& one) { return one.second.status != 0 || !one.second.stuck.empty(); });
}

bool is_interrupted(const JointFacts& facts) {
  return std::ranges::any_of(
      facts.ends, [](const auto& one) { return one.second.interrupted && !one.second.ended_by_us; });
}

AgreedDecision decide_jointly(const JointFacts& facts) { return Decider(facts).decide(); }

}  // namespace culprit::app
