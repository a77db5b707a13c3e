// The real controller (core/recover) as the supervisor of a simulated cluster: it gets diagnoses as the
// engine makes them, and the simulated scheduler carries out its orders. Knows nothing of the truth. One
// thread.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "core/recover/controller.h"
#include "sim/cluster/params.h"
#include "sim/cluster/supervisor.h"

namespace culprit::sim {

struct ControlOptions {
  recover::ControllerOptions controller;
  uint32_t blind_to = 0;           // bits of Looks: such a verdict comes without a culprit
  bool trusts_users = false;       // every author counts as independent
  bool ignores_hangs = false;      // a hang is noticed when the job's own watchdog ends it
  bool newest_checkpoint = false;  // never an older one
  // Sees each step of the controller; may be empty.
  std::function<void(std::span<const recover::Input>, TimeNs, std::span<const recover::Order>)> watch = {};
};
// The defaults, with mode `act` and all stages on.
ControlOptions control_defaults();

// A rule of the policy or of the guard, and how the controller is without it.
struct Ablation {
  const char* name;
  const char* about;
  void (*leave_out)(ControlOptions&);
};
std::span<const Ablation> cluster_ablations();

// A threshold of the controller, for a sweep. Times are seconds.
struct Threshold {
  const char* name;
  double (*get)(const ControlOptions&);
  void (*set)(ControlOptions&, double);
  bool chosen;  // a default without a source
};
std::span<const Threshold> cluster_thresholds();

class ControlledSupervisor : public Supervisor {
 public:
  // `hosts`: of the cluster, spares included.
  ControlledSupervisor(const ControlOptions& options, const ClusterParams& params, uint32_t hosts);
  std::vector<ClusterOrder> step(const ClusterInput& input, TimeNs now) override;
  TimeNs next_wake() const override { return controller_.next_ns(); }

 private:
  struct Job {
    ScheduledJob name;
    std::vector<std::string> hosts;
    bool alive = false, held = false, older = false;
    std::vector<std::string> pending;       // ops whose result comes when it runs
    std::map<uint32_t, uint32_t> measured;  // times that a host was measured as slow
  };
  struct Given {
    ClusterOrder::Kind kind;
    std::string op;
    uint32_t host;
  };

  void translate(const ClusterInput& input, TimeNs now, std::vector<recover::Input>& out);
  void runs(const ClusterInput& input, TimeNs now, std::vector<recover::Input>& out);
  void verdict(const ClusterInput& input, TimeNs now, std::vector<recover::Input>& out);
  void done(const ClusterInput& input, TimeNs now, std::vector<recover::Input>& out);
  void collect(const std::vector<recover::Order>& orders, TimeNs now, std::vector<ClusterOrder>& out);
  void action(const ActionOrder& order, TimeNs now, std::vector<ClusterOrder>& out);
  void hold(std::vector<ClusterOrder>& out);
  uint32_t eligible(const Job& job) const;
  void note_service(uint32_t host, bool out);
  recover::JobMeans means_of(const Job& job) const;
  void give_means_of_waiting(std::vector<recover::Input>& out) const;
  void add(ClusterOrder order, std::string op, std::vector<ClusterOrder>& out);
  static uint32_t number_of(const std::string& host);

  ControlOptions options_;
  recover::Controller controller_;
  std::vector<std::string> names_;  // of hosts
  std::vector<Job> jobs_;
  std::map<uint64_t, Given> given_;    // by order
  std::vector<recover::Input> later_;  // results known at once
  uint64_t orders_ = 0;
  std::set<uint32_t> out_;  // hosts that are not in service
  uint32_t free_hosts_ = 0, in_service_ = 0;
  bool started_ = false;
};

}  // namespace culprit::sim
