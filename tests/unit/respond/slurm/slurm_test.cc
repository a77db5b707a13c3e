// Orders at a Slurm that answers what a test gives it.
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>
#include <deque>
#include <map>

#include "../fake_pace.h"
#include "respond/order.h"
#include "respond/slurm/backend.h"
#include "respond/slurm/spare_need.h"
#include "respond/slurm/spare_pool.h"

using namespace culprit;
using namespace culprit::respond;
using namespace culprit::respond::slurm;
using respond::testing::FakePace, respond::testing::order_for;
namespace bdata = boost::unit_test::data;

namespace {

constexpr const char* kOurs = "culprit:XID79 d-0001 00112233445566aa";

io::ProgramEnd answered(std::string output) {
  io::ProgramEnd out;
  out.kind = io::ProgramEnd::Kind::kExited;
  out.output = std::move(output);
  return out;
}
io::ProgramEnd refused(const std::string& errors) {
  io::ProgramEnd out = answered("");
  out.code = 1, out.errors = out.reason = errors;
  return out;
}
io::ProgramEnd silent() {
  io::ProgramEnd out;
  out.kind = io::ProgramEnd::Kind::kTimeout, out.reason = "did not end within 15.0s";
  return out;
}

// Answers by the beginning of the command; the last answer of a list repeats.
struct FakeSlurm {
  std::map<std::string, std::deque<io::ProgramEnd>> answers;
  std::vector<std::string> writes;
  FakePace pace;
  std::shared_ptr<SparePool> spares;

  std::vector<TimeNs> write_times;

