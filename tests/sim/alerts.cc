// A daemon with jobs that fail, recover and run again, and people who judge and handle what it found, in a
// simulated world, one run per seed. The engine, the records, the alerts, the verdicts for a controller and
// the API are those of culpritd. The daemon is killed at any moment, its disk fails and fills, receivers
// refuse, hang and answer late, and the clock steps. After all faults end, records, receivers, controller and
// API must agree, without help.
//
//   sim_alerts [--runs N] [--from SEED] [--seed SEED] [--folder FOLDER]
//
// A failure prints its seed; --seed runs it alone and prints its events.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "alert_machine.h"
#include "base/hash.h"
#include "store/alert_store.h"

namespace culprit::sim {
namespace {

using nlohmann::json;

// Faults of one run. Each run has some of them, so that a failure shows which are needed.
struct AlertWeather {
  bool kills, dies_in_write, full_disk, failing_disk, receivers, clock, people, storms, slow_work;
  static AlertWeather draw(Random& random) {
    const auto some = [&] { return random.chance(50); };
    return {some(),
            some(),
            random.chance(30),
            random.chance(30),
            some(),
            random.chance(30),
            random.chance(80),
            random.chance(30),
            some()};
  }
};

// How long after a message the daemon may need to write that it was sent: an answer after nine seconds, five
// seconds until it tries a failed write again, and work that takes 50 times its usual time.
constexpr TimeNs kWrittenWithin = 20 * kNsPerSecond;

struct Totals {
  uint64_t faults = 0, runs = 0, issues = 0, messages = 0, doubled = 0, judged = 0, kills = 0;
};

class AlertRun {
 public:
  AlertRun(uint64_t seed, const std::string& folder, std::shared_ptr<rules::Ruleset> rules, bool tells)
      : tells_(tells), world_(seed), random_(Random(seed).fork(11)), disk_(mix64(seed, 70)) {
    weather_ = AlertWeather::draw(random_);
    std::filesystem::create_directories(folder);
    AlertMachinePlan plan;
    plan.rules = std::move(rules);
    plan.work_ns = weather_.slow_work ? 40 * kNsPerMs : 0;
    plan.tell = [this](const std::string& what) { tell(what); };
    app::Config& config = plan.config;
    config.state_dir = folder;
    config.host.name = "node-0";
    config.alerts.storm_above = weather_.storms ? 1 : 10;
    if (random_.chance(30)) config.alerts.remind_every_ns = 60 * kNsPerSecond;
    for (const char* name : {"all", "hardware", "manager"}) {
      app::AlertConfig& receiver = config.alert.emplace_back();
      receiver.name = name;
      receiver.url = fmt::format("http://{}.test/", name);
    }
    config.alert[1].categories = {"hardware", "platform"};
    config.alert[2].type = app::AlertType::kAlertmanager;
    folder_ = folder;
    machine_ = std::make_unique<AlertMachine>(world_, plan, disk_);
    for (const app::AlertConfig& receiver : config.alert)
      machine_->receivers.emplace(receiver.name, AlertReceiver(world_, random_.next()));
    const uint64_t jobs = 1 + random_.below(4);
    for (uint64_t i = 0; i < jobs; ++i) machine_->logs.push_back({fmt::format("job-{}", i), "", false});
  }

  // Empty: all checks passed.
  std::string run(Totals& totals) {
    start();
    for (size_t i = 0; i < machine_->logs.size(); ++i) {
      step_job(i);
      world_.after(random_.range(0, 60) * kNsPerSecond, [this, i] { begin_job(i); });
    }
    plan_fault();
    plan_deed();
    look_at_bounds();
    pass(random_.range(300, 1200) * kNsPerSecond);
    mend();
    // The longest waits are five minutes: of an outbox after failures, and of a silence here.
    pass(900 * kNsPerSecond);
    settle();
    ask();
    pass(10 * kNsPerSecond);
    settle();
    if (broken_.empty()) verify();
    count(totals);
    if (tells_) fmt::print("{}", told_);
    return broken_;
  }

