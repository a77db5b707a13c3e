// Which inputs a controller gets of the jobs that several collectors share.
#include "app/daemon/recover/job_share.h"

#include <boost/test/unit_test.hpp>

#include <map>
#include <set>

using namespace culprit;
using namespace culprit::app;
using respond::SeenJob;
using State = respond::SeenJob::State;

BOOST_AUTO_TEST_SUITE(shares_of_jobs)

namespace {

constexpr TimeNs kSubmitted = 1'700'000'000 * kNsPerSecond;
using Texts = std::vector<std::string>;

Texts texts(const std::vector<recover::Input>& inputs) {
  Texts out;
  for (const recover::Input& input : inputs) {
    if (const auto* one = std::get_if<recover::AttemptStarted>(&input)) out.push_back("start " + one->job.id);
    if (const auto* one = std::get_if<recover::AttemptEnded>(&input))
      out.push_back("end " + one->job.id + " " + one->word);
    if (std::holds_alternative<recover::ClusterSeen>(input)) out.push_back("cluster");
    if (const auto* one = std::get_if<recover::JobAdopted>(&input)) out.push_back("adopt " + one->job.id);
  }
  return out;
}

// Two jobs at the scheduler, and the epochs in which they are this member's.
struct Site {
  ScheduledJobs jobs;
  JobShare share;
  std::map<std::string, uint64_t> epochs;
  std::map<std::string, recover::JobAdopted> adoptions;
  std::set<std::string> ended;
  TimeNs now = kSubmitted;

  JobShare::Selected see(State a, State b) {
    now += kNsPerSecond;
    respond::SchedulerView view;
    for (const auto& [id, state] : {std::pair("a", a), std::pair("b", b)}) {
      SeenJob& seen = view.jobs.emplace_back();
      seen.job = {"slurm", id, "", kSubmitted, 0};
      seen.state = state, seen.word = "FAILED", seen.hosts = {"n1"};
    }
    view.hosts.emplace_back().host = "n1";
    std::vector<recover::Input> inputs = jobs.update(view, {now, now});
    JobShare::Sources from;
    from.epoch_of = [this](const std::string& id) {
      const auto at = epochs.find(id);
      return at == epochs.end() ? std::optional<uint64_t>() : std::optional(at->second);
    };
    from.adopted = [this](const std::string& id) -> std::optional<recover::JobAdopted> {
      auto node = adoptions.extract(id);
      return node.empty() ? std::nullopt : std::optional(std::move(node.mapped()));
    };
    from.has_ended = [this](const ScheduledJob& job) { return ended.contains(job.id); };
    return share.select(std::move(inputs), jobs, from);
  }
};

}  // namespace

BOOST_AUTO_TEST_CASE(inputs_of_other_members_jobs_are_left_out_and_those_of_no_job_are_not) {
  Site site;
  site.epochs = {{"a", 1}};
  const auto got = site.see(State::kRunning, State::kRunning);
  BOOST_TEST(texts(got.inputs) == (Texts{"cluster", "start a"}), boost::test_tools::per_element());
  BOOST_TEST(got.gained == Texts{"a"}, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_gained_job_is_given_as_it_is_now) {
  for (const State state : {State::kRunning, State::kFailed, State::kCompleted}) {
    Site site;
    site.see(State::kRunning, State::kRunning);
    site.see(State::kRunning, state);
    site.epochs = {{"b", 3}};
    const auto got = site.see(State::kRunning, state);
    const Texts starts = state == State::kCompleted ? Texts{} : Texts{"start b"};
    const Texts ends = state == State::kFailed ? Texts{"end b FAILED"} : Texts{};
    BOOST_TEST(texts(got.inputs) == starts, boost::test_tools::per_element());
    BOOST_TEST(texts(got.ends) == ends, boost::test_tools::per_element());
    BOOST_TEST(site.see(State::kRunning, state).gained.empty());  // once
  }
}

BOOST_AUTO_TEST_CASE(a_new_epoch_gives_the_job_again) {
  Site site;
  site.epochs = {{"a", 1}};
  site.see(State::kRunning, State::kRunning);
  site.epochs = {{"a", 2}};
  const auto got = site.see(State::kRunning, State::kRunning);
  BOOST_TEST(texts(got.inputs) == Texts{"start a"}, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(an_end_in_the_view_that_gains_the_job_is_given_once) {
  Site site;
  site.see(State::kRunning, State::kRunning);
  site.epochs = {{"b", 1}};
  const auto got = site.see(State::kRunning, State::kFailed);
  BOOST_TEST(texts(got.inputs) == Texts{"start b"}, boost::test_tools::per_element());
  BOOST_TEST(texts(got.ends) == Texts{"end b FAILED"}, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_lost_job_ends_here_as_if_it_had_been_cancelled) {
  Site site;
  site.epochs = {{"a", 1}};
  site.see(State::kRunning, State::kRunning);
  site.epochs.clear();
  BOOST_TEST(texts(site.see(State::kRunning, State::kRunning).inputs) == Texts{"end a OTHER-MEMBER"},
             boost::test_tools::per_element());
  BOOST_TEST(texts(site.see(State::kRunning, State::kRunning).inputs) == Texts{},
             boost::test_tools::per_element());
}

// With the end in the rows, another beginning would be another attempt.
BOOST_AUTO_TEST_CASE(what_another_member_knew_comes_before_the_job_as_it_is_now) {
  for (const bool has_end : {false, true}) {
    Site site;
    site.see(State::kRunning, State::kRunning);
    site.see(State::kRunning, State::kFailed);
    recover::JobAdopted& rows = site.adoptions["b"];
    rows.job = {"slurm", "b", "", kSubmitted, 0};
    AttemptRecord& row = rows.attempts.emplace_back();
    row.job = rows.job;
    row.attempt = 1;
    row.begin_ns = kSubmitted;
    if (has_end) row.end_ns = site.now;
    site.epochs = {{"b", 2}};
    const auto got = site.see(State::kRunning, State::kFailed);
    BOOST_TEST(texts(got.inputs) == (has_end ? Texts{"adopt b"} : Texts{"adopt b", "start b"}),
               boost::test_tools::per_element());
    BOOST_TEST(texts(got.ends) == (has_end ? Texts{} : Texts{"end b FAILED"}),
               boost::test_tools::per_element());
  }
}

BOOST_AUTO_TEST_CASE(an_attempt_whose_end_the_controller_knows_does_not_begin_again) {
  Site site;
  site.see(State::kRunning, State::kRunning);
  site.see(State::kRunning, State::kFailed);
  site.epochs = {{"b", 2}};
  site.ended = {"b"};
  const auto got = site.see(State::kRunning, State::kFailed);
  BOOST_TEST(texts(got.inputs) == Texts{}, boost::test_tools::per_element());
  BOOST_TEST(got.gained == Texts{"b"}, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_SUITE_END()
