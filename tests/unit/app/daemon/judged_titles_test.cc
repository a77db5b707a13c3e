// Verdicts of runs that people judged, as the index has them.
#include "app/daemon/api/judged_titles.h"

#include <fmt/format.h>
#include <unistd.h>

#include <boost/test/unit_test.hpp>
#include <filesystem>

#include "store/index.h"

namespace culprit::app {
namespace {

namespace fs = std::filesystem;

struct Stored {
  fs::path folder = fs::temp_directory_path() / fmt::format("culprit-titles-{}", ::getpid());
  std::unique_ptr<store::Index> index;
  JudgedTitles titles;

  Stored() {
    fs::remove_all(folder);
    fs::create_directories(folder);
    index = std::move(store::Index::open((folder / "index.db").string()).value());
  }
  ~Stored() {
    index.reset();
    fs::remove_all(folder);
  }
  void put(const std::string& job, const std::string& id, double confidence, bool verdict) {
    records::JobRow run;
    run.id = job;
    BOOST_REQUIRE(index->upsert_job(run));
    Verdict row;
    row.job = job, row.leads = verdict;
    row.diagnosis.id = id, row.diagnosis.title = "title " + id, row.diagnosis.confidence = confidence;
    BOOST_REQUIRE(index->put_verdict(row));
  }
  void judge(const std::string& job, const std::string& id, bool right) {
    BOOST_REQUIRE(index->judge({job, id, {}, right, "alice", 1}));
  }
  std::string of(const std::string& job) {
    const auto found = titles.of(*index, {{job, 0}, {"other", 0}}).titles;
    const auto at = found.find({job, 0});
    return at == found.end() ? "not judged" : at->second.value_or("none");
  }
};

BOOST_FIXTURE_TEST_SUITE(judged_titles, Stored)

BOOST_AUTO_TEST_CASE(a_judgement_changes_the_verdict_at_once) {
  put("j", "d1", 0.9, true);
  put("j", "d2", 0.6, false);
  BOOST_TEST(of("j") == "not judged");
  judge("j", "d1", false);
  BOOST_TEST(of("j") == "title d2");
  judge("j", "d2", false);
  BOOST_TEST(of("j") == "none");
  judge("j", "d1", true);
  BOOST_TEST(of("j") == "title d1");
}

BOOST_AUTO_TEST_CASE(a_diagnosis_that_comes_later_counts) {
  put("j", "d1", 0.9, true);
  judge("j", "d1", false);
  BOOST_TEST(of("j") == "none");
  put("j", "d3", 0.8, false);
  BOOST_TEST(of("j") == "title d3");
}

BOOST_AUTO_TEST_CASE(the_most_probable_one_that_is_left_leads_whichever_came_last) {
  put("j", "d1", 0.9, true);
  put("j", "d2", 0.8, false);
  put("j", "d3", 0.3, false);
  judge("j", "d1", false);
  BOOST_TEST(of("j") == "title d2");
}

BOOST_AUTO_TEST_CASE(runs_that_are_not_listed_cost_nothing_and_come_back) {
  put("j", "d1", 0.9, true);
  put("k", "d1", 0.9, true);
  judge("j", "d1", false);
  judge("k", "d1", true);
  BOOST_TEST(titles.of(*index, {}).titles.empty());
  BOOST_TEST(of("j") == "none");
  BOOST_TEST(of("k") == "title d1");
  BOOST_TEST(of("j") == "none");
}

BOOST_AUTO_TEST_CASE(many_runs_are_computed_in_several_calls) {
  std::set<JudgedTitles::Run> listed;
  for (int i = 0; i < 40; ++i) {
    const std::string job = "j" + std::to_string(i);
    put(job, "d1", 0.9, true);
    judge(job, "d1", true);
    listed.emplace(job, 0);
  }
  int calls = 1;
  while (!titles.of(*index, listed).complete) ++calls;
  BOOST_TEST(calls == 3);
  BOOST_TEST(titles.of(*index, listed).titles.size() == 40u);
}

BOOST_AUTO_TEST_CASE(a_row_that_could_not_be_read_is_no_verdict) {
  BOOST_TEST(!judged_title({}).has_value());
  Verdict row;
  row.diagnosis.id = "d1";
  BOOST_TEST(!judged_title({row}).has_value());
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace culprit::app