 private:
  void broken(const std::string& what) {
    if (broken_.empty()) broken_ = fmt::format("{} (at {:.3f} s)", what, seconds());
    tell("BROKEN " + what);
  }
  double seconds() const { return static_cast<double>(world_.monotonic_ns()) / 1e9; }
  // Printed at the end: a full disk is one for standard output too.
  void tell(const std::string& what) {
    if (tells_) told_ += fmt::format("{:10.3f} {}\n", seconds(), what);
  }
  void pass(TimeNs ns) {
    if (broken_.empty() && !world_.run_for(ns)) broken("time stands still");
  }
  void look_at_bounds() {
    if (machine_->is_up()) {
      const auto& alerts = machine_->alerts();
      if (alerts.book().issues().size() > 500) broken("the book grows");
      if (alerts.outbox().pending() > 500) broken("the outbox grows");
    }
    world_.after(10 * kNsPerSecond, [this] { look_at_bounds(); });
  }

  // ---- jobs

  std::string clock() const {
    const std::string text = format_time(machine_->wall_ns());
    return text.substr(0, 19) + "," + text.substr(20, 3);
  }
  void begin_job(size_t i) {
    Job& job = jobs_[i];
    if (mended_ || machine_->logs[i].alive) return;
    machine_->logs[i].alive = true;
    job.steps = true;
    job.step = 0;
    tell(machine_->logs[i].job + " begins");
    plan_trouble(i);
  }
  void plan_trouble(size_t i) {
    world_.after(random_.range(20, 240) * kNsPerSecond, [this, i] { trouble(i); });
  }
  void write(size_t i, const std::string& text) { machine_->logs[i].text += clock() + " " + text + "\n"; }
  void step_job(size_t i) {
    Job& job = jobs_[i];
    if (machine_->logs[i].alive && job.steps)
      write(i, fmt::format("INFO step={} loss=2.{}", job.step, job.step % 10)), ++job.step;
    world_.after(2 * kNsPerSecond, [this, i] { step_job(i); });
  }
  void trouble(size_t i) {
    JobLog& log = machine_->logs[i];
    if (mended_ || !log.alive) return;
    const uint64_t kind = random_.below(6);
    tell(fmt::format("{}: trouble {}", log.job, kind));
    switch (kind) {
      case 0:  // and it goes on
        write(i, "kernel: NVRM: Xid (PCI:0000:9b:00): 79, pid=1, GPU has fallen off the bus.");
        return plan_trouble(i);
      case 1:
        write(i, "kernel: NVRM: Xid (PCI:0000:9b:00): 79, pid=1, GPU has fallen off the bus.");
        crash(i, "RuntimeError: CUDA error: unknown error");
        break;
      case 2:
        crash(i, "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB");
        break;
      case 3:
        crash(i, "OSError: [Errno 28] No space left on device: '/data/checkpoint.pt'");
        break;
      case 4:  // it hangs, and may go on
        jobs_[i].steps = false;
        return world_.after(random_.range(30, 200) * kNsPerSecond, [this, i] {
          jobs_[i].steps = true;
          plan_trouble(i);
        });
      default:  // it completes
        write(i, "INFO training completed");
        end(i);
    }
    world_.after(random_.range(10, 200) * kNsPerSecond, [this, i] { begin_job(i); });
  }
  void crash(size_t i, const std::string& error) {
    write(i,
          "ERROR Traceback (most recent call last):\n  File \"train.py\", line 3, in <module>\n    step()\n" +
              error);
    end(i);
  }
  void end(size_t i) {
    machine_->logs[i].alive = false;
    jobs_[i].steps = false;
  }

  // ---- people

  void plan_deed() {
    if (mended_ || !weather_.people) return;
    world_.after(random_.range(5, 60) * kNsPerSecond, [this] {
      if (!mended_ && machine_->is_up()) do_deed();
      plan_deed();
    });
  }
  void do_deed() {
    const auto firing = machine_->alerts().book().firing();
    if (random_.chance(50) || firing.empty()) return judge();
    serve::AlertOrder order;
    order.key = firing[random_.below(firing.size())]->key;
    order.what = static_cast<serve::AlertOrder::What>(random_.below(3));
    order.for_ns = random_.range(0, 300) * kNsPerSecond;
    tell(fmt::format("alert {} is handled: {}", order.key, static_cast<int>(order.what)));
    machine_->api().handle_alert(order, {"alice", 1000}, [](const Result<std::string>&) {});
  }
  void judge() {
    machine_->api().diagnoses({}, [this](const Result<std::string>& answer) {
      const json items = answer ? json::parse(*answer)["items"] : json::array();
      if (items.empty() || mended_) return;
      const json& one = items[random_.below(items.size())];
      serve::Judgement judgement;
      judgement.of = {one["job"].get<std::string>(), one["run"].get<uint32_t>()};
      judgement.id = one["id"].get<std::string>();
      judgement.right = random_.chance(40);
      const DiagnosisId id{judgement.of.job, *judgement.of.run, judgement.id};
      judged_.erase(id);  // it may be either until there is an answer
      asked_.insert(id);
      tell(fmt::format("{} {} of {} run {}", judgement.right ? "confirm" : "refute", judgement.id,
                       judgement.of.job, *judgement.of.run));
      machine_->api().judge(judgement, {"alice", 1000},
                            [this, id, right = judgement.right](const Result<std::string>& done) {
                              ++judgements_;
                              if (done) judged_[id] = right;
                            });
    });
  }

