// The list of jobs for a page.
#include "app/daemon/api/now_view.h"

#include <boost/test/unit_test.hpp>

namespace culprit::app {
namespace {

constexpr TimeNs kNow = 1'763'690'000 * kNsPerSecond;
constexpr TimeNs kHour = 3600 * kNsPerSecond;

json job(const char* id, const char* state, const char* verdict, TimeNs last, bool hangs = false) {
  return {{"id", id},         {"run", 0},        {"state", state},
          {"hangs", hangs},   {"hosts", 8},      {"ranks", 64},
          {"first_ns", last}, {"last_ns", last}, {"verdict", verdict ? json(verdict) : json(nullptr)}};
}

json all_jobs() {
  return json::array({job("ended", "ended", nullptr, kNow - kHour),
                      job("old", "failed", "X", kNow - 48 * kHour), job("fine", "running", nullptr, kNow),
                      job("failed", "failed", "X", kNow - kHour),
                      job("stuck", "running", nullptr, kNow, true), job("bad", "running", "GPU lost", kNow)});
}

std::vector<Verdict> rows() {
  Verdict row;
  row.job = "bad";
  row.since_ns = kNow - kHour;
  row.leads = true;
  row.diagnosis.id = "d1";
  row.diagnosis.title = "GPU lost";
  row.diagnosis.confidence = 0.9;
  Suspect& place = row.diagnosis.hosts.emplace_back();
  place.host = "node-17";
  place.ranks = {1, 2};
  place.devices = {3};
  row.diagnosis.action.kind = ActionKind::kIsolate;
  row.diagnosis.remedy = "Drain it.";
  row.diagnosis.evidence.emplace_back().text = "Xid 79";
  Verdict other;
  other.job = "bad";
  other.leads = true;
  other.diagnosis.id = "d2";
  other.diagnosis.title = "Another";
  return {other, row};
}

// As DaemonApi::now does it with rows of the index.
json now_page(const json& jobs, const std::vector<Verdict>& verdicts, const serve::NowQuery& query,
              TimeNs now) {
  std::vector<records::Leading> leading;
  NowVerdicts all;
  for (const Verdict& row : verdicts) {
    leading.push_back({row.job, row.run, row.since_ns});
    all[{row.job, row.run}].push_back(row);
  }
  NowList list(jobs, leading, query, now);
  std::set<NowRun> found;
  for (const NowRun& run : list.undecided())
    if (list.has_words(run, all[run])) found.insert(run);
  list.decide(found);
  NowVerdicts shown;
  for (const NowRun& run : list.shown()) shown[run] = all[run];
  return list.page(shown);
}

std::string ids(const json& page) {
  std::string out;
  for (const json& item : page["items"]) out += item["id"].get<std::string>() + " ";
  return out;
}

BOOST_AUTO_TEST_CASE(jobs_that_need_a_person_come_first) {
  const json page = now_page(all_jobs(), rows(), {100, 0, "", ""}, kNow);
  BOOST_CHECK_EQUAL(ids(page), "bad stuck failed fine old ended ");
  BOOST_CHECK_EQUAL(page["total"], 6);
  BOOST_CHECK_EQUAL(page["counts"].dump(), R"({"all":6,"ended":1,"failed":2,"running":3,"verdict":3})");
}

BOOST_AUTO_TEST_CASE(a_verdict_has_the_details_of_its_own_diagnosis) {
  const json page = now_page(all_jobs(), rows(), {1, 0, "", ""}, kNow);
  const json verdict = page["items"][0]["verdict"];
  BOOST_CHECK_EQUAL(verdict["id"], "d1");
  BOOST_CHECK_EQUAL(verdict["confidence"], 0.9);
  BOOST_CHECK_EQUAL(verdict["hosts"][0]["host"], "node-17");
  BOOST_CHECK_EQUAL(verdict["action"], "isolate");
  BOOST_CHECK_EQUAL(verdict["since_ns"], kNow - kHour);
}

BOOST_AUTO_TEST_CASE(a_title_without_a_row_is_still_said) {
  const json page = now_page(json::array({job("x", "failed", "Gone", kNow)}), {}, {10, 0, "", ""}, kNow);
  BOOST_CHECK_EQUAL(page["items"][0]["verdict"].dump(), R"({"title":"Gone"})");
}

BOOST_AUTO_TEST_CASE(words_state_and_paging_choose) {
  const auto of = [](const char* words, const char* state, uint32_t limit = 100, uint32_t from = 0) {
    return ids(now_page(all_jobs(), rows(), {limit, from, words, state}, kNow));
  };
  BOOST_CHECK_EQUAL(of("NODE-17", ""), "bad ");
  BOOST_CHECK_EQUAL(of("xid gpu", ""), "bad ");
  BOOST_CHECK_EQUAL(of("xid nothing", ""), "");
  BOOST_CHECK_EQUAL(of("confidence", ""), "");  // the name of a member is no text of the job
  BOOST_CHECK_EQUAL(of("", "failed"), "failed old ");
  BOOST_CHECK_EQUAL(of("", "verdict"), "bad failed old ");
  BOOST_CHECK_EQUAL(of("", "", 2, 1), "stuck failed ");
  BOOST_CHECK_EQUAL(of("", "", 100, 4'000'000'000), "");
}

BOOST_AUTO_TEST_CASE(only_verdicts_of_the_page_and_of_undecided_words_are_read) {
  json jobs = json::array();
  std::vector<records::Leading> leading;
  for (int i = 0; i < 1000; ++i) {
    const std::string id = "job-" + std::to_string(i);
    jobs.push_back(job(id.c_str(), "failed", "GPU lost", kNow - i * kNsPerSecond));
    if (i % 2 == 0) leading.push_back({id, 0, kNow - i * kNsPerSecond});
  }
  NowList all(jobs, leading, {100, 0, "", ""}, kNow);
  BOOST_CHECK(all.undecided().empty());
  all.decide({});
  BOOST_CHECK_EQUAL(all.shown().size(), 50u);
  NowList some(jobs, leading, {100, 0, "job-7 lost xid", ""}, kNow);
  BOOST_CHECK_EQUAL(some.undecided().size(), 500u);  // any may have "job-7" in its verdict
  some.decide({{"job-70", 0}});
  BOOST_CHECK_EQUAL(ids(some.page({})), "job-70 ");
  NowList own(jobs, leading, {100, 0, "lost", ""}, kNow);
  BOOST_CHECK(own.undecided().empty());
}

BOOST_AUTO_TEST_CASE(broken_jobs_do_no_harm) {
  const json jobs = json::array({5, {{"id", 7}}, job("bad", "running", "GPU lost", kNow)});
  const json page = now_page(jobs, {}, {100, 0, "", ""}, kNow);
  BOOST_CHECK_EQUAL(page["items"][0]["verdict"].dump(), R"({"title":"GPU lost"})");
}

}  // namespace
}  // namespace culprit::app
