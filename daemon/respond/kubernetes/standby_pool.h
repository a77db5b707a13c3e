// The pool of spare nodes at Kubernetes: idle nodes with the label and the taint `culprit.dev/standby`,
// which no pod is to tolerate. Where pods of a job that runs again find no node, a spare is handed over:
// both marks are removed, and the scheduler does the rest. The pool is filled again from idle nodes, those
// that we returned lately first: a host on probation is a spare before it gets a job. The marks are the
// whole state: after a crash nothing is to be remembered. Cordons and taints of others stay as they are.
//
// Blocking, but for want() and nodes(). Any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/time.h"
#include "respond/kubernetes/api.h"
#include "respond/kubernetes/objects.h"
#include "respond/scheduler_view.h"

namespace culprit::respond::kubernetes {

class StandbyPool {
 public:
  static constexpr TimeNs kKeepEvery = 30 * kNsPerSecond;
  // A node that was handed over is idle until the pods are bound; keep() must not take it back.
  static constexpr TimeNs kAfterHandOver = 60 * kNsPerSecond;
  static constexpr TimeNs kOutFor = 60 * kNsPerSecond;  // a spare that is out so long leaves the pool
  static constexpr size_t kLooksMost = 16;              // candidates that one round looks at

  // `now`: monotonic.
  StandbyPool(ApiCall call, TimeNs now) : call_(std::move(call)), handed_over_ns_(now) {}

  // Nodes that the pool is to have; 0: it is left alone. `observe`: nothing is written, and keep() says what
  // would be. `probation_ns`: nodes that were returned within it come first.
  void want(uint32_t nodes, bool observe, TimeNs probation_ns = 0);
  // Spares when they were last seen; nothing: unknown, or there is to be no pool.
  std::optional<uint32_t> nodes() const;

  struct Round {
    std::string note;      // what a person should know; empty: nothing new
    bool changed = false;  // nodes were written
  };
  // Fills the pool from the view, at most each kKeepEvery. It does not grow while a pod finds no node.
  Round keep(const SchedulerView& view, Pace& pace);

  struct Lack {
    std::set<std::string> pods;  // UIDs of the job's pods that wait for a node
    std::vector<std::string> excluded;
  };
  // Removes the marks of one spare that could run such a pod, where no other pod of the same or a higher
  // priority has waited longer that could run there too. Returns the node; empty: none. An error: of the
  // server; the node may have been handed over.
  Result<std::string> hand_over(const Lack& lack, Pace& pace);

 private:
  enum class Written : uint8_t { kDone, kNotFit, kFailed };
  Written write(const std::string& host, bool spare, Pace& pace, std::string& trouble) const;
  std::optional<bool> is_idle(const std::string& host, Pace& pace, std::string& trouble) const;
  bool add(const std::string& host, Pace& pace, std::string& trouble) const;
  void drop_broken(const SchedulerView& view, Pace& pace, Round& out, std::string& trouble);
  uint32_t grow(const SchedulerView& view, uint32_t missing, Pace& pace, std::string& trouble);
  std::vector<std::string> candidates(const SchedulerView& view, TimeNs wall) const;
  // Pods that no node takes; nullopt: unknown.
  std::optional<std::vector<Json>> unschedulable(Pace& pace, std::string& trouble) const;

  const ApiCall call_;
  std::atomic<uint32_t> wanted_ = 0;
  std::atomic<bool> observe_ = false;
  std::atomic<TimeNs> probation_ns_ = 0;
  std::atomic<int64_t> nodes_ = -1;  // -1: unknown
  std::timed_mutex mutex_;           // of what follows, and of the writes: one change at a time
  TimeNs handed_over_ns_, round_ns_ = kNoTime;
  std::map<std::string, TimeNs> out_since_;  // spares that are out
  size_t rounds_ = 0;
  std::string reported_note_;  // reported
};

// A pod's requests and node selector against a node's size and labels, other pods left aside.
bool could_run(const Json& pod, const Json& node);
// "8", "500m", "16Gi" as a number; nullopt: another form.
std::optional<double> parse_quantity(std::string_view text);

}  // namespace culprit::respond::kubernetes
