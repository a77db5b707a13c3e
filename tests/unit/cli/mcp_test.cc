#include "cli/mcp.h"

#include <boost/test/unit_test.hpp>
#include <random>

using namespace culprit;
using namespace culprit::cli;

namespace {

using Json = nlohmann::json;

struct Answers final : McpSource {
  std::string text = "fine";
  Place asked;
  Result<std::string> jobs() override { return text; }
  Result<std::string> hosts() override { throw std::runtime_error("types"); }
  Result<std::string> report(const std::string& job) override {
    if (job == "none") return fail(ErrorCode::kNotFound, "none: no such job\x1b[2J");
    return text;
  }
  Result<std::string> why(const std::string&, const std::string&) override { return text; }
  Result<std::string> why_not(const std::string&, const std::string&, const std::string&) override {
    return text;
  }
  Result<std::string> evidence(const Place& place) override { return asked = place, text; }
};

struct Session {
  Answers source;
  McpServer server{source};
  Json ask(const std::string& line) {
    const std::string reply = server.handle(line);
    BOOST_REQUIRE(reply.find('\n') == reply.npos);
    return reply.empty() ? Json() : Json::parse(reply);
  }
  Json call(const std::string& tool, const Json& arguments) {
    return ask(Json{{"jsonrpc", "2.0"},
                    {"id", 1},
                    {"method", "tools/call"},
                    {"params", {{"name", tool}, {"arguments", arguments}}}}
                   .dump());
  }
};

}  // namespace

BOOST_AUTO_TEST_SUITE(mcp)

BOOST_AUTO_TEST_CASE(the_revision_is_the_clients_if_it_is_known) {
  for (const auto& [wanted, given] :
       {std::pair("2024-11-05", "2024-11-05"), std::pair("2025-03-26", "2025-03-26"),
        std::pair("1999-01-01", "2025-06-18"), std::pair("", "2025-06-18")}) {
    Session s;
    const Json got = s.ask(Json{
        {"jsonrpc", "2.0"}, {"id", "a"}, {"method", "initialize"}, {"params", {{"protocolVersion", wanted}}}}
                               .dump());
    BOOST_TEST(got["id"] == "a");
    BOOST_TEST(got["result"]["protocolVersion"] == given);
    BOOST_TEST(got["result"]["capabilities"].contains("tools"));
  }
}

BOOST_AUTO_TEST_CASE(a_malformed_message_gets_the_error_of_json_rpc) {
  const std::pair<const char*, int> cases[] = {
      {"{", -32700},
      {"\xff\xfe", -32700},
      {"1", -32600},
      {"[]", -32600},
      {R"({"id":1,"method":"ping"})", -32600},
      {R"({"jsonrpc":"2.0","id":1})", -32600},
      {R"({"jsonrpc":"2.0","id":{},"method":"ping"})", -32600},
      {R"({"jsonrpc":"2.0","id":1,"method":5})", -32600},
      {R"({"jsonrpc":"2.0","id":1,"method":"resources/list"})", -32601},
      {R"({"jsonrpc":"2.0","id":1,"method":"tools/call","params":[]})", -32602},
      {R"({"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"rm"}})", -32602},
      {R"({"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"report","arguments":[]}})", -32602},
      {R"({"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"report","arguments":{"job":5}}})",
       -32602},
      {R"({"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"report","arguments":{"x":"y"}}})",
       -32602},
      {R"({"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"evidence","arguments":{"path":"p"}}})",
       -32602},
      {R"({"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"evidence","arguments":{"path":"p","line":-1}}})",
       -32602},
      {R"({"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"hosts"}})", -32603},
  };
  Session s;
  for (const auto& [line, code] : cases) BOOST_TEST(s.ask(line)["error"]["code"] == code, line);
  BOOST_TEST(s.ask(R"({"jsonrpc":"2.0","id":7,"method":"ping"})")["result"] == Json::object());
}

