#include "sim/cluster/study.h"

#include <algorithm>

namespace culprit::sim {
namespace {

uint32_t all_hosts(const ClusterParams& p) {
  return static_cast<uint32_t>(p.hosts + (p.spares < 0 ? spares_for(p) : p.spares));
}

class Study {
 public:
  explicit Study(const ClusterStudy& study) : s_(study) {
    if (s_.params.spares < 0) s_.params.spares = spares_for(s_.params);  // a sweep does not change them
  }

  StudyResult run() {
    StudyRow base = row("culprit", "", 0);
    if (proceed("culprit")) both(base, s_.params);
    if (!stopped_) base.oracle = run_oracle(s_.params, s_.seed, s_.runs);
    StudyResult out{std::move(base), {}, {}, {}};
    if (s_.ablation) leave_out(out.ablation);
    if (s_.sweep) sweep_params(out.parameters);
    if (s_.sweep) sweep_thresholds(out.thresholds);
    return out;
  }

 private:
  static StudyRow row(std::string name, std::string about, double value) {
    const size_t kinds = incident_kinds().size();
    return {std::move(name),       std::move(about),      value,
            ClusterOutcome(kinds), ClusterOutcome(kinds), ClusterOutcome(kinds)};
  }

  bool proceed(const std::string& name) {
    if (!stopped_ && s_.proceed) stopped_ = !s_.proceed(name);
    return !stopped_;
  }

  void both(StudyRow& into, const ClusterParams& params) {
    into.waiting = run_waiting(params, s_.seed, s_.runs);
    into.controlled = run_controlled(params, s_.control, s_.seed, s_.runs);
  }

  void leave_out(std::vector<StudyRow>& out) {
    for (const Ablation& one : cluster_ablations()) {
      if (!proceed(one.name)) return;
      ControlOptions control = s_.control;
      one.leave_out(control);
      StudyRow next = row(one.name, one.about, 0);
      next.controlled = run_controlled(s_.params, control, s_.seed, s_.runs);
      out.push_back(std::move(next));
    }
  }

  void sweep_params(std::vector<StudyRow>& out) {
    for (const ClusterParam& one : cluster_params()) {
      if (!one.sweep) continue;
      const int64_t value = s_.params.*one.value;
      for (const int64_t changed : {value / 2, value * 2}) {
        if (!proceed(one.name)) return;
        ClusterParams params = s_.params;
        params.*one.value = std::clamp(changed, std::max<int64_t>(one.low, 0), one.high);
        StudyRow next = row(one.name, "", static_cast<double>(params.*one.value));
        both(next, params);
        out.push_back(std::move(next));
      }
    }
  }

  void sweep_thresholds(std::vector<StudyRow>& out) {
    for (const Threshold& one : cluster_thresholds()) {
      const double value = one.get(s_.control);
      for (const double changed : {value / 2, value * 2}) {
        if (!proceed(one.name)) return;
        ControlOptions control = s_.control;
        one.set(control, changed);
        StudyRow next = row(one.name, one.chosen ? "chosen" : "", one.get(control));
        next.controlled = run_controlled(s_.params, control, s_.seed, s_.runs);
        out.push_back(std::move(next));
      }
    }
  }

  ClusterStudy s_;
  bool stopped_ = false;
};

}  // namespace

ClusterOutcome run_waiting(const ClusterParams& params, uint64_t seed, uint32_t runs) {
  ClusterOutcome out(incident_kinds().size());
  for (uint32_t i = 0; i < runs; ++i) {
    TimeoutSupervisor supervisor;
    out.add(ClusterWorld(params, seed + i, supervisor).run());
  }
  return out;
}

ClusterOutcome run_controlled(const ClusterParams& params, const ControlOptions& control, uint64_t seed,
                              uint32_t runs) {
  ClusterOutcome out(incident_kinds().size());
  for (uint32_t i = 0; i < runs; ++i) {
    ControlledSupervisor supervisor(control, params, all_hosts(params));
    out.add(ClusterWorld(params, seed + i, supervisor).run());
  }
  return out;
}

ClusterOutcome run_oracle(const ClusterParams& params, uint64_t seed, uint32_t runs) {
  ClusterOutcome out(incident_kinds().size());
  for (uint32_t i = 0; i < runs; ++i) {
    OracleSupervisor supervisor;
    out.add(ClusterWorld(params, seed + i, supervisor).run());
  }
  return out;
}

StudyResult run_study(const ClusterStudy& study) { return Study(study).run(); }

}  // namespace culprit::sim
