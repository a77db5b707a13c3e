// The guard rails around every action: mode, stages, breaker, confidence, corroboration, over-isolation, a
// person's veto, probation. A refusal is a sentence that names the limit and how to reset it. Without a
// reason to refuse, the rails say nothing. A return is never refused by the breaker.
//
// Pure; one thread. Times in nanoseconds, shares from 0 to 1. Memory: one entry per isolation of 24 h and per
// veto.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/time.h"
#include "core/recover/job_state.h"
#include "core/recover/policy.h"

namespace culprit::recover {

// observe: nothing is done (NVIDIA Recovery, EKS node groups and NVRx begin so). ask: after an approval.
enum class Mode : uint8_t { kObserve, kAsk, kAct };
std::string_view to_string(Mode mode);  // "observe", "ask", "act"

// Each is off until it is switched on (NVSentinel ADR-060; the canary partition of NVIDIA Recovery). Observe
// mode shows all.
struct Stages {
  bool isolate = false;    // drain, taint
  bool restart = false;    // end tasks, run again
  bool check = false;      // node checks
  bool give_back = false;  // the return of an isolated host ("return" in the configuration)
};

// A limit on a number of hosts: the larger of both, and at least 1. "Reached" means that one more would
// exceed it.
struct HostLimit {
  uint32_t hosts = 1;
  double share = 0;  // of the cluster's hosts
  uint32_t of(uint32_t cluster_hosts) const;
};

struct GuardOptions {
  Mode mode = Mode::kObserve;
  Stages stages;                             // where no partition below says otherwise
  std::map<std::string, Stages> partitions;  // Slurm's partition, or a value of the label
  // chosen: at 1,200 hosts and 12 incidents a day, P(> 3 in 10 min) < 10^-5. Others: 50 % in 5 min
  // (NVSentinel), 20 % (karpenter), 40 % (CAPI's example).
  TimeNs short_window_ns = 600 * kNsPerSecond;
  HostLimit short_limit = {2, 0.0025};
  TimeNs long_window_ns = 24 * 3600 * kNsPerSecond;
  HostLimit long_limit = {3, 0.02};
  HostLimit at_once_limit = {1, 0.10};                 // isolated by us at any time; karpenter has 20 %
  HostLimit group_limit = {16, 0.02};                  // over-isolation: here both must hold (chosen)
  TimeNs veto_ns = 24 * 3600 * kNsPerSecond;           // chosen: NVSentinel#1424, draino#17, nhc#134
  TimeNs undo_ns = 3600 * kNsPerSecond;                // chosen: a later return of a person is no undo
  TimeNs probation_ns = 7 * 24 * 3600 * kNsPerSecond;  // the 504-GPU report
  TimeNs evidence_max_ns = 600 * kNsPerSecond;         // older evidence decides nothing (NVSentinel#450)
};

// Which rail refused.
enum class Rail : uint8_t {
  kMode,
  kStage,
  kReset,  // decided before the breaker's reset
  kEvidenceAge,
  kConfidence,
  kCorroboration,
  kGroup,
  kVeto,
  kBusy,  // another action on this host, or another decision of this job, is open
  kBreakerShort,
  kBreakerLong,
  kBreakerAtOnce,
};
std::string_view to_string(Rail rail);  // "breaker-10m", "veto", …

struct Refusal {
  Rail rail = Rail::kMode;
  std::string why;  // one sentence without a full stop: the limit, its value, how to reset or change it
};

// A wish to isolate one host.
struct IsolationWish {
  std::string host;
  std::string partition;
  const Case* why = nullptr;    // borrowed; not null
  TimeNs decided_ns = kNoTime;  // when the decision was made
  bool group = false;           // one host of an over-isolated group
  uint32_t group_hosts = 0;
  double confidence_needed = 0.85;  // from the policy; on probation any confidence suffices
};

class Guard {
 public:
  explicit Guard(GuardOptions options = {}) : options_(std::move(options)) {}

  const GuardOptions& options() const { return options_; }
  void configure(GuardOptions options) { options_ = std::move(options); }
  void set_cluster(uint32_t hosts) { cluster_hosts_ = hosts; }
  uint32_t cluster_hosts() const { return cluster_hosts_; }

  // Whether these may be done now.
  std::optional<Refusal> isolate(const IsolationWish& wish, TimeNs now) const;
  std::optional<Refusal> give_back(const std::string& host, const std::string& partition) const;
  std::optional<Refusal> restart(const std::string& partition) const;
  std::optional<Refusal> check(const std::string& partition) const;
  // Of any stage: what the mode permits.
  Permit permit() const;

  // The breaker: a sentence on the open limit, if isolation is blocked now.
  std::optional<Refusal> breaker(TimeNs now) const;

  // What happened. An isolation counts from its order, so that several of one step respect the limits.
  void isolated(const std::string& host, TimeNs at);
  void not_isolated(const std::string& host);  // the order failed and changed nothing
  // Observe mode: counts in the windows alone, so that the breaker opens as it would.
  void would_isolate(const std::string& host, TimeNs at);
  void returned(const std::string& host, TimeNs at);
  void begin(const std::string& host, const std::string& op);  // an action on the host is open
  void end(const std::string& host, const std::string& op);
  // A person undid an isolation: a veto for that root on that host.
  void vetoed(const std::string& host, const std::string& root, TimeNs at);
  // A person resets the breaker: the windows are empty, and what was decided before is dropped.
  void reset(TimeNs at);
  bool has_veto(const std::string& host, const std::string& root, TimeNs now) const;
  bool on_probation(const std::string& host, TimeNs now) const;
  TimeNs reset_ns() const { return reset_ns_; }
  uint32_t at_once() const { return static_cast<uint32_t>(now_out_.size()); }
  const std::set<std::string>& out() const { return now_out_; }  // hosts that we isolated, or may have

 private:
  const Stages& stages_of(const std::string& partition) const;
  uint32_t within(TimeNs window, TimeNs now) const;
  std::optional<Refusal> window_refusal(TimeNs now) const;

  GuardOptions options_;
  uint32_t cluster_hosts_ = 0;
  std::deque<std::pair<TimeNs, std::string>> isolations_;  // of long_window_ns, ascending
  std::set<std::string> now_out_;
  std::map<std::string, TimeNs> returned_;
  std::map<std::pair<std::string, std::string>, TimeNs> vetoes_;
  std::map<std::string, std::string> busy_;  // by host: op
  TimeNs reset_ns_ = kNoTime;
};

}  // namespace culprit::recover
