// Which verdict of a run stands in the index.
#include "app/daemon/alert_faults.h"

#include <boost/test/unit_test.hpp>
#include <nlohmann/json.hpp>

using namespace culprit;
using namespace culprit::app;

namespace {

store::DiagnosisRow row_of(const std::string& id, double confidence, bool verdict,
                           const std::string& state = "open", bool settled = true) {
  store::DiagnosisRow out;
  out.job = "j";
  out.run = 2;
  out.id = id;
  out.kind = "rule:" + id;
  out.state = state;
  if (state == "confirmed" || state == "refuted") out.judged_by = "alice";
  out.json =
      nlohmann::json{
          {"verdict", verdict},
          {"settled", settled},
          {"title", "t-" + id},
          {"confidence", confidence},
          {"hosts", {{{"host", "n1"}, {"devices", {4}}, {"ranks", {28, 29, 30, 31}}}, {{"host", "n2"}}}},
          {"action", {{"kind", "isolate"}, {"targets", {"n1"}}}},
          {"evidence", {{{"host", "n1"}, {"file", "a.log"}, {"line", 7}, {"text", "x"}}}}}
          .dump();
  return out;
}

// The chosen id, "-" for none, "?" while it is not settled.
std::string chosen(const std::vector<store::DiagnosisRow>& rows) {
  const RunVerdict v = verdict_of(rows);
  return !v.settled ? "?" : v.fault ? v.fault->diagnosis : "-";
}

}  // namespace

BOOST_AUTO_TEST_SUITE(alert_faults)

BOOST_AUTO_TEST_CASE(the_standing_verdict_is_chosen) {
  using Rows = std::vector<store::DiagnosisRow>;
  const struct {
    const char* what;
    Rows rows;
    const char* expected;
  } kCases[] = {
      {"none", {}, "-"},
      {"the flag", {row_of("a", .9, false), row_of("b", .7, true)}, "b"},
      {"withdrawn", {row_of("a", .9, true, "withdrawn")}, "-"},
      {"refuted", {row_of("a", .9, true, "refuted")}, "-"},
      {"refuted, and the next", {row_of("b", .6, false), row_of("a", .9, true, "refuted")}, "b"},
      {"refuted, and the next is too weak", {row_of("b", .4, false), row_of("a", .9, true, "refuted")}, "-"},
      {"confirmed", {row_of("a", .9, true), row_of("b", .4, false, "confirmed")}, "b"},
      {"not announced yet", {row_of("a", .9, true, "open", false)}, "?"},
      {"no verdict", {row_of("a", .9, false)}, "-"},
  };
  for (const auto& c : kCases)
    BOOST_CHECK_MESSAGE(chosen(c.rows) == c.expected, c.what << ": " << chosen(c.rows));
}

BOOST_AUTO_TEST_CASE(it_has_what_an_alert_says) {
  const auto fault = verdict_of({row_of("a", .9, true)}).fault;
  BOOST_REQUIRE(fault);
  BOOST_CHECK_EQUAL(fault->place, "n1 (device 4, ranks 28, 29, 30 and 1 more), n2");
  BOOST_CHECK_EQUAL(fault->source, "rule:a");
  BOOST_CHECK_EQUAL(fault->action, "isolate");
  BOOST_CHECK_EQUAL(fault->line.number, 7);
  BOOST_CHECK_EQUAL(fault->hosts.size(), 2);
  BOOST_CHECK_EQUAL(fault->run, 2);
  BOOST_CHECK(fault->vouched);
  auto claimed = row_of("a", .6, true);
  claimed.json.insert(1, R"("said_by": {"uids": [1000], "hosts": []}, )");
  BOOST_CHECK(!verdict_of({claimed}).fault->vouched);
  BOOST_CHECK(fault->of_host);
  BOOST_CHECK(!verdict_of({claimed}).fault->of_host);
  store::DiagnosisRow of_user = row_of("a", .9, true);
  nlohmann::json own = nlohmann::json::parse(of_user.json);
  own["evidence"][0]["uid"] = 12'002;
  of_user.json = own.dump();
  BOOST_CHECK(!verdict_of({of_user}).fault->of_host);
}

BOOST_AUTO_TEST_CASE(damaged_rows_are_passed_over) {
  auto row = row_of("a", .9, true);
  row.json = "{";
  BOOST_CHECK_EQUAL(chosen({row}), "-");
  row.json = R"({"verdict": true, "hosts": 7, "action": [], "evidence": [1], "title": null})";
  BOOST_CHECK_EQUAL(chosen({row}), "a");
}

BOOST_AUTO_TEST_CASE(a_fault_without_an_accused_host_has_the_hosts_of_its_evidence) {
  store::DiagnosisRow row = row_of("a", .9, true);
  nlohmann::json d = nlohmann::json::parse(row.json);
  d["hosts"] = nlohmann::json::array();
  d["evidence"] = {{{"host", "n3"}, {"file", "a.log"}, {"rank", 2}},
                   {{"host", "n3"}, {"file", "b.log"}, {"rank", 2}},
                   {{"host", "n4"}, {"file", "c.log"}},
                   {{"host", nullptr}, {"file", "d.log"}}};
  row.json = d.dump();
  const RunVerdict v = verdict_of({row});
  BOOST_REQUIRE(v.fault);
  BOOST_CHECK_EQUAL(v.fault->place, "");
  BOOST_CHECK_EQUAL(respond::where_of(*v.fault), "n3 (rank 2), n4");
}

BOOST_AUTO_TEST_SUITE_END()