  ActionResult carry_out(const ActionOrder& order, bool observe = false) {
    return SlurmBackend(options(observe)).carry_out(order, pace);
  }
  SlurmOptions options(bool observe = false) {
    SlurmOptions options;
    options.observe = observe;
    options.spares = spares;
    options.run = [this](const io::ProgramRun& run) {
      std::string line;
      for (const std::string& word : run.words) line += (line.empty() ? "" : " ") + word;
      if (line.find("scontrol -o") == line.npos && line.find("squeue") == line.npos &&
          line.find("hostnames") == line.npos)
        writes.push_back(line.substr(line.find(' ') + 1)), write_times.push_back(pace.now());
      for (auto& [begin, list] : answers)
        if (line.starts_with(begin)) {
          io::ProgramEnd out = list.front();
          if (list.size() > 1) list.pop_front();
          return out;
        }
      return answered("");
    };
    return options;
  }
};

std::string reservation(int nodes, const std::string& flags = "REPLACE_DOWN") {
  return "ReservationName=culprit-spare StartTime=x Nodes=n[5-6] NodeCnt=" + std::to_string(nodes) +
         " CoreCnt=8 PartitionName=train Flags=" + flags + " Users=root State=ACTIVE\n";
}

struct PoolRow {
  const char* what;
  std::deque<io::ProgramEnd> shown;
  std::deque<io::ProgramEnd> answers;  // of writes
  std::vector<std::string> writes;
  std::string note;
};
std::ostream& operator<<(std::ostream& out, const PoolRow& row) { return out << row.what; }

const io::ProgramEnd kNoPool = refused("Reservation culprit-spare not found"),
                     kBusy = refused("Error updating the reservation: Requested nodes are busy");

const PoolRow kPoolRows[] = {
    {"as large as it is to be", {answered(reservation(4))}, {answered("")}, {}, ""},
    {"not there",
     {kNoPool, answered(reservation(4))},
     {answered("")},
     {"create reservation ReservationName=culprit-spare Users=root StartTime=now Duration=UNLIMITED "
      "Flags=REPLACE_DOWN NodeCnt=4 PartitionName=train"},
     "the pool culprit-spare has 4 of 4 nodes, 0 before"},
    {"three nodes are missing, and one is idle",
     {answered(reservation(1)), answered(reservation(2))},
     {kBusy, answered("")},
     {"update ReservationName=culprit-spare NodeCnt=4", "update ReservationName=culprit-spare NodeCnt=2"},
     "the pool culprit-spare has 2 of 4 nodes, 1 before"},
    {"larger than it is to be",
     {answered(reservation(6)), answered(reservation(4))},
     {answered("")},
     {"update ReservationName=culprit-spare NodeCnt=4"},
     "the pool culprit-spare has 4 of 4 nodes, 6 before"},
    {"of an administrator",
     {answered(reservation(2, "SPEC_NODES"))},
     {answered("")},
     {},
     "the pool culprit-spare has 0 of 4 nodes: reservation culprit-spare is another's: it is not "
     "REPLACE_DOWN"},
    {"of another partition",
     {answered(
         "ReservationName=culprit-spare NodeCnt=4 PartitionName=debug Flags=REPLACE_DOWN State=ACTIVE")},
     {answered("")},
     {},
     "the pool culprit-spare has 0 of 4 nodes: reservation culprit-spare is of partition debug, not train"},
    {"without the right",
     {kNoPool},
     {refused("Error creating the reservation: Access/permission denied")},
     {"create reservation ReservationName=culprit-spare Users=root StartTime=now Duration=UNLIMITED "
      "Flags=REPLACE_DOWN NodeCnt=4 PartitionName=train",
      "create reservation ReservationName=culprit-spare Users=root StartTime=now Duration=UNLIMITED "
      "Flags=REPLACE_DOWN NodeCnt=2 PartitionName=train",
      "create reservation ReservationName=culprit-spare Users=root StartTime=now Duration=UNLIMITED "
      "Flags=REPLACE_DOWN NodeCnt=1 PartitionName=train"},
     "the pool culprit-spare has 0 of 4 nodes: scontrol create: Error creating the reservation: "
     "Access/permission denied"},
};

std::string node_line(const std::string& state, const std::string& reason = "") {
  return "NodeName=n1 Arch=x86_64 OS=Linux 6.1 #1 State=" + state + " ThreadsPerCore=1 Comment=x" +
         (reason.empty() ? "" : " Reason=" + reason + " [root@1795978682]") + "\n";
}

std::string job_line(const std::string& state, uint32_t restarts = 0, const std::string& nodes = "",
                     const std::string& reason = "None") {
  return "7|" + state + "|" + (restarts == 0 ? "1795978557" : "1795978600") + "|" + std::to_string(restarts) +
         "|1|" + nodes + "|" + reason;
}

// One pending job of two nodes, and one node, as the view of all shows them.
std::string queue_line(const std::string& id, const std::string& reason, const char* partition = "train",
                       int restarts = 1) {
  return id + "|PENDING|1795978600|" + std::to_string(restarts) + "|1|65534|2|" + partition + "||0|" +
         reason + "\n";
}
std::string node_of(const std::string& name, const std::string& state) {
  return "NodeName=" + name + " Arch=x86_64 State=" + state + " ThreadsPerCore=1 Partitions=train,all \n";
}

struct NeedRow {
  const char* what;
  std::string other;  // lines of the queue
  std::vector<std::string> nodes;
  const char* pool;  // partition
  uint32_t needed;
  bool fits;
};
std::ostream& operator<<(std::ostream& out, const NeedRow& row) { return out << row.what; }

const NeedRow kNeedRows[] = {
    {"one node is missing", "", {}, "train", 1, true},
    {"another is idle", "", {node_of("n3", "IDLE")}, "train", 0, true},
    {"another is down", "", {node_of("n3", "DOWN*")}, "train", 1, true},
    {"others share a node", "", {node_of("n3", "MIXED")}, "train", 0, true},
    {"a job waits in the partition", queue_line("8", "Priority", "train", 0), {}, "train", 0, true},
    {"a job waits in one of several", queue_line("8", "None", "x,train", 0), {}, "train", 0, true},
    {"a job waits in another one", queue_line("8", "Resources", "x", 0), {}, "train", 1, true},
    {"a job waits for another job", queue_line("8", "Dependency", "train", 0), {}, "train", 1, true},
    {"a job begins tomorrow", queue_line("8", "BeginTime", "train", 0), {}, "train", 1, true},
    {"a requeued job begins soon", queue_line("8", "BeginTime"), {}, "train", 0, true},
    {"the spares are of another partition", "", {}, "debug", 0, false},
    {"a line that is none", "8|x\n", {}, "train", 0, true},
};

ActionOrder order_for_job(OrderKind kind) {
  ActionOrder out = order_for(kind, "7");
  out.job.scheduler = "slurm", out.job.id = "7", out.job.submit_ns = 1'795'978'557 * kNsPerSecond;
  out.excluded = {"n1"};
  return out;
}

// A job on n1 that runs again on n2.
FakeSlurm slurm_with_job() {
  FakeSlurm out;
  out.answers["scontrol -o show node"] = {answered(node_line("IDLE"))};
  out.answers["squeue -h -j 7 -t all -O"] = {
      answered(job_line("FAILED")), answered(job_line("PENDING", 1, "", std::string(kRequeuedHeld))),
      answered(job_line("PENDING", 1)), answered(job_line("RUNNING", 1, "n[2-3]"))};
  out.answers["squeue -h -j 7 -t all -o"] = {answered("n9\n"), answered("n[1,9]\n")};
  out.answers["scontrol show hostnames n9"] = {answered("n9\n")};
  out.answers["scontrol show hostnames n[1,9]"] = {answered("n1\nn9\n")};
  out.answers["scontrol show hostnames n[2-3]"] = {answered("n2\nn3\n")};
  return out;
}

struct DrainRow {
  const char* before;
  const char* reason;
  ActionState state;
  size_t writes;
};
std::ostream& operator<<(std::ostream& out, const DrainRow& row) {
  return out << row.before << ' ' << row.reason;
}

const DrainRow kDrainRows[] = {
    {"IDLE", "", ActionState::kDone, 1},
    {"ALLOCATED", "", ActionState::kDone, 1},
    {"IDLE*", "", ActionState::kDone, 1},  // silent: Slurm may take it back by itself
    {"MIXED+PLANNED", "", ActionState::kDone, 1},
    {"IDLE+DRAIN", "fan 3", ActionState::kSuperseded, 0},
    {"ALLOCATED+DRAIN", "culprit:XID79 d-0002 ffff", ActionState::kSuperseded, 0},
    {"IDLE+DRAIN", kOurs, ActionState::kDone, 0},  // after a crash behind the write
    {"DOWN", "Not responding", ActionState::kSuperseded, 0},
    {"DOWN*+DRAIN", "psu", ActionState::kSuperseded, 0},
    {"FAIL", "", ActionState::kSuperseded, 0},
    {"IDLE$", "", ActionState::kSuperseded, 0},  // maintenance
    {"IDLE~", "", ActionState::kSuperseded, 0},  // powered down
    {"IDLE+POWERING_DOWN", "", ActionState::kSuperseded, 0},
    {"IDLE@", "", ActionState::kSuperseded, 0},  // reboot
};

}  // namespace