  // ---- faults

  // Not on a disk that fails: such a daemon keeps what it finds in memory until its next start, and says so.
  void start() {
    if (machine_->is_up()) return;
    if (disk_.failing()) return again();
    if (weather_.dies_in_write && !mended_ && random_.chance(20)) die_in_write();
    const bool up = machine_->start();
    tell(up ? "the daemon starts" : "the daemon does not start: " + machine_->why_not_started);
    if (!up) again();
  }
  void again() {
    world_.after(random_.range(1, 5000) * kNsPerMs, [this] { start(); });
  }
  void kill() {
    tell("the daemon is killed");
    ++kills_;
    ended_.push_back(world_.monotonic_ns());
    machine_->kill();
    again();
  }
  void die_in_write() {
    disk_.die_at(1 + random_.below(60), [this] {
      if (machine_->is_up()) machine_->mark_dead();
      world_.after(0, [this] { kill(); });
    });
  }
  void plan_fault() {
    if (mended_) return;
    world_.after(random_.range(100, 60'000) * kNsPerMs, [this] {
      if (mended_) return;
      ++faults_;
      make_fault();
      plan_fault();
    });
  }
  void make_fault() {
    switch (random_.below(6)) {
      case 0:
        if (weather_.kills && machine_->is_up()) kill();
        return;
      case 1:
        if (weather_.dies_in_write && machine_->is_up()) die_in_write();
        return;
      case 2:
        if (weather_.full_disk) fill();
        return;
      case 3:
        if (weather_.failing_disk) fail_now_and_then();
        return;
      case 4:
        if (weather_.receivers) change_receiver();
        return;
      default:
        if (weather_.clock) step_clock();
    }
  }
  void fill() {
    tell("the disk is full");
    disk_.fill(true);
    disk_failed_.emplace_back(world_.monotonic_ns(), INT64_MAX);
    world_.after(random_.range(1, 60) * kNsPerSecond, [this] { disk_works(); });
  }
  void fail_now_and_then() {
    tell("the disk fails now and then");
    disk_.fail(1 + static_cast<uint32_t>(random_.below(500)));
    disk_failed_.emplace_back(world_.monotonic_ns(), INT64_MAX);
    world_.after(random_.range(1, 60) * kNsPerSecond, [this] { disk_works(); });
  }
  void disk_works() {
    if (!disk_.failing()) return;
    tell("the disk works");
    disk_.fill(false);
    disk_.fail(0);
    for (auto& time : disk_failed_) time.second = std::min(time.second, world_.monotonic_ns());
  }
  void change_receiver() {
    auto at = machine_->receivers.begin();
    std::advance(at, random_.below(machine_->receivers.size()));
    const auto up_to = [&](uint64_t most) { return static_cast<uint32_t>(random_.below(most + 1)); };
    at->second.faults = {up_to(40), up_to(10), up_to(20), up_to(20), up_to(40)};
    if (random_.chance(30)) at->second.faults = {100};
    tell("receiver " + at->first + (at->second.faults.refuses == 100 ? " is down" : " is unreliable"));
    world_.after(random_.range(1, 200) * kNsPerSecond, [at] { at->second.faults = {}; });
  }
  // A watermark covers ten minutes of a clock that was set back: the steps of a run stay within them.
  void step_clock() {
    const TimeNs to = random_.range(-250, 250) * kNsPerSecond;
    tell(fmt::format("the clock is {} s off", to / kNsPerSecond));
    machine_->step_clock(to - stepped_ns_);
    stepped_ns_ = to;
  }
  void mend() {
    tell("all is mended");
    mended_ = true;
    disk_works();
    disk_.die_at(0, {});
    for (auto& [name, receiver] : machine_->receivers) receiver.faults = {};
    start();
  }

  // ---- checks

  // A reminder may be on its way.
  void settle() {
    for (int i = 0; i < 30 && broken_.empty() && !unfinished().empty(); ++i) pass(kNsPerSecond);
    if (const std::string what = unfinished(); !what.empty()) broken(what);
  }
  std::string unfinished() const {
    return machine_->is_up() ? machine_->unfinished() : "it does not start: " + machine_->why_not_started;
  }

