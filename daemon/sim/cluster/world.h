// A simulated cluster over months of virtual time: hosts, jobs, incidents, a scheduler, people who drain,
// mend and repair, and one supervisor. Equal parameters, seed and supervisor give equal outcomes. One thread.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <queue>
#include <vector>

#include "sim/cluster/account.h"
#include "sim/cluster/incident.h"
#include "sim/cluster/supervisor.h"
#include "sim/random.h"

namespace culprit::sim {

constexpr TimeNs kStepNs = 10 * kNsPerSecond;  // a step of a simulated job; the first one after a start too

struct ClusterOutcome {
  explicit ClusterOutcome(size_t kinds) : time(kinds) {}
  TimeTable time;  // of all jobs; adds up to wall_ns
  TimeNs wall_ns = 0;
  uint64_t incidents = 0, without_effect = 0;
  uint64_t attempts = 0, failures = 0;
  uint64_t isolated_faulty = 0, isolated_innocent = 0, isolated_by_user = 0;  // by the supervisor
  uint64_t over_isolated = 0;  // of isolated_innocent: members of a group
  TimeNs innocent_ns = 0;      // innocent hosts out of service, all together
  uint64_t drained_by_person = 0, holds = 0;

  void add(const ClusterOutcome& other);
  double ettr() const {
    return wall_ns == 0 ? 1 : static_cast<double>(time.of(Phase::kUseful)) / static_cast<double>(wall_ns);
  }
};

class ClusterWorld {
 public:
  // `supervisor` outlives the world.
  ClusterWorld(const ClusterParams& params, uint64_t seed, Supervisor& supervisor);
  // The usual incidents replaced; for tests.
  void set_incidents(std::vector<Incident> incidents) { incidents_ = std::move(incidents); }
  ClusterOutcome run();

 private:
  enum class Out : uint8_t { kNot, kIsolated, kByPerson, kDown };
  enum class State : uint8_t { kTraining, kFailing, kEnding, kEnded, kStarting, kNoHosts };
  enum class What : uint8_t {
    kIncident,  // id: incident
    kExit,      // id: job, as the next ones; the processes of a failed attempt have ended
    kSilent,
    kPlaced,  // the scheduler shows it as running
    kStarted,
    kStepped,
    kSaved,
    kMended,     // by a person without an alert; serial: the incident
    kRestarted,  // by a person after an alert
    kTruth,      // for an oracle
    kForgotten,  // ended, and no order since
    kVerdict,    // id: index of verdicts_
    kOrder,      // id: index of orders_
    kRepaired,   // id: host, as the next ones
    kChecked,    // isolated, and looked at by the site
    kDrained,    // by a person
    kDown,       // declared by the scheduler
    kMeasured,   // as slow; serial: that of the host, and a count in the low byte
    kRecur,      // a fault that comes and goes; serial: of the job's attempt
    kWake
  };
  struct Event {
    TimeNs at_ns;
    uint64_t sequence;
    What what;
    uint32_t id;      // job, host, incident or index of a list
    uint64_t serial;  // of the job's attempt or the host's service; events of an earlier one are ignored
    bool operator>(const Event& other) const {
      return at_ns != other.at_ns ? at_ns > other.at_ns : sequence > other.sequence;
    }
  };
  struct Stated {
    uint32_t job;
    uint32_t attempt;
    size_t cause;
    ClusterVerdict verdict;
  };
  struct Host {
    int32_t job = -1;
    int32_t fault = -1;  // incident that broke it
    Out out = Out::kNot;
    bool innocent = false;  // isolated without a fault
    bool noticed = false;   // a person is on the way
    TimeNs out_since_ns = 0;
    uint64_t serial = 0;
    uint32_t named_by = 0;  // sources of all verdicts that named it since it came into service
  };
  struct Job {
    State state = State::kTraining;
    bool held = false;
    std::optional<uint32_t> program, checkpoint, outage;  // incidents that each start fails by
    std::vector<uint32_t> hosts;
    size_t size = 0;
    size_t cause = 0;
    uint32_t incident = 0;     // of the latest failure
    size_t verdict_cause = 0;  // of the latest verdict
    TimeNs since_ns = 0, outage_until_ns = 0;
    TimeNs news_ns = 0;   // of the latest start or verdict
    uint64_t serial = 0;  // of the state: events of an earlier one are ignored
    uint32_t attempt = 0;
    int64_t slow_percent = 0;
    size_t slow_cause = 0;
    ClusterOrder again;  // the latest order to run
    Training training;
    TimeTable time{incident_kinds().size()};
    explicit Job(const ClusterParams& p)
        : training(p.checkpoint_every_s * kNsPerSecond, p.save_stall_ms * kNsPerMs) {}
  };

  void at(TimeNs at_ns, What what, uint32_t id, uint64_t serial = 0);
  void handle(const Event& event);
  void handle_job(const Event& event, uint32_t id);
  void handle_host(const Event& event, uint32_t id);
  void inform(ClusterInput input);
  void give(ClusterOrder order);
  void carry_out(const ClusterOrder& given);
  void check(uint32_t host, uint64_t order);
  void account(Job& job);

  void break_something(uint32_t incident);
  void fail_job(uint32_t job, uint32_t incident);
  void break_host(uint32_t incident);
  void state_verdict(uint32_t job, uint32_t incident, TimeNs delay_ns);
  void state_silence(uint32_t job);
  ClusterVerdict verdict_of(uint32_t job, uint32_t incident);
  std::vector<uint32_t> named(const Job& job, const Incident& incident, Random& random) const;
  void end_job(uint32_t job, bool by_person, bool node_failed);
  void start_job(uint32_t job, const ClusterOrder& order);
  bool place_job(uint32_t job);
  void started(uint32_t job);
  void measure_slowness(Job& job);
  std::optional<uint32_t> failure_at_start(const Job& job) const;
  void start_waiting_jobs();
  void take_out(uint32_t host, Out out);
  void back_to_service(uint32_t host, bool by_person);
  void person_drains(uint32_t host);
  void person_restarts(uint32_t job);
  void mend(Job& job, uint32_t incident);
  void count_hosts(ClusterInput& input) const;
  void tell_truth(ClusterInput& input) const;
  const IncidentKind& kind_of(uint32_t incident) const { return incident_kinds()[incidents_[incident].kind]; }

  const ClusterParams p_;
  Supervisor& supervisor_;
  std::vector<Incident> incidents_;
  std::vector<Host> hosts_;
  std::vector<Job> jobs_;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  std::vector<Stated> verdicts_;      // by event id
  std::vector<ClusterOrder> orders_;  // by event id
  Random random_;
  uint64_t sequence_ = 0;
  TimeNs now_ = 0, wake_ns_ = kNoTime;
  ClusterOutcome outcome_;
};

}  // namespace culprit::sim