BOOST_AUTO_TEST_SUITE(slurm)

BOOST_DATA_TEST_CASE(only_a_node_that_nobody_took_out_is_drained, bdata::make(kDrainRows), row) {
  FakeSlurm fake;
  fake.answers["scontrol -o show node n1"] = {answered(node_line(row.before, row.reason)),
                                              answered(node_line("IDLE+DRAIN", kOurs))};
  const ActionResult result = fake.carry_out(order_for(OrderKind::kIsolate));
  BOOST_TEST((result.state == row.state), result.detail);
  BOOST_TEST(fake.writes.size() == row.writes);
  for (const std::string& write : fake.writes)
    BOOST_TEST(write == "update NodeName=n1 State=DRAIN Reason=" + std::string(kOurs));
}

BOOST_AUTO_TEST_CASE(a_drain_is_read_back_and_what_is_read_counts) {
  const std::tuple<io::ProgramEnd, std::string, std::string, ActionState> rows[] = {
      {answered(""), "IDLE+DRAIN", kOurs, ActionState::kDone},
      {answered(""), "IDLE+DRAIN", "fan 3", ActionState::kSuperseded},  // an administrator was faster
      {answered(""), "IDLE", "", ActionState::kAmbiguous},
      {silent(), "IDLE+DRAIN", kOurs, ActionState::kDone},
      {silent(), "IDLE", "", ActionState::kAmbiguous},  // three times
      {refused("slurm_update error: Invalid user id"), "IDLE", "", ActionState::kFailed},
      {refused("slurm_update error: Unable to contact slurm controller (connect failure)"), "IDLE", "",
       ActionState::kAmbiguous},
  };
  for (const auto& [written, state, reason, expected] : rows) {
    FakeSlurm fake;
    fake.answers["scontrol -o show node n1"] = {answered(node_line("IDLE")),
                                                answered(node_line(state, reason))};
    fake.answers["scontrol update"] = {written};
    const ActionResult result = fake.carry_out(order_for(OrderKind::kIsolate));
    BOOST_TEST((result.state == expected), written.reason + ": " + result.detail);
  }
}

