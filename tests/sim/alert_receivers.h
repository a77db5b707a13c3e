// Receivers of alerts and a controller, outside of the daemon: they outlive its ends and remember what they
// were sent.
#pragma once

#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "app/daemon/alerts/alert_delivery.h"
#include "app/daemon/alerts/run_verdict.h"
#include "records/rows.h"
#include "sim/random.h"
#include "sim/sim_env.h"

namespace culprit::sim {

// A message that the receiver took.
struct TakenMessage {
  std::string id;
  std::string body;
  alert::Issue issue;
  TimeNs time_ns = 0;     // of the world
  bool answered = false;  // the daemon learns of it
};

class AlertReceiver {
 public:
  AlertReceiver(World& world, uint64_t seed) : world_(world), random_(seed) {}

  // What it does, in per cent of the requests; the rest is taken and answered at once.
  struct Faults {
    uint32_t refuses = 0;  // takes nothing
    uint32_t busy = 0;     // takes nothing, and asks for a later attempt
    uint32_t lost = 0;     // takes nothing, and the daemon waits until its limit
    uint32_t unheard = 0;  // takes it, and its answer is lost
    uint32_t late = 0;     // takes it, and answers after a long time
  } faults;

  // On the receiver's worker of `env`.
  app::DeliveryOutcome deliver(SimEnv& env, const app::DeliveryOrder& order);

  const std::vector<TakenMessage>& taken() const { return taken_; }
  // The newest message by issue.
  const std::map<std::string, TakenMessage>& last() const { return last_; }
  // Runs whose fault was sent at least once.
  const std::set<records::JobRunId>& runs() const { return runs_; }
  uint64_t failures = 0, unanswered = 0;

 private:
  void take(const app::DeliveryOrder& order, bool answered);

  World& world_;
  Random random_;
  std::vector<TakenMessage> taken_;
  std::map<std::string, TakenMessage> last_;
  std::set<records::JobRunId> runs_;
};

// A subscriber of the verdicts that keeps what it was given last, as a controller would on its disk.
struct VerdictReader {
  struct State {
    std::string diagnosis;  // its id; empty: the run has no verdict
    std::set<std::string> refuted;
    bool operator==(const State&) const = default;
  };
  std::map<records::JobRunId, State> states;
  uint64_t calls = 0;

  static State state_of(const app::RunVerdict& verdict);
  void read(std::span<const app::RunVerdict> verdicts);
};

}  // namespace culprit::sim
