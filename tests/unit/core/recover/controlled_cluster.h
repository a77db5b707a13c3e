// A cluster for tests of the controller: inputs go in, orders come out as lines, time is a variable.
#pragma once

#include <fmt/format.h>

#include <map>

#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "core/recover/controller.h"

namespace culprit::recover::test {

constexpr TimeNs kSecond = kNsPerSecond, kMin = 60 * kSecond, kHour = 60 * kMin, kDays = 24 * kHour;
constexpr TimeNs kStart = 1'700'000'000 * kNsPerSecond;

inline ScheduledJob job_named(const std::string& id, uint32_t restarts = 0, TimeNs submit = kStart) {
  ScheduledJob job;
  job.scheduler = "slurm";
  job.id = id;
  job.submit_ns = submit;
  job.restarts = restarts;
  return job;
}

// A line of the kernel on its own host says that a GPU is gone.
inline Diagnosis gpu_lost(const std::string& host, TimeNs at) {
  Diagnosis d;
  d.rule = "nvidia.xid.79";
  d.title = "GPU has fallen off the bus";
  d.category = Category::kHardware;
  d.component = Component::kGpu;
  d.symptom = Symptom::kCrash;
  d.confidence = 0.92;
  d.time_ns = at;
  d.hosts.emplace_back().host = host;
  d.action.kind = ActionKind::kIsolate;
  d.action.targets = {host};
  d.restart.kind = Restart::kElsewhere;
  d.restart.sure = true;
  d.restart.hosts = {host};
  Evidence& e = d.evidence.emplace_back();
  e.host = host;
  e.file = "/dev/kmsg";
  e.time_ns = at;
  return d;
}

// The same, written by a user of the host into the job's log.
inline Diagnosis forged(const std::string& host, TimeNs at) {
  Diagnosis d = gpu_lost(host, at);
  d.evidence[0].file = "/home/user/job.log";
  d.evidence[0].uid = Principal(1000);
  return d;
}

inline Diagnosis software(TimeNs at) {
  Diagnosis d;
  d.rule = "python.import";
  d.title = "No module named apex";
  d.category = Category::kUser;
  d.component = Component::kDependency;
  d.symptom = Symptom::kCrash;
  d.confidence = 0.95;
  d.time_ns = at;
  d.restart.kind = Restart::kNever;
  d.restart.sure = true;
  return d;
}

inline GuardOptions all_on(Mode mode = Mode::kAct) {
  GuardOptions out;
  out.mode = mode;
  out.stages = {true, true, true, true};
  return out;
}

inline ControllerOptions acting(Mode mode = Mode::kAct) {
  ControllerOptions out;
  out.guard = all_on(mode);
  return out;
}

struct OrderText {
  std::string operator()(const ActionOrder& o) const {
    std::string line = fmt::format("{} {}", to_string(o.kind), o.target);
    if (o.kind == OrderKind::kRunAgain)
      for (const std::string& host : o.excluded) line += " -" + host;
    return line;
  }
  std::string operator()(const CheckOrder& o) const {
    std::string line = "check";
    for (const std::string& host : o.hosts) line += " " + host;
    return line;
  }
  std::string operator()(const Question& q) const {
    std::string line = "ask";
    for (const ActionOrder& o : q.orders) line += " [" + (*this)(o) + "]";
    return line;
  }
  std::string operator()(const AdviceOrder& a) const {
    return fmt::format("advise {} {}", to_string(a.advice.kind), a.job.id);
  }
  std::string operator()(const Note& n) const { return fmt::format("{}: {}", to_string(n.kind), n.text); }
};

class Cluster {
 public:
  explicit Cluster(ControllerOptions options = acting(), uint32_t size = 1200) : c(std::move(options)) {
    give(ClusterSeen{size});
  }

  // Returns the orders of this step that are no notes.
  std::vector<std::string> give(std::vector<Input> inputs) {
    orders.clear();
    notes.clear();
    std::vector<std::string> out;
    for (const Order& order : c.step(inputs, now)) {
      const std::string line = std::visit(OrderText{}, order);
      history.push_back(line);
      if (const Note* n = std::get_if<Note>(&order)) {
        notes.push_back(*n);
        continue;
      }
      out.push_back(line);
      if (const ActionOrder* o = std::get_if<ActionOrder>(&order)) orders.push_back(*o);
      if (const Question* q = std::get_if<Question>(&order)) question = *q;
    }
    for (ActionRecord& row : c.drain_actions()) stored_actions[row.order.op] = row;
    for (AttemptRecord& row : c.drain_attempts())
      stored_attempts[fmt::format("{}#{}", key_of(row.job), row.attempt)] = row;
    for (MachineRecord& row : c.drain_machines()) stored_machines[row.host + row.device] = row;
    return out;
  }
  template <class In>
  std::vector<std::string> give(In in) {
    return give(std::vector<Input>{Input(std::move(in))});
  }

  std::vector<std::string> start(const ScheduledJob& job,
                                 std::vector<std::string> hosts = {"n1", "n2", "n3"}) {
    AttemptStarted in;
    in.job = job;
    in.hosts = std::move(hosts);
    return give(in);
  }
  std::vector<std::string> verdict(const ScheduledJob& job, Diagnosis d, bool alive) {
    VerdictSeen in;
    in.job = job;
    in.diagnosis = std::move(d);
    in.alive = alive;
    return give(in);
  }
  std::vector<std::string> progress(const ScheduledJob& job, int64_t iteration, bool saved = false) {
    ProgressSeen in;
    in.job = job;
    in.iteration = iteration;
    in.saved = saved;
    return give(in);
  }
  std::vector<std::string> ended(const ScheduledJob& job, JobEnd end, std::vector<std::string> failed = {}) {
    AttemptEnded in;
    in.job = job;
    in.end = end;
    in.failed_hosts = std::move(failed);
    return give(in);
  }
  std::vector<std::string> result(const ActionOrder& order, ActionState state = ActionState::kDone,
                                  std::vector<std::string> hosts = {}) {
    ActionResult in;
    in.op = order.op;
    in.state = state;
    in.hosts = std::move(hosts);
    in.at_ns = now;
    return give(in);
  }
  // Answers every order of the step with "done", and those that follow, until there are none. Returns all.
  std::vector<std::string> all_done() {
    std::vector<std::string> out;
    for (std::vector<ActionOrder> open = orders; !open.empty();) {
      std::vector<ActionOrder> more;
      for (const ActionOrder& order : open) {
        for (std::string& line : result(order)) out.push_back(std::move(line));
        more.insert(more.end(), orders.begin(), orders.end());
      }
      open = std::move(more);
    }
    return out;
  }
  std::vector<std::string> later(TimeNs by) {
    now += by;
    return give(Tick{});
  }
  std::string state(const ScheduledJob& job) const {
    const auto view = c.view(key_of(job));
    return view ? std::string(to_string(view->state)) : "unknown";
  }
  bool noted(NoteKind kind, std::string_view part) const {
    for (const Note& n : notes)
      if (n.kind == kind && n.text.find(part) != n.text.npos) return true;
    return false;
  }

  Controller c;
  TimeNs now = kStart + kHour;
  std::vector<ActionOrder> orders;  // of the last step
  std::vector<Note> notes;          // of the last step
  Question question;                // the last one
  std::vector<std::string> history;
  std::map<std::string, ActionRecord> stored_actions;
  std::map<std::string, AttemptRecord> stored_attempts;
  std::map<std::string, MachineRecord> stored_machines;
};

using Lines = std::vector<std::string>;

}  // namespace culprit::recover::test