  struct Answers {
    std::map<records::JobRunId, VerdictReader::State> states;  // of the records
    std::map<records::JobRunId, std::string> titles;           // the same; empty: no verdict
    std::map<records::JobRunId, std::string> reported;         // ids of the verdicts of reports
    std::map<std::string, bool> judged;
    json jobs, now, alerts;
  };

  void ask() {
    if (!broken_.empty()) return;
    app::DaemonApi& api = machine_->api();
    const auto keep = [this](json Answers::*to) {
      return [this, to](const Result<std::string>& answer) {
        answer ? void(answers_.*to = json::parse(*answer)) : broken("no answer: " + answer.error().text);
      };
    };
    api.jobs([this, keep](const Result<std::string>& answer) {
      keep (&Answers::jobs)(answer);
      if (answer) ask_reports();
    });
    api.now({1000, 0, "", ""}, keep(&Answers::now));
    api.alerts({}, keep(&Answers::alerts));
    machine_->recorder().query([this](store::Spool&, records::Records& records) {
      for (const auto& [id, right] : judged_) {
        const auto of_run = records.verdicts({.job = id.job, .run = id.run});
        for (const Verdict& v : of_run ? *of_run : std::vector<Verdict>())
          if (v.id() == id.diagnosis &&
              v.state == (right ? VerdictState::kConfirmed : VerdictState::kRefuted))
            ++judged_found_;
      }
    });
  }
  void ask_reports() {
    for (const json& item : answers_.jobs["items"]) {
      const records::JobRunId id{item["id"].get<std::string>(), item["run"].get<uint32_t>()};
      machine_->api().report({{id.first, id.second}}, [this, id](const Result<std::string>& answer) {
        if (!answer) return;  // of a run without an engine
        const json report = json::parse(*answer);
        answers_.reported[id] = report["verdict"].is_null() ? "" : report["verdict"]["id"].get<std::string>();
      });
      machine_->recorder().query([this, id](store::Spool&, records::Records& records) {
        const app::RunVerdict v = app::run_verdict(records, id.first, id.second);
        answers_.states[id] = VerdictReader::state_of(v);
        answers_.titles[id] = v.verdict ? v.verdict->diagnosis.title : "";
        if (!v.settled) broken(fmt::format("{} run {}: its verdict is not settled", id.first, id.second));
      });
    }
  }

  static std::string name_of(const records::JobRunId& id) {
    return fmt::format("{} run {}", id.first, id.second);
  }

  void verify() {
    verify_records();
    verify_api();
    for (const auto& [name, receiver] : machine_->receivers) verify_receiver(name, receiver);
    verify_controller();
    verify_store();
  }

  void verify_records() {
    if (judged_found_ != judged_.size())
      broken(fmt::format("{} of {} judgements that were answered are in the records", judged_found_,
                         judged_.size()));
    for (const auto& [id, diagnosis] : answers_.reported)
      // A confirmed verdict stays whatever the report says now.
      if (const std::string& shown = answers_.states[id].diagnosis;
          shown != diagnosis && !may_be_confirmed(id, shown))
        broken(fmt::format("{}: the verdict of its report is '{}', of the records '{}'", name_of(id),
                           diagnosis, answers_.states[id].diagnosis));
  }

  // It may also be where the last judgement had no answer.
  bool may_be_confirmed(const records::JobRunId& run, const std::string& diagnosis) const {
    const DiagnosisId id{run.first, run.second, diagnosis};
    const auto judged = judged_.find(id);
    return judged != judged_.end() ? judged->second : asked_.contains(id);
  }

  void verify_api() {
    for (const char* list : {"jobs", "now"})
      for (const json& item : (list[0] == 'j' ? answers_.jobs : answers_.now)["items"]) {
        const records::JobRunId id{item["id"].get<std::string>(), item["run"].get<uint32_t>()};
        const json& verdict = item["verdict"];
        const std::string title = verdict.is_string() ? verdict.get<std::string>()
                                  : verdict.is_object() && verdict.contains("title")
                                      ? verdict["title"].get<std::string>()
                                      : "";
        if (title != answers_.titles[id])
          broken(fmt::format("{}: /v1/{} has the verdict '{}', the records '{}'", name_of(id), list, title,
                             answers_.titles[id]));
      }
    const auto& issues = machine_->alerts().book().issues();
    if (answers_.alerts["items"].size() != issues.size()) broken("/v1/alerts has not all issues");
    for (const json& item : answers_.alerts["items"]) {
      const auto issue = issues.find(item["key"].get<std::string>());
      if (issue == issues.end() || issue->second.firing() != (item["state"] == "firing"))
        broken(fmt::format("/v1/alerts: issue {} is {}", item["key"].dump(), item["state"].dump()));
      for (const auto& [receiver, word] : item["receivers"].items())
        if (word == "waiting" || word == "held" || word == "dropped")
          broken(fmt::format("issue {} is {} for receiver {}", item["key"].dump(), word.dump(), receiver));
    }
  }

