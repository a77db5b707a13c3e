#include "capture/request.h"

#include <boost/test/unit_test.hpp>
#include <nlohmann/json.hpp>

#include "capture/announced.h"
#include "capture/tool.h"

using namespace culprit;
using namespace culprit::capture;

BOOST_AUTO_TEST_SUITE(requests)

BOOST_AUTO_TEST_CASE(what_is_asked_is_what_is_read) {
  Request request;
  request.job = "llama \"7\"";
  request.host = "node-3";
  request.sample = 2;
  request.rings = "/dev/shm/culprit";
  request.tools = {"py-spy", "/opt/gdb"};
  request.budget_ns = 20 * kNsPerSecond;
  request.at_once = 3;
  request.all = true;
  request.ras_port = 28'028;
  request.targets = {{17, 9000}, {18, 9001}};
  const auto read = parse_request(request_line(request));
  BOOST_REQUIRE(read);
  BOOST_TEST((*read == request));
}

BOOST_AUTO_TEST_CASE(a_request_without_valid_processes_is_refused) {
  for (const char* line :
       {"", "[]", "{}", R"({"targets":[{"pid":1,"start":5}]})", R"({"targets":[{"pid":-4}]})",
        R"({"targets":[{"pid":4294967296}]})", R"({"targets":[7]})"})
    BOOST_TEST(!parse_request(line));
}

BOOST_AUTO_TEST_CASE(a_request_for_ras_names_a_port_and_few_processes) {
  for (const char* port : {"0", "-1", "65536", "\"28028\"", "null"})
    BOOST_TEST(!parse_request(std::string(R"({"targets":[{"pid":17}],"ras_port":)") + port + "}"), port);
  Request request;
  request.ras_port = 28'028;
  request.targets.assign(kRasTargets, {17, 1});
  BOOST_TEST(parse_request(request_line(request)).has_value());
  request.targets.push_back({18, 1});
  BOOST_TEST(!parse_request(request_line(request)));
}

BOOST_AUTO_TEST_CASE(an_answer_is_one_line_with_all_that_was_seen) {
  Answer answer;
  answer.target = {17, 9000};
  answer.rank = 3;
  answer.time_ns = 5;
  answer.look.emplace();
  answer.look->stat = {"pt\n{\"rank\":9}", 'S', 1, 9000};
  ThreadView thread;
  thread.pid = 18;
  thread.tid = 19;
  thread.state = 'D';
  thread.stuck = true;
  thread.wchan = "folio_wait_bit_common";
  thread.file = WaitingFile{"/data/x", "/data", "fuse.s3fs", true};
  answer.look->threads = {{17, 17, "main", 'S', "futex_wait", {}, {}, {}}, thread};
  answer.tool = "py-spy";
  answer.stacks.threads = {{"MainThread", 17, true, {"a.py:f:1"}}};
  const std::string line = answer_line({"j", "h", 1, "", {}, 0, 1, false, 0, {}}, answer);
  BOOST_TEST(line.find('\n') == line.npos);
  const auto json = nlohmann::json::parse(line);
  BOOST_TEST(json["kind"] == "stack");
  BOOST_TEST(json["rank"] == 3);
  BOOST_TEST(json["state"] == "S");
  BOOST_TEST(json["wchan"] == "futex_wait");
  BOOST_TEST(json["waits"]["file"] == "/data/x");
  BOOST_TEST(json["waits"]["served"] == true);
  BOOST_TEST(json["children"][0]["pid"] == 18);
  BOOST_TEST(json["threads"][0]["frames"][0] == "a.py:f:1");
}

BOOST_AUTO_TEST_CASE(an_answer_fits_a_line_of_the_trace_socket) {
  Answer answer;
  answer.target = {17, 9000};
  for (int i = 0; i < 200; ++i)
    answer.stacks.threads.push_back({"t", 1, false, std::vector<std::string>(60, std::string(200, 'f'))});
  const std::string line = answer_line({}, answer);
  BOOST_TEST(line.size() <= kAnswerBytes);
  const auto json = nlohmann::json::parse(line);
  BOOST_TEST(json["threads"].size() > 0u);
  BOOST_TEST(json["threads"].size() + json["dropped"].get<size_t>() == 200u);
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(rights)

BOOST_AUTO_TEST_CASE(a_tool_gets_the_rights_of_the_process_and_no_more) {
  // The capture as systemd starts it: another user, who may change to the job's.
  TraceRules service{990, true, 0, false};
  BOOST_TEST((rights_for(Tool::kGdb, 1000, service) == ToolRights::kUser));
  BOOST_TEST((rights_for(Tool::kPySpy, 1000, service) == ToolRights::kUser));
  service.yama = 1;
  BOOST_TEST(!rights_for(Tool::kGdb, 1000, service));  // it would need a capability
  BOOST_TEST((rights_for(Tool::kPySpy, 1000, service) == ToolRights::kTracer));
}

BOOST_AUTO_TEST_CASE(roots_processes_in_containers_are_not_debugged) {
  const TraceRules root{0, true, 0, false};
  BOOST_TEST(!rights_for(Tool::kGdb, 0, root));
  BOOST_TEST((rights_for(Tool::kPySpy, 0, root) == ToolRights::kTracer));
  const TraceRules same{0, true, 0, true};
  BOOST_TEST((rights_for(Tool::kGdb, 0, same) == ToolRights::kOwn));
}

BOOST_AUTO_TEST_CASE(another_users_process_is_refused_without_the_right_to_be_that_user) {
  BOOST_TEST(!rights_for(Tool::kPySpy, 1000, {990, false, 0, true}));
}

BOOST_AUTO_TEST_CASE(no_file_of_the_process_runs_in_gdb) {
  const auto arguments = arguments_of(Tool::kGdb, "/usr/bin/gdb", 17);
  const auto has = [&](const char* text) {
    return std::find(arguments.begin(), arguments.end(), text) != arguments.end();
  };
  BOOST_TEST(has("-nx"));
  BOOST_TEST(has("-nh"));
  BOOST_TEST(has("set auto-load off"));
  BOOST_TEST(has("set debuginfod enabled off"));
}

BOOST_AUTO_TEST_CASE(a_signal_goes_only_to_a_process_that_catches_it) {
  ProcStatus status;
  status.caught = uint64_t{1} << 41;  // 42
  BOOST_TEST(may_signal(status, 42));
  BOOST_TEST(!may_signal(status, 43));
  status.caught = ~uint64_t{0};
  for (const int signal : {0, 9, 10, 12, 15, 34, 65}) BOOST_TEST(!may_signal(status, signal));
}

BOOST_AUTO_TEST_CASE(a_head_of_a_stack_file_names_its_signal) {
  const auto head = parse_stack_file_head(R"({"kind":"stacks","version":1,"pid":7,"signal":42,"rank":3})");
  BOOST_REQUIRE(head);
  BOOST_TEST(head->signal == 42);
  BOOST_TEST(*head->rank == 3u);
  for (const char* line : {"", "{}", R"({"kind":"stack","pid":7,"signal":42})",
                           R"({"kind":"stacks","pid":0,"signal":42})", R"({"kind":"stacks","pid":7})"})
    BOOST_TEST(!parse_stack_file_head(line));
}

BOOST_AUTO_TEST_SUITE_END()
