// What changes between two views of the scheduler, as inputs of the controller.
#include "app/daemon/recover/scheduled_jobs.h"

#include <fmt/format.h>

#include <boost/test/unit_test.hpp>
#include <string>
#include <utility>
#include <vector>

#include "respond/slurm/look.h"

using namespace culprit;
using namespace culprit::app;
using respond::SeenJob;
using JobsState = respond::SeenJob::State;

namespace {

constexpr TimeNs kSubmitted = 1'700'000'000 * kNsPerSecond;

SeenJob seen_job(JobsState state, uint32_t restarts = 0, TimeNs submit_ns = kSubmitted) {
  SeenJob job;
  job.job = {"slurm", "77", "", submit_ns, restarts};
  job.state = state;
  job.word = "STATE";
  job.uid = 1000;
  job.nodes = 2;
  job.may_requeue = true;
  job.partition = "train";
  if (state == JobsState::kRunning) job.hosts = {"n1", "n2"};
  return job;
}

// "start 0", "end 0 STATE", "held", "hosts 3" and so on, of one view.
class Views {
 public:
  std::vector<std::string> see(std::vector<SeenJob> jobs, std::vector<respond::SeenHost> hosts = {}) {
    now_ += kNsPerSecond;
    std::vector<std::string> out;
    for (const recover::Input& input :
         all.update({std::move(jobs), std::move(hosts)}, {now_, now_, excluded})) {
      if (const auto* start = std::get_if<recover::AttemptStarted>(&input))
        out.push_back("start " + std::to_string(start->job.restarts));
      if (const auto* end = std::get_if<recover::AttemptEnded>(&input)) {
        out.push_back("end " + end->word);
        ended_restarts = end->job.restarts;
      }
      if (const auto* changed = std::get_if<recover::JobChanged>(&input))
        out.push_back(changed->kind == recover::ForeignKind::kHeld ? "held" : "changed");
      if (const auto* means = std::get_if<recover::JobMeans>(&input))
        spares = means->means.spares, eligible = means->eligible.value_or(0);
      if (const auto* host = std::get_if<recover::HostSeen>(&input))
        out.push_back(host->host + (host->out ? " out " : " in ") + host->op);
    }
    return out;
  }

  ScheduledJobs all;
  std::function<std::vector<std::string>(const ScheduledJob&)> excluded = {};
  uint32_t spares = 0, eligible = 0, ended_restarts = 0;

 private:
  TimeNs now_ = kSubmitted;
};

using Seen = std::vector<std::string>;

}  // namespace

BOOST_AUTO_TEST_SUITE(scheduled_jobs)