  void verify_receiver(const std::string& name, const AlertReceiver& receiver) {
    const auto& issues = machine_->alerts().book().issues();
    for (const auto& [key, message] : receiver.last()) {
      const auto known = issues.find(key);
      const bool storm = !message.issue.storm.empty();
      if (known == issues.end()) {
        broken(fmt::format("{} read of issue {}, which is lost", name, key));
      } else if (message.issue.firing() != known->second.firing()) {
        broken(fmt::format("{} read that issue {} is {}, and it is not", name, key,
                           message.issue.firing() ? "firing" : "over"));
      }
      const records::JobRunId id{message.issue.fault.job, message.issue.fault.run};
      if (!storm && message.issue.firing() && answers_.titles[id].empty())
        broken(fmt::format("{} read that issue {} is firing, and {} has no verdict", name, key, name_of(id)));
    }
    for (const auto& [key, issue] : issues)
      for (const auto& [to, d] : issue.deliveries) {
        if (to != name || d.state != alert::Delivery::State::kSent) continue;
        const auto read = receiver.last().find(key);
        if (read == receiver.last().end() || read->second.issue.revision != d.revision)
          broken(fmt::format("{} did not read revision {} of issue {}", name, d.revision, key));
      }
    if (name == "all")
      for (const auto& [id, title] : answers_.titles)
        if (!title.empty() && !receiver.runs().contains(id) && !closed_silently(id))
          broken(fmt::format("{} never read of {}: {}", name, name_of(id), title));
    verify_doubled(name, receiver);
  }
  // A person silenced the issue before it was sent, or it was over while a storm held it.
  bool closed_silently(const records::JobRunId& id) const {
    for (const auto& [key, issue] : machine_->alerts().book().issues())
      if (records::JobRunId(issue.fault.job, issue.fault.run) == id && !issue.firing()) return true;
    return false;
  }
  // A message comes again only where the daemon could not know, or could not write, that it was sent.
  void verify_doubled(const std::string& name, const AlertReceiver& receiver) {
    std::map<std::string, const TakenMessage*> before;
    for (const TakenMessage& message : receiver.taken()) {
      const TakenMessage*& first = before[message.id];
      if (first) {
        ++doubled_;
        // What people did to an issue is sent under the number of its last change.
        const bool again = first->answered && first->body == message.body;
        if (again && !was_disturbed(first->time_ns, message.time_ns))
          broken(fmt::format("{} got message {} twice, at {:.3f} s and {:.3f} s", name, message.id,
                             static_cast<double>(first->time_ns) / 1e9,
                             static_cast<double>(message.time_ns) / 1e9));
      }
      first = &message;
    }
  }
  // The daemon ended between the two, and had not written the first one: there was little time, or its disk
  // failed.
  bool was_disturbed(TimeNs first, TimeNs second) const {
    TimeNs written = first + kWrittenWithin;
    for (const auto& [from, until] : disk_failed_)
      if (from <= first + kWrittenWithin && first <= until + kWrittenWithin)
        written = std::max(written, until + kWrittenWithin);
    return std::ranges::any_of(ended_,
                               [&](TimeNs end) { return first <= end && end <= std::min(second, written); });
  }

  void verify_controller() {
    for (const auto& [id, state] : answers_.states) {
      const auto read = machine_->controller.states.find(id);
      const bool none = state.diagnosis.empty() && state.refuted.empty();
      if (read == machine_->controller.states.end()) {
        if (!none) broken(fmt::format("the controller never read the verdict of {}", name_of(id)));
      } else if (read->second != state) {
        broken(fmt::format("the controller read the verdict '{}' of {}, and it is '{}'",
                           read->second.diagnosis, name_of(id), state.diagnosis));
      }
    }
  }

