// Orders to launchers of the user: a program and a webhook that answer what a test gives them.
#include <boost/test/unit_test.hpp>
#include <deque>
#include <nlohmann/json.hpp>

#include "../fake_pace.h"
#include "respond/launcher/backend.h"
#include "respond/order.h"

using namespace culprit;
using namespace culprit::respond;
using namespace culprit::respond::launcher;
using respond::testing::FakePace, respond::testing::order_for;
using End = io::ProgramEnd;

namespace {

ActionOrder order_for_launcher() {
  ActionOrder out = order_for(OrderKind::kRunAgain, "17");
  out.job.scheduler = "exec", out.job.id = "17";
  out.excluded = {"n1", "n2"};
  out.reason = "it said \"no\"; $(reboot)\nmore";
  return out;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(launcher)

BOOST_AUTO_TEST_CASE(a_program_gets_each_word_as_one_argument_and_the_order_as_json) {
  ExecOptions options;
  options.command = {"/opt/again", "--without={excluded}", "{job}", "{reason}", "{x}", "{"};
  BOOST_TEST(!check_command(options.command));  // {x} is unknown
  options.command[4] = "{ x}";
  io::ProgramRun seen;
  options.run = [&](const io::ProgramRun& run) {
    seen = run;
    End end;
    end.kind = End::Kind::kExited;
    return end;
  };
  FakePace pace;
  BOOST_TEST((ExecBackend(options).carry_out(order_for_launcher(), pace).state == ActionState::kDone));
  BOOST_TEST(seen.words == (std::vector<std::string>{"/opt/again", "--without=n1,n2", "17",
                                                     "it said \"no\"; $(reboot)", "{ x}", "{"}));
  const auto json = nlohmann::json::parse(seen.input);
  BOOST_TEST(json["kind"] == "run_again");
  BOOST_TEST(json["excluded"] == (std::vector<std::string>{"n1", "n2"}));
  BOOST_TEST((std::ranges::find(seen.environment, "CULPRIT_JOB=17") != seen.environment.end()));
  ActionOrder order = order_for_launcher();
  order.job.id = "--help";
  BOOST_TEST((ExecBackend(options).carry_out(order, pace).state == ActionState::kFailed));
  options.observe = true, seen = {};
  BOOST_TEST(ExecBackend(options).carry_out(order_for_launcher(), pace).detail.starts_with("observe: "));
  BOOST_TEST(seen.words.empty());
}

BOOST_AUTO_TEST_CASE(the_end_of_a_program_is_the_result) {
  const std::tuple<End::Kind, int, std::string, ActionState, std::string> rows[] = {
      {End::Kind::kExited, 0, "", ActionState::kDone, ""},
      {End::Kind::kExited, 0, "submitted 18\nmore", ActionState::kDone, "submitted 18"},
      {End::Kind::kExited, 0, R"({"state":"superseded","detail":"it runs"})", ActionState::kSuperseded,
       "it runs"},
      {End::Kind::kExited, 0, R"({"state":"reserved"})", ActionState::kDone, ""},
      {End::Kind::kExited, 0, R"({"state":7,"detail":[]})", ActionState::kDone, ""},
      {End::Kind::kExited, 1, R"({"state":"done"})", ActionState::kFailed, "/opt/again: no"},
      {End::Kind::kExited, 75, "", ActionState::kAmbiguous, "/opt/again: no"},
      {End::Kind::kTimeout, 0, "", ActionState::kAmbiguous, "/opt/again: no"},
      {End::Kind::kSignalled, 9, "", ActionState::kAmbiguous, "/opt/again: no"},
      {End::Kind::kNotStarted, 0, "", ActionState::kFailed, "/opt/again: no"},
  };
  for (const auto& [kind, code, output, expected, detail] : rows) {
    ExecOptions options;
    options.command = {"/opt/again"};
    options.run = [&, kind = kind, code = code, &output = output](const io::ProgramRun&) {
      End end;
      end.kind = kind, end.code = code, end.output = output, end.reason = "no";
      return end;
    };
    FakePace pace;
    const ActionResult result = ExecBackend(options).carry_out(order_for_launcher(), pace);
    BOOST_TEST((result.state == expected), output);
    BOOST_TEST(result.detail == detail);
  }
}

BOOST_AUTO_TEST_CASE(a_real_program_reads_the_order_and_is_killed_at_its_bound) {
  ExecOptions options;
  options.command = {"/bin/sh", "-c", "read line; echo \"$CULPRIT_KIND $#\"", "sh", "{reason}"};
  FakePace pace;
  const ActionResult result = ExecBackend(options).carry_out(order_for_launcher(), pace);
  BOOST_TEST((result.state == ActionState::kDone));
  BOOST_TEST(result.detail == "run_again 1");
  options.command = {"/bin/sh", "-c", "exec sleep 60"};
  options.within_ns = 50 * kNsPerMs;
  BOOST_TEST((ExecBackend(options).carry_out(order_for_launcher(), pace).state == ActionState::kAmbiguous));
}

BOOST_AUTO_TEST_CASE(a_webhook_is_asked_again_with_the_same_key_and_within_its_bound) {
  const auto reply = [](long status, std::string body = "") {
    return HttpReply{status, std::move(body), {}};
  };
  const std::tuple<std::vector<HttpReply>, ActionState, size_t> rows[] = {
      {{reply(200, R"({"hosts":["n3","-x"]})")}, ActionState::kDone, 1},
      {{reply(503), reply(429), reply(204)}, ActionState::kDone, 3},
      {{reply(404, "no such job")}, ActionState::kFailed, 1},
      {{reply(500)}, ActionState::kAmbiguous, 6},
      {{HttpReply{}}, ActionState::kAmbiguous, 6},  // no answer
  };
  for (const auto& [replies, expected, count] : rows) {
    std::deque<HttpReply> left(replies.begin(), replies.end());
    std::vector<HttpPost> sent;
    WebhookOptions options;
    options.url = "https://launcher/secret-path";
    options.post = [&](const HttpPost& request) -> Result<HttpReply> {
      sent.push_back(request);
      const HttpReply out = left.front();
      if (left.size() > 1) left.pop_front();
      if (out.status == 0) return fail(ErrorCode::kIo, "https://launcher: timeout");
      return out;
    };
    FakePace pace;
    const ActionResult result = WebhookBackend(options).carry_out(order_for_launcher(), pace);
    BOOST_TEST((result.state == expected), result.detail);
    BOOST_TEST(sent.size() == count);
    BOOST_TEST(pace.paused_ns < options.total_ns);
    for (const HttpPost& one : sent)
      BOOST_TEST((std::ranges::find(one.headers, "Idempotency-Key: 00112233445566aa") != one.headers.end()));
    if (expected == ActionState::kDone && count == 1)
      BOOST_TEST(result.hosts == std::vector<std::string>{"n3"});
  }
}

BOOST_AUTO_TEST_SUITE_END()
