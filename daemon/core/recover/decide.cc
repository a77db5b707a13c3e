#include "core/recover/decide.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "model/restart.h"

namespace culprit::recover {
namespace {

// Chosen values; only those of ezpz and NVRx have a source (docs/decisions).
constexpr TimeNs kFirstWait = 5 * kNsPerSecond, kLongestWait = 300 * kNsPerSecond;
constexpr TimeNs kFirstProbe = 30 * kNsPerSecond, kLongestProbe = 600 * kNsPerSecond;
constexpr double kSpread = 0.2;
constexpr TimeNs kDay = 24 * 3600 * kNsPerSecond;
// For each restart kind: the failures of one root without progress after which the job ends.
constexpr uint32_t kSameBudget = 2, kElsewhereBudget = 3, kOlderBudget = 2, kOnce = 1;

TimeNs doubled(TimeNs first, uint32_t times, TimeNs most, double chance) {
  const double wait = static_cast<double>(first) * std::exp2(std::min<uint32_t>(times, 16));
  const double spread = 1 + kSpread * std::clamp(chance, -1.0, 1.0);
  return static_cast<TimeNs>(std::min(wait, static_cast<double>(most)) * spread);
}

class Table {
 public:
  Table(const Ledger& ledger, const Failure& failure, const Means& means, const Limits& limits)
      : ledger_(ledger), f_(failure), means_(means), limits_(limits), before_(ledger.before(failure.root)) {
    times_ = before_ == nullptr ? 0 : before_->times;
  }

  Decision decide() const {
    if (auto ended = by_limits()) return std::move(*ended);
    if (is_code_suspect()) return in_time(revert());
    return in_time(with_pending(f_.preempted ? preempted() : by_kind()));
  }

 private:
  // The first failure of a revision that is of another kind than those before it. A machine or a service at
  // fault, and chance after progress, say nothing about the program.
  bool is_code_suspect() const {
    if (means_.code.before.empty() || before_ != nullptr || f_.preempted) return false;
    switch (f_.advice.kind) {
      case Restart::kNever:
      case Restart::kOlder:
      case Restart::kUnknown:
        return true;
      case Restart::kSame:
        return f_.progress != Progress::kMade;
      case Restart::kLater:
      case Restart::kElsewhere:
        break;
    }
    return false;
  }

  Decision revert() const {
    Decision out =
        again(fmt::format("with revision {} again: {} failed in a new way and is the first suspect",
                          means_.code.before, means_.code.running));
    out.revision = means_.code.before;
    out.older = f_.advice.kind == Restart::kOlder;
    return out;
  }

  // Another revision may also fail otherwise than one that will fail again.
  Decision with_pending(Decision out) const {
    const std::string& pending = means_.code.pending;
    if (pending.empty()) return out;
    const std::string with = "with the pending revision " + pending;
    if (!out.again && out.code != kWillNotHelp) return out;
    if (!out.again || f_.advice.kind == Restart::kNever)
      out = again(with);
    else
      out.why = fmt::format("{}, {}", out.why, with);
    out.revision = pending;
    return out;
  }

  Decision by_kind() const {
    switch (turned(f_, before_ ? before_->iteration : std::nullopt)) {
      case Restart::kNever:
        return never();
      case Restart::kSame:
        return same();
      case Restart::kLater:
        return later();
      case Restart::kElsewhere:
        return f_.advice.hosts.empty() && f_.advice.devices.empty() ? once() : elsewhere(f_.advice.hosts);
      case Restart::kOlder:
        return older();
      case Restart::kUnknown:
        break;
    }
    return once();
  }

  static Decision stop(std::string why, int code = kWillNotHelp) {
    Decision out;
    out.why = std::move(why);
    out.code = code;
    return out;
  }

  Decision again(std::string why) const {
    Decision out;
    out.again = true;
    out.wait_ns = doubled(kFirstWait, times_, kLongestWait, means_.chance);
    out.why = std::move(why);
    return out;
  }

  std::string repeated() const {
    return fmt::format("stopped after {} attempts: the same failure{} without progress", times_ + 1,
                       f_.iteration ? fmt::format(" at step {}", *f_.iteration) : std::string());
  }

  // Limits that apply to any failure.
  std::optional<Decision> by_limits() const {
    const bool waits = f_.preempted || f_.advice.kind == Restart::kLater;  // uses up no attempt
    if (!waits && ledger_.fruitless() > limits_.retries)
      return stop(fmt::format("stopped: {} without progress", counted(ledger_.fruitless(), "attempt")));
    if (ledger_.ended_within(kDay, f_.end_ns) >= limits_.attempts_per_day)
      return stop(fmt::format("stopped: {} attempts in a day", limits_.attempts_per_day));
    if (!waits && ledger_.ended_within(limits_.storm_ns, f_.end_ns) >= limits_.storm)
      return stop(
          fmt::format("stopped: {} failures within {}", limits_.storm, format_duration(limits_.storm_ns)));
    return std::nullopt;
  }