  // What a next start would find.
  void verify_store() {
    std::map<std::string, std::string> expected;
    for (const auto& [key, issue] : machine_->alerts().book().issues()) expected[key] = to_json(issue);
    machine_->kill();
    auto store = store::AlertStore::open(folder_ + "/alerts.db");
    const auto stored = store ? (*store)->load() : tl::unexpected(store.error());
    if (!stored) return broken(stored.error().text);
    if (!stored->messages.empty()) broken(fmt::format("{} sent messages are kept", stored->messages.size()));
    for (const store::StoredIssue& issue : stored->issues)
      if (expected[issue.key] != issue.text) broken("issue " + issue.key + " is kept in another state");
    if (stored->issues.size() != expected.size()) broken("not all issues are kept");
    for (const char* file : {"alerts.db", "index.db"})
      if (std::filesystem::file_size(fmt::format("{}/{}", folder_, file)) > (8 << 20))
        broken(fmt::format("{} grows", file));
  }

  void count(Totals& totals) {
    totals.faults += faults_, totals.kills += kills_, totals.judged += judgements_,
        totals.doubled += doubled_;
    totals.runs += answers_.states.size();
    totals.issues += answers_.alerts.is_object() ? answers_.alerts["items"].size() : 0;
    for (const auto& [name, receiver] : machine_->receivers) totals.messages += receiver.taken().size();
  }

  struct Job {
    bool steps = false;
    int64_t step = 0;
  };
  struct DiagnosisId {
    std::string job;
    uint32_t run;
    std::string diagnosis;
    auto operator<=>(const DiagnosisId&) const = default;
  };

  const bool tells_;
  World world_;
  Random random_;
  DiskFaults disk_;
  AlertWeather weather_;
  std::string folder_;
  std::unique_ptr<AlertMachine> machine_;
  std::map<size_t, Job> jobs_;
  std::map<DiagnosisId, bool> judged_;                  // judgements that were answered
  std::set<DiagnosisId> asked_;                         // all that people judged
  std::vector<TimeNs> ended_;                           // when the daemon was killed
  std::vector<std::pair<TimeNs, TimeNs>> disk_failed_;  // from, until
  TimeNs stepped_ns_ = 0;
  bool mended_ = false;
  Answers answers_;
  size_t judged_found_ = 0;
  std::string broken_, told_;
  uint64_t faults_ = 0, kills_ = 0, judgements_ = 0, doubled_ = 0;
};

}  // namespace
}  // namespace culprit::sim

int main(int argc, char** argv) {
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  uint64_t runs = 100, from = 1;
  bool tells = false;
  std::string folder;
  for (int i = 1; i + 1 < argc; i += 2) {
    if (std::strcmp(argv[i], "--runs") == 0) runs = std::strtoull(argv[i + 1], nullptr, 10);
    if (std::strcmp(argv[i], "--from") == 0) from = std::strtoull(argv[i + 1], nullptr, 10);
    if (std::strcmp(argv[i], "--folder") == 0) folder = argv[i + 1];
    if (std::strcmp(argv[i], "--seed") == 0)
      runs = 1, from = std::strtoull(argv[i + 1], nullptr, 10), tells = true;
  }
  if (folder.empty()) {
    // In memory if possible: each commit waits for a disk.
    std::string name =
        access("/dev/shm", W_OK) == 0 ? "/dev/shm/culprit-sim-XXXXXX" : "/tmp/culprit-sim-XXXXXX";
    if (mkdtemp(name.data()) == nullptr) return std::perror("mkdtemp"), 2;
    folder = name;
  }
  const auto rules = culprit::rules::Ruleset::shipped();
  culprit::sim::Totals totals;
  uint64_t failed = 0;
  for (uint64_t seed = from; seed < from + runs && failed < 10; ++seed) {
    const std::string of_run = fmt::format("{}/{}", folder, seed);
    {
      culprit::sim::AlertRun run(seed, of_run, rules, tells);
      if (const std::string broken = run.run(totals); !broken.empty()) {
        fmt::print("FAIL sim_alerts --seed {}: {}\n", seed, broken);
        ++failed;
      }
    }
    std::filesystem::remove_all(of_run);
  }
  std::filesystem::remove_all(folder);
  fmt::print(
      "{} runs from seed {}, {} faults, {} kills; {} runs of jobs, {} judgements, {} issues, {} messages, "
      "{} of them twice; {} failed\n",
      runs, from, totals.faults, totals.kills, totals.runs, totals.judged, totals.issues, totals.messages,
      totals.doubled, failed);
  return failed > 0;
}
