#include "core/recover/guard.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"

namespace culprit::recover {
namespace {

constexpr const char* kReset = "reset it with `culprit recover reset`";

Refusal refused(Rail rail, std::string why) { return {rail, std::move(why)}; }

Refusal stage_off(std::string_view stage, const std::string& partition) {
  return refused(Rail::kStage,
                 fmt::format("the stage \"{}\" is off{}; switch it on with act.{} in culpritd.toml", stage,
                             partition.empty() ? "" : fmt::format(" in partition {}", partition), stage));
}

std::string shown(const HostLimit& limit, uint32_t cluster) {
  return fmt::format("{} (the larger of {} and {:g} % of {})", counted(limit.of(cluster), "host"),
                     limit.hosts, limit.share * 100, counted(cluster, "host"));
}

}  // namespace

std::string_view to_string(Mode mode) {
  return mode == Mode::kAct ? "act" : mode == Mode::kAsk ? "ask" : "observe";
}

std::string_view to_string(Rail rail) {
  switch (rail) {
    case Rail::kMode:
      return "mode";
    case Rail::kStage:
      return "stage";
    case Rail::kReset:
      return "reset";
    case Rail::kEvidenceAge:
      return "evidence-age";
    case Rail::kConfidence:
      return "confidence";
    case Rail::kCorroboration:
      return "corroboration";
    case Rail::kGroup:
      return "group";
    case Rail::kVeto:
      return "veto";
    case Rail::kBusy:
      return "busy";
    case Rail::kBreakerShort:
      return "breaker-short";
    case Rail::kBreakerLong:
      return "breaker-long";
    case Rail::kBreakerAtOnce:
      break;
  }
  return "breaker-at-once";
}

uint32_t HostLimit::of(uint32_t cluster_hosts) const {
  const auto by_share = static_cast<uint32_t>(share * cluster_hosts);
  return std::max({hosts, by_share, 1u});
}

// Observe mode shows what every stage would do.
const Stages& Guard::stages_of(const std::string& partition) const {
  static constexpr Stages kAll = {true, true, true, true};
  if (options_.mode == Mode::kObserve) return kAll;
  const auto at = options_.partitions.find(partition);
  return at == options_.partitions.end() ? options_.stages : at->second;
}

Permit Guard::permit() const {
  return options_.mode == Mode::kAct   ? Permit::kGranted
         : options_.mode == Mode::kAsk ? Permit::kAsk
                                       : Permit::kObserve;
}

std::optional<Refusal> Guard::restart(const std::string& partition) const {
  if (stages_of(partition).restart) return std::nullopt;
  return stage_off("restart", partition);
}

std::optional<Refusal> Guard::check(const std::string& partition) const {
  if (stages_of(partition).check) return std::nullopt;
  return stage_off("check", partition);
}

// The breaker is no reason here: an isolated host always may come back.
std::optional<Refusal> Guard::give_back(const std::string& host, const std::string& partition) const {
  if (!stages_of(partition).give_back) return stage_off("return", partition);
  if (const auto at = busy_.find(host); at != busy_.end())
    return refused(Rail::kBusy, fmt::format("action {} on {} has no result yet", at->second, host));
  return std::nullopt;
}

uint32_t Guard::within(TimeNs window, TimeNs now) const {
  std::set<std::string_view> hosts;
  for (const auto& [at, host] : isolations_)
    if (at <= now && now - at < window) hosts.insert(host);
  return static_cast<uint32_t>(hosts.size());
}

std::optional<Refusal> Guard::window_refusal(TimeNs now) const {
  const struct {
    Rail rail;
    TimeNs window;
    const HostLimit& limit;
  } windows[] = {{Rail::kBreakerShort, options_.short_window_ns, options_.short_limit},
                 {Rail::kBreakerLong, options_.long_window_ns, options_.long_limit}};
  for (const auto& one : windows) {
    const uint32_t now_within = within(one.window, now);
    if (now_within < one.limit.of(cluster_hosts_)) continue;
    return refused(one.rail,
                   fmt::format("the breaker is open: {} isolated within {}, and the limit is {}; {}",
                               counted(now_within, "host"), format_duration(one.window),
                               shown(one.limit, cluster_hosts_), kReset));
  }
  return std::nullopt;
}

std::optional<Refusal> Guard::breaker(TimeNs now) const {
  if (at_once() >= options_.at_once_limit.of(cluster_hosts_))
    return refused(
        Rail::kBreakerAtOnce,
        fmt::format("the breaker is open: {} isolated now, and the limit is {}; return one of them",
                    counted(at_once(), "host"), shown(options_.at_once_limit, cluster_hosts_)));
  return window_refusal(now);
}

std::optional<Refusal> Guard::isolate(const IsolationWish& w, TimeNs now) const {
  const Case& c = *w.why;
  if (!stages_of(w.partition).isolate) return stage_off("isolate", w.partition);
  if (reset_ns_ != kNoTime && w.decided_ns <= reset_ns_)
    return refused(Rail::kReset,
                   fmt::format("the isolation of {} was decided before the breaker's reset at {}; "
                               "new evidence decides again",
                               w.host, format_time(reset_ns_)));
  if (c.newest_ns != kNoTime && now - c.newest_ns > options_.evidence_max_ns)
    return refused(Rail::kEvidenceAge, fmt::format("the evidence against {} is {} old, and the limit is {}",
                                                   w.host, format_duration(now - c.newest_ns),
                                                   format_duration(options_.evidence_max_ns)));
  if (!c.authors.independent())
    return refused(Rail::kCorroboration,
                   fmt::format("users of the host could have written all evidence against {}; the kernel, a "
                               "plugin, two other hosts of other users or the scheduler must confirm it",
                               w.host));
  if (c.confidence < w.confidence_needed && !on_probation(w.host, now))
    return refused(Rail::kConfidence, fmt::format("the confidence is {:.2f}, and an isolation needs {:.2f}",
                                                  c.confidence, w.confidence_needed));
  if (w.group) {
    const uint32_t by_share = static_cast<uint32_t>(options_.group_limit.share * cluster_hosts_);
    const uint32_t limit = std::min(options_.group_limit.hosts, by_share);
    if (w.group_hosts > limit)
      return refused(Rail::kGroup,
                     fmt::format("the group has {}, and the limit is {} (the smaller of {} and {:g} % of {})",
                                 counted(w.group_hosts, "host"), limit, options_.group_limit.hosts,
                                 options_.group_limit.share * 100, counted(cluster_hosts_, "host")));
  }
  if (has_veto(w.host, c.root, now)) {
    const TimeNs at = vetoes_.find({w.host, c.root})->second;
    return refused(Rail::kVeto,
                   fmt::format("a person returned {} at {}, so the same cause does not isolate it until {}",
                               w.host, format_time(at), format_time(at + options_.veto_ns)));
  }
  if (const auto at = busy_.find(w.host); at != busy_.end())
    return refused(Rail::kBusy, fmt::format("action {} on {} has no result yet", at->second, w.host));
  return breaker(now);
}

void Guard::isolated(const std::string& host, TimeNs at) {
  would_isolate(host, at);
  now_out_.insert(host);
}

void Guard::would_isolate(const std::string& host, TimeNs at) {
  isolations_.emplace_back(at, host);
  while (!isolations_.empty() && at - isolations_.front().first >= options_.long_window_ns)
    isolations_.pop_front();
}

void Guard::not_isolated(const std::string& host) {
  if (now_out_.erase(host) == 0) return;
  for (auto at = isolations_.rbegin(); at != isolations_.rend(); ++at)
    if (at->second == host) {
      isolations_.erase(std::next(at).base());
      return;
    }
}

void Guard::returned(const std::string& host, TimeNs at) {
  now_out_.erase(host);
  returned_[host] = at;
}

void Guard::begin(const std::string& host, const std::string& op) { busy_[host] = op; }

void Guard::end(const std::string& host, const std::string& op) {
  if (const auto at = busy_.find(host); at != busy_.end() && at->second == op) busy_.erase(at);
}

void Guard::vetoed(const std::string& host, const std::string& root, TimeNs at) {
  vetoes_[{host, root}] = at;
  std::erase_if(vetoes_, [&](const auto& one) { return at - one.second >= options_.veto_ns; });
}

void Guard::reset(TimeNs at) {
  reset_ns_ = at;
  std::erase_if(isolations_, [&](const auto& one) { return one.first <= at; });
}

bool Guard::has_veto(const std::string& host, const std::string& root, TimeNs now) const {
  const auto at = vetoes_.find({host, root});
  return at != vetoes_.end() && now - at->second < options_.veto_ns;
}

bool Guard::on_probation(const std::string& host, TimeNs now) const {
  const auto at = returned_.find(host);
  return at != returned_.end() && now - at->second < options_.probation_ns;
}

}  // namespace culprit::recover
