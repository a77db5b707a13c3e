// Alignments of a job's hosts: who is asked, how the rows are compared, and how each order ends.
#include "app/daemon/recover/align_checks.h"

#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>
#include <map>
#include <string>
#include <vector>

#include "app/check/align_run.h"

using namespace culprit;
using namespace culprit::app;

namespace {

// Agents, and a clock in seconds.
struct AlignedHosts {
  std::map<std::string, std::string> boots, jobs;
  std::vector<std::string> asked, judged;
  AlignChecks checks{{[this](const std::string& host, const peer::Message& message) {
                        if (!boots.contains(host)) return false;
                        if (const auto* one = std::get_if<peer::AlignJudged>(&message))
                          judged.push_back(host + " " + std::to_string(static_cast<int>(one->answer)));
                        else
                          asked.push_back(host);
                        return true;
                      },
                      [this](const std::string& host) { return boots.contains(host) ? boots[host] : ""; },
                      [this](const std::string& host) { return jobs.contains(host) ? jobs[host] : ""; }}};
  TimeNs now = 1000 * kNsPerSecond;

  void order(const std::vector<std::string>& hosts, TimeNs seconds = 100) {
    for (const std::string& host : hosts) boots[host] = "b";
    checks.order({"d-1", "", hosts, "why", now + seconds * kNsPerSecond, recover::CheckKind::kAlign}, now);
  }
  void pass(TimeNs seconds) {
    for (TimeNs s = 0; s < seconds; ++s) checks.beat(now += kNsPerSecond);
  }
  void answer(const std::string& host, std::vector<peer::AlignRow> rows, bool later = false) {
    checks.answered(host, {"d-1", std::move(rows), later, later ? "job 77 has processes here" : "hangs"},
                    now);
  }
  // "n1 0" of each answer: passed, failed, none.
  std::vector<std::string> ends(bool why = false) {
    std::vector<std::string> out;
    for (const recover::HostChecked& one : checks.drain()) {
      BOOST_TEST((one.kind == recover::CheckKind::kAlign));
      out.push_back(one.host + " " + std::to_string(static_cast<int>(one.answer)) +
                    (why ? " " + one.why : ""));
    }
    return out;
  }
};

struct AlignedJob {
  const char* name;
  // By host, in order of n1, n2, …: the digests of its devices; "!" before one: it does not repeat; "-": no
  // digest; "other": of another class; no device: the host has no answer.
  std::vector<std::vector<std::string>> hosts;
  std::string answers;  // a digit of each host: passed, failed, none
};
std::ostream& operator<<(std::ostream& out, const AlignedJob& one) { return out << one.name; }

const AlignedJob kAlignedJobs[] = {
    {"all agree", {{"a"}, {"a"}, {"a"}}, "000"},
    {"one lies", {{"a"}, {"b"}, {"a"}, {"a"}}, "0100"},
    {"one lies and one hangs", {{"a"}, {"b"}, {}, {"a"}}, "0120"},
    {"two alone", {{"a"}, {"b"}}, "22"},
    {"two that agree", {{"a"}, {"a"}}, "22"},
    {"one of two answers", {{"a"}, {}}, "22"},
    {"two and two", {{"a"}, {"b"}, {"a"}, {"b"}}, "2222"},
    {"all differ", {{"a"}, {"b"}, {"c"}}, "222"},
    {"no answer of any", {{}, {}, {}}, "222"},
    {"one device of two hosts", {{"a", "a", "b"}, {"a", "a", "a"}}, "10"},
    {"most devices on one host", {{"a", "a", "a", "a"}, {"b"}, {"c"}}, "222"},
    {"a device without a digest", {{"a", "-"}, {"a"}, {"a"}}, "200"},
    {"a device that does not repeat", {{"!a"}, {"a"}, {"a"}}, "100"},
    {"steps that repeat nowhere", {{"!a"}, {"!b"}, {"!c"}}, "222"},
    {"another library on two", {{"a"}, {"a"}, {"a"}, {"b"}, {"b"}}, "00022"},
    {"another class", {{"a"}, {"a"}, {"a"}, {"other"}}, "0002"},
};

std::vector<peer::AlignRow> align_rows_of(const std::vector<std::string>& digests) {
  std::vector<peer::AlignRow> rows;
  for (const std::string& digest : digests) {
    const bool stable = !digest.starts_with('!');
    rows.push_back({"cuda:" + std::to_string(rows.size()), digest == "other" ? "k2" : "k",
                    digest == "-" ? "" : digest.substr(stable ? 0 : 1), stable});
  }
  return rows;
}

using AlignTexts = std::vector<std::string>;

}  // namespace