BOOST_AUTO_TEST_CASE(a_node_returns_only_from_a_drain_of_this_decision) {
  const std::tuple<const char*, const char*, ActionState, size_t> rows[] = {
      {"IDLE+DRAIN", kOurs, ActionState::kDone, 1},
      {"IDLE+DRAIN", "culprit:XID79 d-0001 anotherop", ActionState::kDone, 1},  // the op of its isolation
      {"IDLE+DRAIN", "culprit:XID79 d-0002 ffff", ActionState::kSuperseded, 0},
      {"IDLE+DRAIN", "culprit:XID79 d-0001 00112233445566aa, mine now", ActionState::kSuperseded, 0},
      {"IDLE+DRAIN", "fan 3", ActionState::kSuperseded, 0},
      {"IDLE", "", ActionState::kSuperseded, 0},  // returned by others
      {"DOWN+DRAIN", kOurs, ActionState::kFailed, 0},
      {"IDLE*+DRAIN", kOurs, ActionState::kFailed, 0},
  };
  for (const auto& [before, reason, expected, writes] : rows) {
    FakeSlurm fake;
    fake.answers["scontrol -o show node n1"] = {answered(node_line(before, reason)),
                                                answered(node_line("IDLE"))};
    const ActionResult result = fake.carry_out(order_for(OrderKind::kReturn));
    BOOST_TEST((result.state == expected), std::string(before) + ": " + result.detail);
    BOOST_TEST(fake.writes.size() == writes);
  }
}

BOOST_AUTO_TEST_CASE(without_an_answer_to_the_first_read_nothing_is_written) {
  for (const OrderKind kind :
       {OrderKind::kIsolate, OrderKind::kReturn, OrderKind::kRunAgain, OrderKind::kVerify}) {
    FakeSlurm fake;
    fake.answers["s"] = {silent()};
    const ActionResult result = fake.carry_out(order_for_job(kind));
    BOOST_TEST((result.state == ActionState::kFailed));
    BOOST_TEST(result.detail.find("did not end within") != std::string::npos, result.detail);
    BOOST_TEST(fake.writes.empty());
  }
}

BOOST_AUTO_TEST_CASE(a_job_runs_again_without_the_excluded_and_keeps_its_own_exclusions) {
  FakeSlurm fake = slurm_with_job();
  const ActionResult result = fake.carry_out(order_for_job(OrderKind::kRunAgain));
  BOOST_TEST((result.state == ActionState::kDone), result.detail);
  BOOST_TEST(result.hosts == (std::vector<std::string>{"n2", "n3"}));
  BOOST_TEST(result.job.restarts == 1U);
  BOOST_TEST(fake.writes ==
             (std::vector<std::string>{"requeuehold 7", "update JobId=7 ExcNodeList=n9,n1", "release 7",
                                       "update JobId=7 StartTime=now", "update JobId=7 StartTime=now"}));
}

// slurmd refuses it: "Job credential revoked".
BOOST_AUTO_TEST_CASE(the_next_attempt_starts_in_no_second_in_which_the_last_one_ended) {
  FakeSlurm fake = slurm_with_job();
  const std::string held(kRequeuedHeld);
  auto& answers = fake.answers["squeue -h -j 7 -t all -O"];
  answers = {answered(job_line("RUNNING")), answered(job_line("COMPLETING", 1, "n1", held))};
  answers.insert(answers.end(), 20, answered(job_line("COMPLETING", 1, "n1")));
  answers.push_back(answered(job_line("PENDING", 1)));
  answers.push_back(answered(job_line("RUNNING", 1, "n[2-3]")));
  BOOST_TEST((fake.carry_out(order_for_job(OrderKind::kRunAgain)).state == ActionState::kDone));
  const std::vector<std::string> begin = {"requeuehold 7", "update JobId=7 ExcNodeList=n9,n1", "release 7",
                                          "update JobId=7 StartTime=now", "update JobId=7 StartTime=now"};
  BOOST_TEST(fake.writes == begin);
  BOOST_TEST(fake.write_times[3] - fake.write_times[0] >= kNsPerSecond);
  BOOST_TEST(fake.write_times[4] - fake.write_times[3] >= kNsPerSecond + 19 * 100 * kNsPerMs);
}