BOOST_AUTO_TEST_CASE(a_message_that_is_nested_too_deeply_is_refused) {
  Session s;
  for (const size_t depth : {size_t{32}, size_t{100'000}, size_t{1'000'000}})
    for (const auto& [open, close] : {std::pair("[", "]"), std::pair("{\"a\":", "}")}) {
      std::string params, ends;
      for (size_t i = 0; i < depth; ++i) params += open, ends += close;
      const std::string line =
          R"({"jsonrpc":"2.0","id":1,"method":"ping","params":)" + params + "1" + ends + "}";
      BOOST_TEST(s.ask(line)["error"]["code"] == -32700, depth);
    }
}

BOOST_AUTO_TEST_CASE(notifications_and_answers_get_no_answer) {
  Session s;
  for (const char* line : {R"({"jsonrpc":"2.0","method":"notifications/initialized"})",
                           R"({"jsonrpc":"2.0","method":"tools/call","params":{"name":"jobs"}})",
                           R"({"jsonrpc":"2.0","id":1,"result":{}})", "", "  ",
                           R"([{"jsonrpc":"2.0","method":"notifications/cancelled"}])"})
    BOOST_TEST(s.server.handle(line) == "", line);
  const Json batch = s.ask(R"([{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","method":"x"},5])");
  BOOST_TEST(batch.size() == 2u);
}

BOOST_AUTO_TEST_CASE(data_is_marked_untrusted_escaped_and_cut) {
  Session s;
  s.source.text = "line\x1b[2J\xff\nsecond \xe2\x80\xae";
  const Json content = s.call("report", {{"job", "j"}})["result"]["content"];
  BOOST_TEST(content.size() == 2u);
  BOOST_TEST(content[0]["text"].get<std::string>().find("untrusted") != std::string::npos);
  const std::string data = content[1]["text"];
  BOOST_TEST(data.starts_with("line\\x1b[2J"), data);
  BOOST_TEST(data.ends_with("\nsecond \n[1 invisible character left out]"), data);
  s.source.text = std::string(10 << 20, 'x');
  const std::string cut = s.call("report", {{"job", "j"}})["result"]["content"][1]["text"];
  BOOST_TEST(cut.size() < kMcpAnswerBytes + 100);
  BOOST_TEST(cut.find("[cut: about ") != cut.npos);
  const Json failed = s.call("report", {{"job", "none"}})["result"];
  BOOST_TEST(failed["isError"] == true);
  BOOST_TEST(failed["content"][0]["text"] == "none: no such job\\x1b[2J");
}

BOOST_AUTO_TEST_CASE(text_that_only_a_program_reads_never_reaches_an_assistant) {
  Session s;
  // Tags spell ASCII, zero widths hide in words, selectors carry bytes, and marks turn the direction.
  const std::string hidden[] = {"\U000e0049\U000e0067\U000e006e", "\u200b\u200c\u200d\u2060\ufeff",
                                "\ufe0f\U000e0100", "\u202e\u2066\u061c", "\u00ad\u115f\u3164\u180e"};
  for (const std::string& text : hidden) {
    s.source.text = "before" + text + "after";
    const std::string data = s.call("report", {{"job", "j"}})["result"]["content"][1]["text"];
    BOOST_TEST(data.starts_with("beforeafter\n["), data);
    BOOST_TEST(data.find_first_not_of("[]abcdefghijklmnopqrstuvwxyz0123456789 \n") == data.npos, data);
  }
}

BOOST_AUTO_TEST_CASE(every_tool_is_listed_with_a_schema_and_reads_only) {
  Session s;
  const Json tools = s.ask(R"({"jsonrpc":"2.0","id":1,"method":"tools/list"})")["result"]["tools"];
  std::string names;
  for (const Json& tool : tools) {
    names += tool["name"].get<std::string>() + " ";
    BOOST_TEST(tool["inputSchema"]["type"] == "object");
    BOOST_TEST(tool["annotations"]["readOnlyHint"] == true);
  }
  BOOST_TEST(names == "jobs report why why_not evidence hosts ");
  s.call("evidence", {{"path", "p"}, {"line", 7}, {"around", 1'000'000}});
  BOOST_TEST(s.source.asked.around == 200u);
  BOOST_TEST(s.source.asked.line == 7u);
}

// Mutations of good messages: each gets valid JSON or nothing, and the server goes on.
BOOST_AUTO_TEST_CASE(no_input_ends_the_server) {
  const std::string seeds[] = {
      R"({"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{}}})",
      R"({"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"evidence","arguments":{"path":"a","line":3}}})",
      R"([{"jsonrpc":"2.0","id":3,"method":"ping"},{"jsonrpc":"2.0","id":4,"method":"tools/list"}])",
      std::string(50'000, '['), R"({"a":)" + std::string(50'000, '{')};
  constexpr std::string_view kParts = "{}[]\",:0123456789truefalsn.eE+-\\u\x01\x80\xff ";
  Session s;
  std::mt19937 random(5);
  for (size_t round = 0; round < 20'000; ++round) {
    std::string line = seeds[round % (round % 500 == 0 ? 5 : 3)];
    for (size_t n = random() % 6; n > 0; --n) {
      const size_t at = random() % line.size();
      const char c = kParts[random() % kParts.size()];
      if (random() % 3 == 0)
        line.erase(at, 1 + random() % 8);
      else if (random() % 2 == 0)
        line[at] = c;
      else
        line.insert(at, 1, c);
      if (line.empty()) line = " ";
    }
    const std::string reply = s.server.handle(line);
    if (!reply.empty() && !Json::accept(reply)) BOOST_TEST_REQUIRE(false, line << " -> " << reply);
  }
  BOOST_TEST(s.ask(R"({"jsonrpc":"2.0","id":7,"method":"ping"})")["id"] == 7);
}

BOOST_AUTO_TEST_SUITE_END()