BOOST_AUTO_TEST_SUITE(alignments_of_hosts)

BOOST_DATA_TEST_CASE(only_a_host_that_differs_from_most_fails, boost::unit_test::data::make(kAlignedJobs)) {
  AlignedHosts all;
  AlignTexts names, wanted;
  for (size_t n = 0; n < sample.hosts.size(); ++n) {
    names.push_back("n" + std::to_string(n + 1));
    wanted.push_back(names.back() + " " + sample.answers[n]);
  }
  all.order(names);
  BOOST_TEST(all.asked == names, boost::test_tools::per_element());
  for (size_t n = 0; n < sample.hosts.size(); ++n) {
    BOOST_TEST(all.ends().empty());  // they are compared together
    all.answer(names[n], align_rows_of(sample.hosts[n]));
    all.answer(names[n], align_rows_of({"z"}));  // the first answer counts
    all.pass(1);
  }
  BOOST_TEST(all.ends() == wanted, boost::test_tools::per_element());
  all.pass(200);
  BOOST_TEST(all.ends().empty());
  // Every host that gave rows learns what they were worth.
  AlignTexts told;
  for (size_t n = 0; n < names.size(); ++n)
    if (!sample.hosts[n].empty()) told.push_back(wanted[n]);
  BOOST_TEST(all.judged == told, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(host_that_does_not_answer_in_time_is_unknown_and_holds_up_no_longer) {
  AlignedHosts all;
  all.order({"n1", "n2", "n3", "n4"}, 30);
  for (const char* host : {"n1", "n2"}) all.answer(host, align_rows_of({"a"}));
  all.answer("n4", align_rows_of({"b"}));
  all.pass(29);
  BOOST_TEST(all.ends().empty());
  all.pass(1);
  BOOST_TEST((all.ends(true) ==
              AlignTexts{"n1 0 cuda:0: its bits are those of 2 of 3 devices",
                         "n2 0 cuda:0: its bits are those of 2 of 3 devices",
                         "n3 2 its agent has not answered in time",
                         "n4 1 cuda:0: an equal step gave other bits than on 2 of 3 devices (k)"}));
}

BOOST_AUTO_TEST_CASE(hosts_in_use_are_asked_again_and_those_with_a_job_not_at_all) {
  AlignedHosts all;
  all.jobs["n2"] = "4711";
  all.order({"n1", "n2"});
  all.boots.erase("n2");
  all.answer("n1", {}, true);
  BOOST_TEST((all.asked == AlignTexts{"n1"}));
  all.pass(6);
  BOOST_TEST((all.asked == AlignTexts{"n1", "n1"}));
  all.pass(100);
  BOOST_TEST(
      (all.ends(true) == AlignTexts{"n1 2 its agent has not answered in time", "n2 2 job 4711 runs on it"}));
}

BOOST_AUTO_TEST_CASE(answers_without_an_order_have_no_effect) {
  AlignedHosts all;
  all.answer("n1", align_rows_of({"a"}));
  all.order({"n1"});
  all.answer("n2", align_rows_of({"a"}));
  all.checks.answered("n1", {"d-2", align_rows_of({"a"}), false, ""}, all.now);
  all.pass(1);
  BOOST_TEST(all.ends().empty());
}

BOOST_AUTO_TEST_CASE(rows_are_read_from_the_output_of_the_command) {
  const auto rows = align_rows(
      "a warning of torch\n"
      R"({"kind": "event", "name": "align", "host": "x", "at": "cuda:0", "class": "torch 2.4, H100", "digest": "ab", "stable": true})"
      "\n"
      R"({"name": "align", "at": "cuda:1", "class": "k", "digest": null, "stable": null, "error": "e"})"
      "\n"
      R"({"name": "align", "at": "cuda:1", "class": "k", "digest": "cd", "stable": false})"
      "\n"
      R"({"name": "align", "at": 7, "class": "k"})"
      "\n{\"name\": \"align\", \"at\": \"cut");
  BOOST_REQUIRE(rows.size() == 2u);
  BOOST_TEST((rows[0] == peer::AlignRow{"cuda:0", "torch 2.4, H100", "ab", true}));
  BOOST_TEST((rows[1] == peer::AlignRow{"cuda:1", "k", "cd", false}));
}

BOOST_AUTO_TEST_SUITE_END()