BOOST_AUTO_TEST_CASE(observe_reads_and_writes_nothing) {
  FakeSlurm fake = slurm_with_job();
  for (const ActionOrder& order : {order_for(OrderKind::kIsolate), order_for_job(OrderKind::kRunAgain)})
    BOOST_TEST(fake.carry_out(order, true).detail.starts_with("observe: would "));
  ActionOrder gpu = order_for(OrderKind::kIsolate);
  gpu.device = "GPU-1";  // the node is more than the order names
  BOOST_TEST((fake.carry_out(gpu).state == ActionState::kFailed));
  BOOST_TEST(fake.writes.empty());
}

BOOST_AUTO_TEST_CASE(another_job_of_the_id_and_one_that_others_moved_are_left_alone) {
  const std::pair<std::string, ActionState> rows[] = {
      {"7|RUNNING|1795978999|0|1|n1|None", ActionState::kSuperseded},  // the id was used again
      {job_line("RUNNING", 1, "n1"), ActionState::kSuperseded},        // requeued by others
      {job_line("PENDING"), ActionState::kSuperseded},
      {job_line("CANCELLED"), ActionState::kSuperseded},
      {job_line("COMPLETED"), ActionState::kSuperseded},
      {"", ActionState::kSuperseded},                              // purged
      {"7|RUNNING|1795978557|0|0|n1|None", ActionState::kFailed},  // no batch script
      {"8|RUNNING|1795978557|0|1|n1|None", ActionState::kFailed},  // an answer about another job
      {"7|RUNNING|yesterday|0|1|n1|None", ActionState::kFailed},
      {"7|RUNNING|1795978557|0|1|n1;x|None", ActionState::kFailed},
      {"7|RUNNING", ActionState::kFailed},
  };
  for (const auto& [line, expected] : rows) {
    FakeSlurm fake = slurm_with_job();
    fake.answers["squeue -h -j 7 -t all -O"] = {answered(line)};
    fake.answers["squeue -h -j 7 -t all -o"] = {answered("\n")};
    const ActionResult result = fake.carry_out(order_for_job(OrderKind::kRunAgain));
    BOOST_TEST((result.state == expected), line + ": " + result.detail);
    BOOST_TEST(fake.writes.empty());
  }
}

BOOST_AUTO_TEST_CASE(a_job_that_cannot_be_changed_as_ordered_is_never_left_held) {
  struct Row {
    const char* command;
    io::ProgramEnd answer;
    ActionState state;
    bool released;
  };
  const Row rows[] = {
      {"scontrol requeuehold", refused("Requested operation is presently disabled for job 7"),
       ActionState::kFailed, false},
      {"scontrol update JobId=7 Exc", refused("Invalid node name specified for job 7"),
       ActionState::kAmbiguous, true},
      {"scontrol update JobId=7 Exc", silent(), ActionState::kAmbiguous, true},
      {"scontrol release", refused("Access/permission denied for job 7"), ActionState::kAmbiguous, true},
  };
  for (const Row& row : rows) {
    FakeSlurm fake = slurm_with_job();
    fake.answers["squeue -h -j 7 -t all -o"] = {answered("n9\n")};
    fake.answers[row.command] = {row.answer};
    const ActionResult result = fake.carry_out(order_for_job(OrderKind::kRunAgain));
    BOOST_TEST((result.state == row.state), std::string(row.command) + ": " + result.detail);
    BOOST_TEST((std::ranges::find(fake.writes, "release 7") != fake.writes.end()) == row.released);
  }
}

