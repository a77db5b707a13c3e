// What messages say, above all where a job's texts are hostile.
#include "respond/notice.h"

#include <boost/test/unit_test.hpp>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "core/alert/identity.h"
#include "respond/http_post.h"

using namespace culprit;
using namespace culprit::alert;
using namespace culprit::respond;
using nlohmann::json;

namespace {

constexpr const char* kHostile = "x\"},{\"a\":\"<!channel> [y](http://e) \\ \n\r\nBcc: all@e \x01 \xff";

Issue sample() {
  Issue out;
  out.key = "0123456789abcdef";
  out.fault.job = "llama 70b";
  out.fault.run = 2;
  out.fault.title = "GPU has fallen off the bus";
  out.fault.place = "node-3 (device 4)";
  out.fault.hosts = {"node-3"};
  out.fault.symptom = "crash";
  out.fault.confidence = 0.95;
  out.fault.line = {"node-3", "/var/log/kern.log", "NVRM: Xid 79", 120};
  out.category = out.fault.category = "hardware";
  out.component = out.fault.component = "gpu";
  out.revision = 3;
  out.fired_ns = out.changed_ns = 1'700'000'000 * kNsPerSecond;
  return out;
}

Values values(const Issue& issue, Message::Kind kind = Message::Kind::kFiring) {
  Message m;
  m.id = issue.key + "/3";
  m.kind = kind;
  return values_of(issue, m, {"https://culprit.example", "gpu-1"});
}

Issue hostile() {
  Issue out = sample();
  out.fault.job = out.fault.title = out.fault.place = out.fault.line.text = out.fault.remedy = kHostile;
  out.fault.hosts = out.fault.why = {kHostile};
  return out;
}

std::string file_text(const std::string& path) {
  std::ifstream in(path);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

}  // namespace

BOOST_AUTO_TEST_SUITE(notice_of_attempts)

BOOST_AUTO_TEST_CASE(a_question_has_a_link_that_shows_it_and_a_command_that_answers_it) {
  Issue asks = sample();
  asks.fault.decision = "d-0001";
  asks.fault.answer_by_ns = 1'700'000'900 * kNsPerSecond;
  asks.fault.headline = "d-0001 asks to end job 77, isolate node-3";
  Values v = values(asks);
  BOOST_TEST(v["link"] == "https://culprit.example/#/recover/d-0001");
  BOOST_TEST(v["alert_link"] == v["link"]);
  BOOST_TEST(v["command"] == "culprit recover approve d-0001");
  BOOST_TEST(v["summary"] ==
             "d-0001 asks to end job 77, isolate node-3; answer until 2023-11-14T22:28:20.000Z");
  const json body = json::parse(webhook_body(asks, v));
  BOOST_TEST(body["decision"] == "d-0001");
  BOOST_TEST(body["answer_by"] == "2023-11-14T22:28:20.000Z");
  BOOST_TEST(json::parse(webhook_body(sample(), values(sample())))["decision"].is_null());
  const json alerts =
      json::parse(alertmanager_body({asks}, {"https://culprit.example", "gpu-1"}, asks.fired_ns));
  BOOST_TEST(alerts[0]["labels"]["alertname"] == "CulpritQuestion");
  asks.end = End::kDeclined;
  asks.handling.answered_by = "alice";
  BOOST_TEST(values(asks, Message::Kind::kResolved)["end"] == "declined by alice: nothing is done");
}

BOOST_AUTO_TEST_CASE(a_message_says_whether_the_job_runs_again) {
  Issue issue = sample();
  issue.fault.failed_attempts = 1;
  issue.fault.again = "runs again without node-3 (attempt 2 of 4)";
  const std::string about = "job llama 70b run 2: GPU has fallen off the bus on node-3 (device 4) (95 %); ";
  BOOST_CHECK_EQUAL(values(issue).at("summary"), about + issue.fault.again);
  BOOST_CHECK_EQUAL(json::parse(webhook_body(issue, values(issue)))["again"].get<std::string>(),
                    issue.fault.again);
  issue.fault.again.clear();
  issue.fault.failed_attempts = 3;
  BOOST_CHECK_EQUAL(values(issue).at("summary"), about + "not started again after attempt 3");
  BOOST_CHECK(json::parse(webhook_body(issue, values(issue)))["again"].is_null());
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(notice)

BOOST_AUTO_TEST_CASE(a_message_names_the_fault_the_line_and_the_command) {
  const Values v = values(sample());
  BOOST_CHECK_EQUAL(v.at("summary"),
                    "job llama 70b run 2: GPU has fallen off the bus on node-3 (device 4) (95 %)");
  BOOST_CHECK_EQUAL(v.at("link"), "https://culprit.example/#/jobs/llama%2070b?run=2");
  BOOST_CHECK_EQUAL(
      v.at("line_link"),
      "https://culprit.example/#/lines?job=llama%2070b&host=node-3&path=%2Fvar%2Flog%2Fkern.log&line=120");
  BOOST_CHECK_EQUAL(v.at("command"), "culprit report 'llama 70b' --run 2");
  BOOST_CHECK_EQUAL(v.at("evidence"), "node-3 /var/log/kern.log:120: NVRM: Xid 79");
  BOOST_CHECK_EQUAL(v.at("since"), "2023-11-14T22:13:20.000Z");
}

BOOST_AUTO_TEST_CASE(a_link_opens_the_page_at_the_alert) {
  Issue issue = sample();
  BOOST_CHECK_EQUAL(values(issue).at("alert_link"),
                    "https://culprit.example/#/jobs/llama%2070b?run=2&alert=0123456789abcdef");
  issue.fault.run = 0;
  BOOST_CHECK_EQUAL(values(issue).at("alert_link"),
                    "https://culprit.example/#/jobs/llama%2070b?alert=0123456789abcdef");
}

BOOST_AUTO_TEST_CASE(a_fault_of_which_nobody_is_accused_has_the_place_where_it_was_seen) {
  Issue issue = sample();
  issue.fault.place.clear();
  issue.fault.seen = "node-0 (rank 2)";
  const Values v = values(issue);
  BOOST_CHECK_EQUAL(v.at("where"), "node-0 (rank 2)");
  BOOST_CHECK_EQUAL(v.at("place"), "");  // of the accused alone
  BOOST_CHECK_EQUAL(v.at("summary"),
                    "job llama 70b run 2: GPU has fallen off the bus on node-0 (rank 2) (95 %)");
}

BOOST_AUTO_TEST_CASE(a_revision_says_what_changed) {
  Issue issue = sample();
  Brief before = brief_of(issue.fault);
  BOOST_CHECK_EQUAL(change_of(before, issue.fault), "");
  before.title = "NCCL timeout";
  before.where = "node-1";
  before.confidence = 0.6;
  const std::string change = change_of(before, issue.fault);
  BOOST_CHECK_EQUAL(change,
                    "title NCCL timeout -> GPU has fallen off the bus; where node-1 -> node-3 (device 4); "
                    "confidence 60 % -> 95 %");
  issue.news = news_of(issue, change);
  const Values v = values(issue, Message::Kind::kRevised);
  BOOST_CHECK_EQUAL(v.at("change"), change);
  BOOST_CHECK_EQUAL(json::parse(webhook_body(issue, v))["change"], change);
  const std::string mail = mail_text(v, {"a@e", {"b@e"}}, 0);
  BOOST_CHECK_NE(mail.find("\nChanged: " + change + "\n"), mail.npos);
}

BOOST_AUTO_TEST_CASE(severity_is_a_label_and_the_alert_of_before_ends_where_it_rises) {
  Issue issue = sample();
  const TimeNs now = issue.fired_ns + 60 * kNsPerSecond;
  const auto body = [&] { return json::parse(alertmanager_body({issue}, {}, now)); };
  BOOST_CHECK_EQUAL(body()[0]["labels"]["severity"], "warning");
  issue.severity = Severity::kCritical;
  issue.raised_ns = now - kNsPerSecond;
  const json both = body();
  BOOST_REQUIRE_EQUAL(both.size(), 2);
  BOOST_CHECK_EQUAL(both[0]["labels"]["severity"], "warning");
  BOOST_CHECK_EQUAL(both[0]["endsAt"], rfc3339(issue.raised_ns));
  BOOST_CHECK_EQUAL(both[1]["labels"]["severity"], "critical");
  BOOST_CHECK_EQUAL(both[1]["endsAt"], rfc3339(now + 600 * kNsPerSecond));
  issue.raised_ns = now - 601 * kNsPerSecond;
  BOOST_CHECK_EQUAL(body().size(), 1);
}

BOOST_AUTO_TEST_CASE(the_command_works_for_names_that_look_like_options_or_have_control_bytes) {
  const std::pair<const char*, const char*> cases[] = {{"-rf", "culprit report --run 2 -- -rf"},
                                                       {"a\nb", "culprit report $'a\\012b' --run 2"},
                                                       {"\xff", "culprit report $'\\377' --run 2"},
                                                       {"-\x1b[2J", "culprit report --run 2 -- $'-\\033[2J'"},
                                                       {"it's", "culprit report 'it'\\''s' --run 2"}};
  for (const auto& [job, command] : cases) {
    Issue issue = sample();
    issue.fault.job = job;
    BOOST_CHECK_EQUAL(values(issue).at("command"), command);
  }
}

BOOST_AUTO_TEST_CASE(templates_map_values_and_refuse_what_they_do_not_know) {
  const Values v = values(sample(), Message::Kind::kResolved);
  const struct {
    const char *text, *expected;
  } kCases[] = {
      {R"({"a": "{{state|firing:trigger|revised:trigger|resolved:resolve}}"})", R"({"a": "resolve"})"},
      {R"({"a": "{{ job }}", "b": {{run}}})", R"({"a": "llama 70b", "b": 2})"},
      {R"({"a": "{{state|firing:x}}"})", R"({"a": ""})"},
      {R"({"a": "{{nothing}}"})", "error: there is no value 'nothing'"},
      {R"({"a": "{{job|bold}}"})", "error: 'bold' is none of slack, markdown and VALUE:WORD"},
      {R"({"a": "{{job"})", "error: a '{{' lacks its '}}'"},
      {R"({"a": {{job}}})", "error: what it makes is no JSON"}};
  for (const auto& c : kCases) {
    const auto made = render(c.text, v);
    BOOST_CHECK_EQUAL(made ? *made : "error: " + made.error().text, c.expected);
  }
}

BOOST_AUTO_TEST_CASE(hostile_texts_stay_within_their_string_in_every_shipped_template) {
  for (const char* name : {"slack", "teams", "pagerduty"}) {
    const std::string text =
        file_text(std::string(CULPRIT_SOURCE_DIR) + "/packaging/alerts/" + name + ".json");
    BOOST_REQUIRE(!text.empty());
    for (const auto kind : {Message::Kind::kFiring, Message::Kind::kRevised, Message::Kind::kResolved}) {
      Values plain_values = values(sample(), kind), hostile_values = values(hostile(), kind);
      plain_values["secret"] = hostile_values["secret"] = "key";
      const auto plain = render(text, plain_values), made = render(text, hostile_values);
      BOOST_REQUIRE_MESSAGE(plain && made, name << ": " << (made ? "" : made.error().text));
      // The same members in both: no text became structure.
      const json flat_plain = json::parse(*plain).flatten(), flat_made = json::parse(*made).flatten();
      std::vector<std::string> a, b;
      for (const auto& [path, value] : flat_plain.items()) a.push_back(path);
      for (const auto& [path, value] : flat_made.items()) b.push_back(path);
      BOOST_CHECK_EQUAL_COLLECTIONS(a.begin(), a.end(), b.begin(), b.end());
      if (std::string(name) == "slack") BOOST_CHECK_EQUAL(made->find("<!channel>"), std::string::npos);
      if (std::string(name) == "teams") BOOST_CHECK_EQUAL(made->find("[y](http"), std::string::npos);
    }
  }
}

BOOST_AUTO_TEST_CASE(the_body_without_a_template_is_json_whatever_the_texts_are) {
  const Issue issue = hostile();
  const json body = json::parse(webhook_body(issue, values(issue)));
  BOOST_CHECK_EQUAL(body["format"], "culprit.alert/1");
  BOOST_CHECK_EQUAL(body["hosts"].size(), 1);
}

BOOST_AUTO_TEST_CASE(labels_of_alertmanager_are_the_same_for_all_revisions) {
  Issue issue = sample();
  const auto labels = [&] {
    return json::parse(
        alertmanager_body({issue}, {"https://culprit.example", "gpu-1"}, issue.fired_ns))[0]["labels"];
  };
  const json first = labels();
  issue.fault.title = "Switch lost";
  issue.fault.category = "platform";
  issue.fault.hosts = {"a", "b"};
  issue.fault.confidence = 0.6;
  ++issue.revision;
  issue.end = End::kRecovered;
  issue.resolved_ns = issue.fired_ns + kNsPerSecond;
  BOOST_CHECK_EQUAL(first, labels());
  for (const auto& [name, value] : first.items()) BOOST_CHECK(value.is_string());
}

BOOST_AUTO_TEST_CASE(a_mail_has_only_the_headers_that_it_should) {
  const std::string text =
      mail_text(values(hostile()), {"culprit@e", {"a@e", "b@e"}}, 1'700'000'000 * kNsPerSecond);
  const std::string head = text.substr(0, text.find("\n\n"));
  std::vector<std::string> names;
  std::istringstream lines(head);
  for (std::string line; std::getline(lines, line);) {
    if (line[0] != ' ') names.push_back(line.substr(0, line.find(':')));
    BOOST_CHECK_LE(line.size(), 998);
  }
  const std::vector<std::string> expected{"From",           "To",
                                          "Subject",        "Date",
                                          "Message-ID",     "References",
                                          "Auto-Submitted", "MIME-Version",
                                          "Content-Type",   "Content-Transfer-Encoding"};
  BOOST_CHECK_EQUAL_COLLECTIONS(names.begin(), names.end(), expected.begin(), expected.end());
  BOOST_CHECK_EQUAL(text.find("\nBcc"), std::string::npos);
  BOOST_CHECK_NE(head.find("Date: Tue, 14 Nov 2023 22:13:20 +0000"), std::string::npos);
}

BOOST_AUTO_TEST_CASE(a_name_that_is_an_encoded_word_stays_as_it_is_written) {
  Issue issue = sample();
  issue.fault.job = "=?UTF-8?Q?=E2=80=AEok=20resolved?=";
  const std::string text = mail_text(values(issue), {"culprit@e", {"a@e"}}, 0);
  const std::string head = text.substr(0, text.find("\n\n"));
  BOOST_CHECK_EQUAL(head.find("=?UTF-8?Q?=E2"), std::string::npos);
  BOOST_CHECK_NE(head.find("=3D=3F"), std::string::npos);  // "=?"
  issue.fault.job = "a\u202eb\x1b";
  const std::string bidi = mail_text(values(issue), {"culprit@e", {"a@e"}}, 0);
  BOOST_CHECK_EQUAL(bidi.find("=E2=80=AE"), std::string::npos);
  BOOST_CHECK_NE(bidi.find("job a\\u202eb\\x1b run 2"), std::string::npos);
}

BOOST_AUTO_TEST_CASE(a_test_leads_to_no_job) {
  const Values v = values(test_issue("gpu-1", 0));
  for (const char* name : {"link", "line_link", "command"}) BOOST_CHECK_EQUAL(v.at(name), "");
  BOOST_CHECK_NE(v.at("summary").find("only a test"), std::string::npos);
}

BOOST_AUTO_TEST_CASE(an_answer_shows_no_secret) {
  std::vector<std::string> secrets =
      secrets_of_url("https://u:pass-word@hooks.example/T0/B0/s3cret-path?k=key%2Fvalue");
  for (std::string& one : secrets_of_header("Authorization: Bearer t0ken\"q")) secrets.push_back(one);
  secrets.push_back("routing-key");
  const std::pair<const char*, const char*> kCases[] = {
      {"no such field", "no such field"},
      {"POST /T0/B0/s3cret-path?k=key%2Fvalue HTTP/1.1", "POST [secret] HTTP/1.1"},
      {"{\"path\": \"\\/T0\\/B0\\/s3cret-path?k=key%2Fvalue\"}", "{\"path\": \"[secret]\"}"},
      {"no key/value here: s3cret-path", "no [secret] here: [secret]"},
      {"Authorization: Bearer t0ken\"q is wrong", "Authorization: [secret] is wrong"},
      {"{\"a\": \"Bearer t0ken\\\"q\"}", "{\"a\": \"[secret]\"}"},
      {"token t0ken, user u, pass-word", "token [secret], user u, [secret]"},
      {"routing-keyrouting-key", "[secret][secret]"},
      {"cut off: routing-k", "cut off: "},
  };
  for (const auto& [text, expected] : kCases) BOOST_CHECK_EQUAL(without_secrets(text, secrets), expected);
}

BOOST_AUTO_TEST_CASE(headers_of_a_file) {
  const auto good = parse_headers("# of the proxy\nAuthorization: Bearer x\n\n X-A: b \n");
  BOOST_REQUIRE(good);
  BOOST_CHECK_EQUAL(good->size(), 2);
  for (const char* bad : {"Authorization", "Bad Name: x", ": x", "A: \x01"}) {
    const auto made = parse_headers(bad);
    BOOST_REQUIRE(!made);
    BOOST_CHECK_EQUAL(made.error().text, "line 1 is no header, NAME: VALUE");
  }
}

BOOST_AUTO_TEST_CASE(an_address_is_shown_without_its_secrets) {
  BOOST_CHECK_EQUAL(shown_url("https://hooks.example/T0/B0/secret"), "https://hooks.example");
  BOOST_CHECK_EQUAL(shown_url("https://u:secret@hooks.example:8443?x=secret"), "https://hooks.example:8443");
}

BOOST_AUTO_TEST_SUITE_END()