  // An allocation that ends soon gets no attempt; a successor has an allocation of its own.
  Decision in_time(Decision out) const {
    if (!out.again || means_.left_ns == kNoTime || means_.left_ns >= limits_.min_left_ns) return out;
    const std::string left = format_duration(std::max<TimeNs>(means_.left_ns, 0));
    if (!means_.may_requeue)
      return stop(fmt::format("not started again: {} are left of the allocation", left), kElsewhereHelps);
    if (out.way == Way::kDevices) out.devices.clear();  // they are of this allocation
    out.way = Way::kRequeue;
    out.probe = false;
    return out;
  }

  Decision preempted() const {
    Decision out = again("as it is");
    out.wait_ns = 0;
    return out;
  }

  Decision never() const {
    if (f_.advice.kind != Restart::kNever) return stop(repeated() + " (sample or program)");
    if (f_.advice.sure) return stop("not started again: the same will happen again");
    return times_ < kOnce ? again("once more, to be certain: the same will probably happen again")
                          : stop(repeated());
  }

  Decision same() const {
    if (times_ == 0) return again("as it is");
    // On the same hosts, one host failed first both times: this host is at fault.
    const bool hosts_equal = !f_.ran_on.empty() && before_->ran_on == f_.ran_on;
    const bool one_first = !f_.first_to_fail.empty() && before_->first_to_fail == f_.first_to_fail;
    if (times_ < kSameBudget && hosts_equal && one_first && f_.ran_on.size() > 1)
      return elsewhere({f_.first_to_fail});
    return stop(repeated());
  }

  Decision later() const {
    const TimeNs since = before_ ? before_->first_ns : f_.end_ns;
    if (since != kNoTime && f_.end_ns != kNoTime && f_.end_ns - since >= limits_.later_max_ns)
      return stop(
          fmt::format("stopped: the service has not answered for {}", format_duration(f_.end_ns - since)),
          kElsewhereHelps);
    Decision out = again("when the service answers again");
    out.probe = true;
    out.wait_ns = probe_wait(times_, means_.chance);
    return out;
  }

  Decision elsewhere(const std::vector<std::string>& hosts) const {
    const Ledger::Entry& now = ledger_.now(f_.root);
    if (times_ + 1 >= kElsewhereBudget || now.places.size() >= kElsewhereBudget)
      return stop("stopped: the same fault on a third host or device, so it is not theirs");
    const auto place = now.places.find(place_of(f_));
    if (f_.advice.kind == Restart::kElsewhere && place != now.places.end() && place->second > 1)
      return stop(
          fmt::format("stopped: {} was left out, and the same fault came from there again", place->first),
          kElsewhereHelps);
    Decision out = again("");
    out.hosts = hosts;
    if (hosts == f_.advice.hosts) out.devices = f_.advice.devices;
    const std::string names = shown_list(out.hosts.empty() ? out.devices : out.hosts);
    const bool whole_hosts = !out.hosts.empty();
    out.wait_ns = 0;  // nothing has to recover first
    if (whole_hosts && means_.spares >= out.hosts.size()) {
      out.way = Way::kSpare;
    } else if (!out.devices.empty() && means_.may_leave_devices) {
      out.way = Way::kDevices;
      out.hosts.clear();
      out.why = "without " + shown_list(out.devices);
      return out;
    } else if (means_.may_shrink) {
      out.way = Way::kShrink;
    } else if (means_.may_requeue) {
      out.way = Way::kRequeue;
    } else {
      return stop(fmt::format("not started again here: it must run without {}", names), kElsewhereHelps);
    }
    out.why = "without " + names;
    return out;
  }

  Decision older() const {
    if (times_ >= kOlderBudget) return stop(repeated());
    Decision out = again("from an older checkpoint");
    out.older = true;
    return out;
  }

  Decision once() const {
    if (times_ >= kOnce) return stop(repeated());
    const char* why = f_.hang ? "it stood, and the cause is not known" : "the cause is not known";
    return again(f_.progress == Progress::kUnknown ? why : fmt::format("once: {}", why));
  }

  const Ledger& ledger_;
  const Failure& f_;
  const Means& means_;
  const Limits& limits_;
  const Ledger::Entry* before_;
  uint32_t times_ = 0;  // failures of this root before the latest
};

}  // namespace

TimeNs probe_wait(uint32_t times, double chance) {
  return doubled(kFirstProbe, times, kLongestProbe, chance);
}

Decision decide(const Ledger& ledger, const Failure& failure, const Means& means, const Limits& limits) {
  return Table(ledger, failure, means, limits).decide();
}

}  // namespace culprit::recover