BOOST_AUTO_TEST_CASE(tasks_that_do_not_end_and_a_daemon_that_stops_release_the_job) {
  for (const int pauses : {3, 100'000}) {
    FakeSlurm fake = slurm_with_job();
    fake.pace.pauses_left = pauses;
    fake.answers["squeue -h -j 7 -t all -O"] = {answered(job_line("FAILED")),
                                                answered(job_line("COMPLETING", 1))};
    const ActionResult result = fake.carry_out(order_for_job(OrderKind::kRunAgain));
    BOOST_TEST((result.state == ActionState::kDone), result.detail);
    BOOST_TEST(result.hosts.empty());
    BOOST_TEST((std::ranges::find(fake.writes, "release 7") != fake.writes.end()));
    BOOST_TEST(fake.pace.paused_ns <= 181 * kNsPerSecond);
  }
}

// After a crash, or while slurmctld was away: by the state in which the job is found.
BOOST_AUTO_TEST_CASE(an_order_that_was_interrupted_goes_on_where_it_ended) {
  const std::string held(kRequeuedHeld);
  const std::tuple<std::string, const char*, size_t> rows[] = {
      {job_line("FAILED"), "requeuehold 7", 5},
      {job_line("COMPLETING", 1, "n1", held), "update JobId=7 ExcNodeList=n9,n1", 4},
      {job_line("PENDING", 1, "", held), "update JobId=7 ExcNodeList=n9,n1", 4},
      {job_line("PENDING", 1, "", "BeginTime"), "update JobId=7 ExcNodeList=n9,n1", 3},  // released already
  };
  for (const auto& [line, first, writes] : rows) {
    FakeSlurm fake = slurm_with_job();
    auto& answers = fake.answers["squeue -h -j 7 -t all -O"];
    answers.front() = answered(line);
    if (line.find("BeginTime") != line.npos)
      answers = {answered(line), answered(line), answered(line), answered(job_line("RUNNING", 1, "n[2-3]"))};
    ActionOrder order = order_for_job(OrderKind::kRunAgain);
    order.repeats_ns = 1'795'978'599 * kNsPerSecond + 5;
    const ActionResult result = fake.carry_out(order);
    BOOST_TEST((result.state == ActionState::kDone), line + ": " + result.detail);
    BOOST_REQUIRE(!fake.writes.empty());
    BOOST_TEST(fake.writes.front() == first);
    BOOST_TEST(fake.writes.size() == writes, line);
  }
  for (const std::string& other : {job_line("PENDING", 1, "", "JobHeldUser"), job_line("RUNNING", 1, "n1"),
                                   job_line("PENDING", 2, "", held)}) {
    FakeSlurm fake = slurm_with_job();
    fake.answers["squeue -h -j 7 -t all -O"] = {answered(other)};
    ActionOrder order = order_for_job(OrderKind::kRunAgain);
    order.repeats_ns = 1'795'978'599 * kNsPerSecond + 5;
    BOOST_TEST((fake.carry_out(order).state == ActionState::kSuperseded), other);
    BOOST_TEST(fake.writes.empty());
  }
}

BOOST_AUTO_TEST_CASE(an_order_waits_for_a_slurmctld_that_is_away) {
  FakeSlurm fake = slurm_with_job();
  auto& answers = fake.answers["squeue -h -j 7 -t all -O"];
  for (int i = 0; i < 60; ++i) answers.push_front(silent());  // before the order
  // The requeue is not answered, slurmctld is away for a minute more, and the requeue never arrived.
  answers.insert(answers.begin() + 61, 600, silent());
  answers.insert(answers.begin() + 661, answered(job_line("FAILED")));
  fake.answers["scontrol requeuehold"] = {silent(), answered("")};
  const ActionResult result = fake.carry_out(order_for_job(OrderKind::kRunAgain));
  BOOST_TEST((result.state == ActionState::kDone), result.detail);
  BOOST_TEST(std::ranges::count(fake.writes, "requeuehold 7") >= 2);
  FakeSlurm drain;
  drain.answers["scontrol -o show node n1"] = {answered(node_line("IDLE")), silent(), silent(),
                                               answered(node_line("IDLE")),
                                               answered(node_line("IDLE+DRAIN", kOurs))};
  drain.answers["scontrol update"] = {silent(), answered("")};
  BOOST_TEST((drain.carry_out(order_for(OrderKind::kIsolate)).state == ActionState::kDone));
  BOOST_TEST(drain.writes.size() == 2U);
}

BOOST_AUTO_TEST_CASE(a_job_that_waits_for_resources_is_reported_as_pending) {
  FakeSlurm fake = slurm_with_job();
  auto& list = fake.answers["squeue -h -j 7 -t all -O"];
  list.back() = answered(job_line("PENDING", 1, "", "Resources"));
  const ActionResult result = fake.carry_out(order_for_job(OrderKind::kRunAgain));
  BOOST_TEST((result.state == ActionState::kDone));
  BOOST_TEST(result.hosts.empty());
  BOOST_TEST(result.detail == "job 7: PENDING, Resources");
  BOOST_TEST(fake.pace.paused_ns <= 11 * kNsPerSecond);
}

BOOST_DATA_TEST_CASE(a_pool_of_spares_becomes_as_large_as_it_is_to_be, bdata::make(kPoolRows), row) {
  FakeSlurm fake;
  fake.answers["scontrol -o show reservation"] = row.shown;
  for (const char* verb : {"scontrol create", "scontrol update", "scontrol delete"})
    fake.answers[verb] = row.answers;
  SparePool pool("train", 0);
  const SlurmOptions options = fake.options();
  const Commands commands(options, fake.pace);
  BOOST_TEST(!pool.fill(commands, 3600 * kNsPerSecond).has_value());
  BOOST_TEST(fake.writes.empty());  // there is to be none
  pool.want(4);
  BOOST_TEST(pool.fill(commands, 7200 * kNsPerSecond).value_or("") == row.note);
  BOOST_TEST(fake.writes == row.writes, boost::test_tools::per_element());
  BOOST_TEST(!pool.fill(commands, 7201 * kNsPerSecond).has_value());
}

BOOST_AUTO_TEST_CASE(a_job_that_lacks_nodes_gets_the_spares_of_the_nodes_that_it_lost) {
  FakeSlurm fake = slurm_with_job();
  fake.spares = std::make_shared<SparePool>("", 0);
  fake.spares->want(1);
  auto& jobs = fake.answers["squeue -h -j 7 -t all -O"];
  jobs[0] = answered(job_line("RUNNING", 0, "n[1-2]"));
  jobs[2] = answered(job_line("PENDING", 1, "", "Resources"));
  fake.answers["scontrol show hostnames n[1-2]"] = {answered("n1\nn2\n")};
  fake.answers["scontrol -o show reservation"] = {answered(reservation(1)), kNoPool};
  const ActionResult result = fake.carry_out(order_for_job(OrderKind::kRunAgain));
  BOOST_TEST((result.state == ActionState::kDone));
  BOOST_TEST(result.detail == "job 7: RUNNING on n[2-3]; 1 node of culprit-spare handed over");
  BOOST_TEST(std::ranges::count(fake.writes, "delete ReservationName=culprit-spare") == 1);
  // Another job waits before this one: a node that is handed over would be that job's.
  FakeSlurm second = slurm_with_job();
  second.spares = fake.spares;
  second.answers["squeue -h -j 7 -t all -O"][2] = answered(job_line("PENDING", 1, "", "Priority"));
  second.answers["scontrol -o show reservation"] = {answered(reservation(1))};
  BOOST_TEST((second.carry_out(order_for_job(OrderKind::kRunAgain)).state == ActionState::kDone));
  BOOST_TEST(std::ranges::count(second.writes, "delete ReservationName=culprit-spare") == 0);
}

BOOST_AUTO_TEST_CASE(a_spare_is_handed_over_before_the_release_where_no_other_job_could_take_it) {
  FakeSlurm fake = slurm_with_job();
  fake.spares = std::make_shared<SparePool>("", 0);
  fake.spares->want(1);
  auto& jobs = fake.answers["squeue -h -j 7 -t all -O"];
  jobs[0] = answered(job_line("RUNNING", 0, "n[1-2]"));
  fake.answers["scontrol show hostnames n[1-2]"] = {answered("n1\nn2\n")};
  fake.answers["scontrol show hostnames n[5-6]"] = {answered("n5\n")};
  fake.answers["scontrol -o show reservation"] = {answered(reservation(1)), answered(reservation(1)),
                                                  answered(reservation(1)), answered(reservation(1)),
                                                  kNoPool};
  fake.answers["squeue -h -a"] = {answered(queue_line("7", "JobHeldUser"))};
  fake.answers["scontrol -o show node"] = {
      answered(node_of("n1", "IDLE+DRAIN") + node_of("n2", "IDLE+COMPLETING") + node_of("n5", "IDLE"))};
  fake.answers["scontrol -o show node n1"] = {answered(node_line("IDLE+DRAIN"))};
  const SlurmOptions options = fake.options();
  fake.spares->fill(Commands(options, fake.pace), 3600 * kNsPerSecond);
  BOOST_TEST((fake.carry_out(order_for_job(OrderKind::kRunAgain)).state == ActionState::kDone));
  const auto at = [&](const char* write) {
    return std::ranges::find(fake.writes, write) - fake.writes.begin();
  };
  BOOST_TEST(at("delete ReservationName=culprit-spare") < at("release 7"));
}

BOOST_DATA_TEST_CASE(nodes_that_a_held_job_lacks_are_counted, bdata::make(kNeedRows), row) {
  std::string nodes = node_of("n1", "IDLE+DRAIN") + node_of("n2", "IDLE") + node_of("n5", "IDLE");
  for (const std::string& more : row.nodes) nodes += more;
  const SpareNeed need = need_of_spares({"7", {"n1"}, {"n2"}, {"n5"}, row.pool},
                                        queue_line("7", "JobHeldUser") + row.other, nodes);
  BOOST_TEST(need.nodes == row.needed);
  BOOST_TEST(need.fits == row.fits);
}

BOOST_AUTO_TEST_CASE(a_node_that_was_handed_over_is_not_taken_back_at_once) {
  FakeSlurm fake;
  fake.answers["scontrol -o show reservation"] = {answered(reservation(2)), answered(reservation(1))};
  SparePool pool("", 0);
  pool.want(2);
  const SlurmOptions options = fake.options();
  const Commands commands(options, fake.pace);
  const TimeNs now = 3600 * kNsPerSecond;
  BOOST_TEST(pool.hand_over(commands, 1, now).value_or(0) == 1U);
  BOOST_TEST(!pool.fill(commands, now + 59 * kNsPerSecond).has_value());
  BOOST_TEST(fake.writes.size() == 1U);
  fake.answers["scontrol -o show reservation"] = {answered(reservation(1)), answered(reservation(2))};
  BOOST_TEST(pool.fill(commands, now + 60 * kNsPerSecond).has_value());
  BOOST_TEST(fake.writes.size() == 2U);
}

BOOST_AUTO_TEST_CASE(a_job_that_runs_on_an_excluded_node_is_not_as_ordered) {
  FakeSlurm fake = slurm_with_job();
  fake.answers["scontrol show hostnames n[2-3]"] = {answered("n1\nn3\n")};
  const ActionResult result = fake.carry_out(order_for_job(OrderKind::kRunAgain));
  BOOST_TEST((result.state == ActionState::kAmbiguous));
  fake.answers["squeue -h -j 7 -t all -O"] = {answered(job_line("RUNNING", 1, "n[2-3]"))};
  const ActionResult verified = fake.carry_out(order_for_job(OrderKind::kVerify));
  BOOST_TEST((verified.state == ActionState::kFailed));
  BOOST_TEST(verified.hosts.size() == 2U);
}

BOOST_AUTO_TEST_CASE(a_name_that_slurm_would_expand_never_reaches_it) {
  for (const char* name : {"", "n[1-9]", "n1,n2", "-n1", "ALL x", "n1\n", "$(id)", "n1;reboot"}) {
    const ActionOrder order = order_for(OrderKind::kIsolate, name);
    BOOST_TEST(!check_order(order), name);
  }
  ActionOrder order = order_for_job(OrderKind::kRunAgain);
  order.job.id = "7,8";
  FakeSlurm fake;
  BOOST_TEST((fake.carry_out(order).state == ActionState::kFailed));
  BOOST_TEST(fake.writes.empty());
}

BOOST_AUTO_TEST_SUITE_END()