BOOST_AUTO_TEST_CASE(an_attempt_starts_once_and_ends_once) {
  Views views;
  BOOST_TEST(views.see({seen_job(JobsState::kPending)}) == Seen(), boost::test_tools::per_element());
  BOOST_TEST(views.see({seen_job(JobsState::kRunning)}) == Seen{"start 0"}, boost::test_tools::per_element());
  BOOST_TEST(views.see({seen_job(JobsState::kRunning)}) == Seen(), boost::test_tools::per_element());
  BOOST_TEST(views.see({seen_job(JobsState::kFailed)}) == Seen{"end STATE"},
             boost::test_tools::per_element());
  BOOST_TEST(views.see({seen_job(JobsState::kFailed)}) == Seen(), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_requeue_is_the_next_attempt_of_the_same_job_although_its_submission_changes) {
  Views views;
  views.see({seen_job(JobsState::kRunning)});
  const TimeNs later = kSubmitted + 60 * kNsPerSecond;
  BOOST_TEST(views.see({seen_job(JobsState::kRunning, 1, later)}) == (Seen{"end REQUEUED", "start 1"}),
             boost::test_tools::per_element());
  BOOST_TEST(views.ended_restarts == 0u);  // the attempt that was decided on, not the one that begins
  BOOST_TEST(views.all.known("77")->submit_ns == kSubmitted);
  BOOST_TEST(views.all.current(*views.all.known("77")).submit_ns == later);
}

BOOST_AUTO_TEST_CASE(an_attempt_that_begins_and_ends_between_two_views_is_not_missed) {
  Views views;
  views.see({seen_job(JobsState::kRunning)});
  views.see({seen_job(JobsState::kFailed)});
  const SeenJob failed = seen_job(JobsState::kFailed, 1, kSubmitted + 60 * kNsPerSecond);
  BOOST_TEST(views.see({failed}) == (Seen{"start 1", "end STATE"}), boost::test_tools::per_element());
  BOOST_TEST(views.see({failed}) == Seen(), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_used_again_id_is_another_job) {
  Views views;
  views.see({seen_job(JobsState::kRunning)});
  const TimeNs later = kSubmitted + 60 * kNsPerSecond;
  BOOST_TEST(views.see({seen_job(JobsState::kRunning, 0, later)}) == (Seen{"end UNKNOWN", "start 0"}),
             boost::test_tools::per_element());
  BOOST_TEST(views.all.known("77")->submit_ns == later);
  SeenJob stranger = seen_job(JobsState::kRunning, 1, later);
  stranger.uid = 1001;
  views.see({stranger});
  BOOST_TEST(views.all.user_of("77").value() == 1001);
}

BOOST_AUTO_TEST_CASE(a_job_that_is_shown_no_more_has_ended) {
  Views views;
  views.see({seen_job(JobsState::kRunning)});
  BOOST_TEST(views.see({}) == Seen{"end UNKNOWN"}, boost::test_tools::per_element());
  BOOST_TEST(!views.all.is_alive("77"));
}

BOOST_AUTO_TEST_CASE(a_job_that_others_hold_is_told_once) {
  Views views;
  views.see({seen_job(JobsState::kRunning)});
  views.see({seen_job(JobsState::kFailed)});
  BOOST_TEST(views.see({seen_job(JobsState::kHeld)}) == Seen{"held"}, boost::test_tools::per_element());
  BOOST_TEST(views.see({seen_job(JobsState::kHeld)}) == Seen(), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(hosts_are_told_when_they_change) {
  Views views;
  const respond::SeenHost in{"n1", false, true, "", "", {"train"}}, out{"n1", true, false, "ab", "root", {}};
  BOOST_TEST(views.see({}, {in}) == Seen{"n1 in "}, boost::test_tools::per_element());
  BOOST_TEST(views.see({}, {in}) == Seen(), boost::test_tools::per_element());
  BOOST_TEST(views.see({}, {out}) == Seen{"n1 out ab"}, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(idle_hosts_of_the_partition_are_the_spares) {
  Views views;
  std::vector<respond::SeenHost> hosts;
  for (const char* name : {"n1", "n2", "n3", "n4"})
    hosts.push_back({name, false, std::string(name) > "n2", "", "", {"train"}});
  hosts.push_back({"n5", false, true, "", "", {"other"}});
  hosts[3].out = true, hosts[3].idle = false;
  views.see({seen_job(JobsState::kRunning)}, hosts);
  BOOST_TEST(views.spares == 1);
  BOOST_TEST(views.eligible == 3);
  views.excluded = [](const ScheduledJob&) { return std::vector<std::string>{"n1", "n3"}; };
  views.see({seen_job(JobsState::kRunning)}, hosts);
  BOOST_TEST(views.eligible == 1);
}

BOOST_AUTO_TEST_CASE(a_requeued_job_of_the_ledger_keeps_its_identity) {
  Views views;
  AttemptRecord row;
  row.job = {"slurm", "77", "", kSubmitted, 1};
  row.begin_ns = kSubmitted;
  views.all.load(row);
  const TimeNs later = kSubmitted + 60 * kNsPerSecond;
  BOOST_TEST(views.see({seen_job(JobsState::kRunning, 1, later)}) == Seen(),
             boost::test_tools::per_element());
  BOOST_TEST(views.all.known("77")->submit_ns == kSubmitted);
  Views fresh;
  fresh.all.load(row);
  BOOST_TEST(fresh.see({seen_job(JobsState::kRunning, 0, later)}) == (Seen{"end UNKNOWN", "start 0"}),
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_line_of_squeue_is_read_by_its_columns) {
  std::string list;
  const auto job = respond::slurm::parse_job_line(
      "77|RUNNING|1700000000|2|1|1000|4|train|n[1-4]|0|None JobState=FAILED|x", list);
  BOOST_REQUIRE(job.has_value());
  BOOST_TEST((job->state == JobsState::kRunning));
  BOOST_TEST(job->job.restarts == 2);
  BOOST_TEST(job->uid == 1000);
  BOOST_TEST(list == "n[1-4]");
  const auto held =
      respond::slurm::parse_job_line("77|PENDING|1700000000|2|1|1000|4|train||0|JobHeldUser", list);
  BOOST_TEST((held->state == JobsState::kHeld));
  for (const char* bad :
       {"", "77|RUNNING", "77|RUNNING|soon|2|1|1000|4|train|n1|None",
        "77|RUNNING|1700000000|2|1|1000|4|train|n1|None", "77|RUNNING|1700000000|2|1|root|4|train|n1|0|None"})
    BOOST_TEST(!respond::slurm::parse_job_line(bad, list).has_value(), bad);
}

BOOST_AUTO_TEST_CASE(an_exit_is_a_code_and_a_signal_in_each_form_of_squeue) {
  const std::pair<const char*, const char*> all[] = {{"768", "3:0"}, {"9", "0:9"},   {"139", "0:11"},
                                                     {"0", "0:0"},   {"3:0", "3:0"}, {"0:9", "0:9"},
                                                     {"", ""},       {"x:1", ""}};
  for (const auto& [shown, meant] : all) {
    std::string list;
    const auto job = respond::slurm::parse_job_line(
        fmt::format("77|FAILED|1700000000|0|1|1000|4|train|n1|{}|NonZeroExitCode", shown), list);
    BOOST_REQUIRE(job.has_value());
    BOOST_TEST(job->exit_code == meant, shown);
  }
}

BOOST_AUTO_TEST_CASE(a_line_of_a_node_says_whether_it_is_out_and_by_whom) {
  const auto ours = respond::slurm::parse_node_line(
      "NodeName=n1 Arch=x86_64 State=IDLE+DRAIN Partitions=train,all Reason=culprit:XID79 d-0001 "
      "0123456789abcdef [culprit@1700000000]");
  BOOST_REQUIRE(ours.has_value());
  BOOST_TEST(ours->out);
  BOOST_TEST(!ours->idle);
  BOOST_TEST(ours->op == "0123456789abcdef");
  BOOST_TEST(ours->by == "culprit");
  BOOST_TEST(ours->partitions.size() == 2);
  const auto others = respond::slurm::parse_node_line(
      "NodeName=n2 State=IDLE+DRAIN Partitions=train Reason=fan 0123456789abcdef [root@1700000000]");
  BOOST_TEST(others->op == "");
  BOOST_TEST(respond::slurm::parse_node_line("NodeName=n3 State=IDLE Partitions=train")->idle);
  BOOST_TEST(!respond::slurm::parse_node_line("Node n4 not found").has_value());
}

BOOST_AUTO_TEST_SUITE_END()
