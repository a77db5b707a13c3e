// The list of jobs for a page.
#include "app/daemon/now_view.h"

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

std::vector<store::DiagnosisRow> rows() {
  store::DiagnosisRow row;
  row.job = "bad";
  row.id = "d1";
  row.state = "open";
  row.first_ns = kNow - kHour;
  row.json =
      R"({"verdict":true,"title":"GPU lost","confidence":0.9,"hosts":[{"host":"node-17","ranks":[1,2],)"
      R"("devices":[3]}],"action":{"kind":"isolate"},"remedy":"Drain it.","evidence":[{"text":"Xid 79"}]})";
  store::DiagnosisRow other = row;
  other.id = "d2";
  other.json = R"({"verdict":true,"title":"Another"})";
  return {other, row};
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
  BOOST_CHECK_EQUAL(of("", "failed"), "failed old ");
  BOOST_CHECK_EQUAL(of("", "verdict"), "bad failed old ");
  BOOST_CHECK_EQUAL(of("", "", 2, 1), "stuck failed ");
  BOOST_CHECK_EQUAL(of("", "", 100, 4'000'000'000), "");
}

BOOST_AUTO_TEST_CASE(broken_rows_do_no_harm) {
  std::vector<store::DiagnosisRow> broken = rows();
  broken[1].json = "{\"title\":";
  const json jobs = json::array({5, {{"id", 7}}, job("bad", "running", "GPU lost", kNow)});
  const json page = now_page(jobs, broken, {100, 0, "", ""}, kNow);
  BOOST_CHECK_EQUAL(page["items"][0]["verdict"].dump(), R"({"title":"GPU lost"})");
}

}  // namespace
}  // namespace culprit::app
