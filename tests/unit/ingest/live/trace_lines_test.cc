#include "ingest/live/trace_lines.h"

#include <boost/test/unit_test.hpp>
#include <cmath>

#include "base/limits.h"

using namespace culprit;
using namespace culprit::ingest;

BOOST_AUTO_TEST_SUITE(trace_lines)

namespace {

TraceLine parsed(std::string_view text) {
  const auto line = parse_trace_line(text);
  BOOST_REQUIRE_MESSAGE(line, std::string(text) + ": " + (line ? "" : line.error().text));
  return *line;
}

std::string refusal(std::string_view text) {
  const auto line = parse_trace_line(text);
  return line ? "" : line.error().text;
}

// (gcc 12 sees an overflow in sums of strings that is none.)
std::string joined(std::initializer_list<std::string_view> parts) {
  std::string out;
  for (const std::string_view part : parts) out += part;
  return out;
}

constexpr std::string_view kMetric = R"({"kind":"metric","rank":0,"step":1,)";

}  // namespace

BOOST_AUTO_TEST_CASE(the_metric_of_the_formats_is_read_whole) {
  const TraceLine line = parsed(
      R"({"kind":"metric","job":"j1","host":"node-3","rank":13,"step":120,"time_ns":1763690000000000000,)"
      R"("values":{"loss":2.31,"grad_norm":0.81,"grad_norm_reduced":0.40,"grad_norm/layer.0":0.11},)"
      R"("digests":{"param":"9f86d081884c7d65","grad_reduced":"2c26b46b68ffc68f"}})");
  BOOST_TEST((line.kind == TraceKind::kMetric));
  BOOST_TEST(line.job == "j1");
  BOOST_TEST(line.host == "node-3");
  BOOST_TEST((line.rank == 13u));
  BOOST_TEST((line.step == 120));
  BOOST_TEST(line.time_ns == 1763690000000000000);
  BOOST_REQUIRE(line.values.size() == 4u);
  BOOST_TEST(line.values[0].name == "loss");
  BOOST_TEST(line.values[0].value == 2.31);
  BOOST_TEST(line.values[3].name == "grad_norm/layer.0");
  BOOST_REQUIRE(line.digests.size() == 2u);
  BOOST_TEST(line.digests[0].name == "param");
  BOOST_TEST(line.digests[0].value == 0x9f86d081884c7d65u);
}

BOOST_AUTO_TEST_CASE(a_finding_is_read_as_it_is_written) {
  PluginFinding f;
  f.plugin = "gpu_health";
  f.id = "gpu.thermal_throttle";
  f.title = "A GPU is slowed by heat";
  f.text = "GPU 2: \"92\" C\n";
  f.category = "hardware";
  f.component = "gpu";
  f.symptom = "slowdown";
  f.action = "check";
  f.remedy = "Check the fans.";
  f.peer = "node-4";
  f.part = "nvlink 3";
  f.rank = 13;
  f.device = 2;
  f.time_ns = 1763690000000000000;
  f.confidence = 0.75;
  f.severity = PluginSeverity::kError;
  f.state = PluginState::kRaised;
  f.values = {{"temperature_c", 92.5}};
  TraceLine line = parsed(finding_line(f));
  BOOST_TEST((line.kind == TraceKind::kFinding));
  const PluginFinding read = plugin_finding(std::move(line), "node-3");
  BOOST_TEST(read.host == "node-3");
  PluginFinding without_host = read;
  without_host.host.clear();
  BOOST_TEST(finding_line(without_host) == finding_line(f));
}

BOOST_AUTO_TEST_CASE(a_finding_without_a_fault_or_with_a_wrong_word_is_refused) {
  const std::string head = R"({"kind":"finding","plugin":"p","id":"a.b","title":"t")";
  BOOST_TEST(refusal(head + "}") == "");
  BOOST_TEST(refusal(R"({"kind":"finding","id":"a","title":"t"})") == "'plugin' is missing");
  BOOST_TEST(refusal(R"({"kind":"finding","plugin":"p","title":"t"})") == "'id' is missing");
  BOOST_TEST(refusal(head + R"(,"severity":"bad"})") == "'severity' must be info, warning, error or fatal");
  BOOST_TEST(refusal(head + R"(,"state":3})") == "'state' must be happened, raised or cleared");
  BOOST_TEST(refusal(head + R"(,"confidence":1.5})") == "'confidence' must be a number from 0 to 1");
  BOOST_TEST(refusal(head + R"(,"device":-1})") == "'device' must be a whole number below 64");
}

BOOST_AUTO_TEST_CASE(numbers_that_json_has_not_are_read_with_and_without_quotes) {
  const struct {
    std::string_view written;
    double value;
  } cases[] = {
      {"\"NaN\"", NAN}, {"\"Infinity\"", INFINITY}, {"\"-Infinity\"", -INFINITY},
      {"NaN", NAN},     {"Infinity", INFINITY},     {"-Infinity", -INFINITY},
      {"1", 1},         {"-2.5e3", -2500},          {"18446744073709551615", 18446744073709551615.0},
  };
  for (const auto& row : cases) {
    const std::string text = joined({kMetric, R"("values":{"NaN \" NaN":1,"x":)", row.written, "}}"});
    BOOST_TEST_CONTEXT(text) {
      const TraceLine line = parsed(text);
      BOOST_REQUIRE(line.values.size() == 2u);
      BOOST_TEST(line.values[0].name == "NaN \" NaN");
      if (std::isnan(row.value))
        BOOST_TEST(std::isnan(line.values[1].value));
      else
        BOOST_TEST(line.values[1].value == row.value);
    }
  }
}

BOOST_AUTO_TEST_CASE(each_kind_is_read) {
  const TraceLine log = parsed(R"({"kind":"log","rank":3,"line":"loss is \u00e4 \"NaN\"\t\\"})");
  BOOST_TEST((log.kind == TraceKind::kLog));
  BOOST_TEST(log.text == "loss is \xc3\xa4 \"NaN\"\t\\");
  BOOST_TEST((log.rank == 3u));
  BOOST_TEST(log.time_ns == kNoTime);
  BOOST_TEST(log.job == "");
  BOOST_TEST(!log.step);

  const TraceLine step = parsed(R"({"step":0,"kind":"step"})");
  BOOST_TEST((step.kind == TraceKind::kStep));
  BOOST_TEST((step.step == 0));

  const TraceLine phase = parsed(R"({"kind":"phase","name":"evaluation","state":"begin","step":7})");
  BOOST_TEST((phase.kind == TraceKind::kPhase));
  BOOST_TEST(phase.name == "evaluation");
  BOOST_TEST(phase.state == "begin");

  const TraceLine stack = parsed(
      R"({"kind":"stack","host":"n","rank":1,"time_ns":5,"threads":[{"name":"MainThread","frames":["a.py:f:1","b"]},)"
      R"({"frames":[]},{"name":null}]})");
  BOOST_TEST((stack.kind == TraceKind::kStack));
  BOOST_REQUIRE(stack.threads.size() == 3u);
  BOOST_TEST(stack.threads[0].name == "MainThread");
  BOOST_REQUIRE(stack.threads[0].frames.size() == 2u);
  BOOST_TEST(stack.threads[0].frames[0] == "a.py:f:1");
  BOOST_TEST(stack.threads[2].frames.empty());
}

BOOST_AUTO_TEST_CASE(an_event_keeps_its_own_keys_whatever_they_hold) {
  const TraceLine event =
      parsed(R"({"kind":"event","name":"oom","values": [1, {"a" : "b"}],"line":true,"x":"y","z":null})");
  BOOST_TEST((event.kind == TraceKind::kEvent));
  BOOST_TEST(event.name == "oom");
  BOOST_REQUIRE(event.fields.size() == 4u);
  BOOST_TEST(event.fields[0].name == "values");
  BOOST_TEST(event.fields[0].json == R"([1,{"a":"b"}])");
  BOOST_TEST(event.fields[1].json == "true");
  BOOST_TEST(event.fields[2].json == "\"y\"");
  BOOST_TEST(event.fields[3].json == "null");
}

BOOST_AUTO_TEST_CASE(a_kind_that_is_not_known_still_tells_its_job) {
  const TraceLine line = parsed(R"({"kind":"span","job":"j","threads":7})");
  BOOST_TEST((line.kind == TraceKind::kUnknown));
  BOOST_TEST(line.job == "j");
  BOOST_TEST(line.fields.size() == 1u);
}

BOOST_AUTO_TEST_CASE(null_is_as_if_the_key_were_not_there_and_unknown_keys_are_passed_over) {
  const TraceLine line =
      parsed(R"({"kind":"metric","job":null,"host":null,"time_ns":null,"digests":null,"rank":2,"step":3,)"
             R"("values":{"a":null,"b":1},"more":{"kind":"log","rank":"x"}})");
  BOOST_TEST(line.job == "");
  BOOST_TEST(line.time_ns == kNoTime);
  BOOST_REQUIRE(line.values.size() == 1u);
  BOOST_TEST(line.values[0].name == "b");
  BOOST_TEST(line.fields.empty());
}

BOOST_AUTO_TEST_CASE(a_step_that_no_loop_counts_to_is_refused) {
  BOOST_TEST((parsed(R"({"kind":"step","step":9007199254740991})").step == limits::kStepMax));
  for (const char* step : {"9007199254740992", "9223372036854775807", "9223372036854775808"})
    BOOST_TEST(refusal(joined({R"({"kind":"step","step":)", step, "}"})) ==
               "'step' must be a whole number from 0 to 9007199254740991");
}

BOOST_AUTO_TEST_CASE(what_is_wrong_is_reported_by_its_key) {
  const std::string long_name(limits::kNameBytes + 1, 'x'),
      nested = joined({std::string(100, '['), std::string(100, ']')});
  const std::string long_text(limits::kLineBytes, 'x');
  const struct {
    std::string text, says;
  } cases[] = {
      {"", "it is no JSON object"},
      {"{", "it is no JSON object"},
      {"[]", "it is no JSON object"},
      {"\"kind\"", "it is no JSON object"},
      {"hello", "it is no JSON object"},
      {R"({"kind":"log","line":"x"} {})", "it is no JSON object"},
      {R"({"kind":"log","line":"x")", "it is no JSON object"},
      {"{\"kind\":\"log\",\"line\":\"\xff\"}", "it is no JSON object"},
      {std::string("{\"kind\":\"log\",\"line\":\"a\0b\"}", 27), "it is no JSON object"},
      {joined({R"({"kind":"event","name":"n","x":)", nested, "}"}), "it is nested too deep"},
      {"{}", "'kind' is missing"},
      {R"({"kind":7})", "'kind' must be a string"},
      {R"({"kind":"log","kind":"log","line":""})", "'kind' stands there twice"},
      {R"({"kind":"log","job":1,"line":""})", "'job' must be a string"},
      {joined({R"({"kind":"log","job":")", long_name, R"(","line":""})"}),
       "'job' must be at most 256 bytes long"},
      {R"({"kind":"log","host":[],"line":""})", "'host' must be a string"},
      {R"({"kind":"log"})", "'line' is missing"},
      {R"({"kind":"log","line":1})", "'line' must be a string"},
      {R"({"kind":"metric","step":1,"values":{}})", "'rank' is missing"},
      {R"({"kind":"metric","rank":1,"values":{}})", "'step' is missing"},
      {R"({"kind":"metric","rank":1,"step":1})", "'values' is missing"},
      {R"({"kind":"metric","rank":-1,"step":1,"values":{}})",
       "'rank' must be a whole number from 0 to 4294967294"},
      {R"({"kind":"metric","rank":1.0,"step":1,"values":{}})",
       "'rank' must be a whole number from 0 to 4294967294"},
      {R"({"kind":"metric","rank":4294967295,"step":1,"values":{}})",
       "'rank' must be a whole number from 0 to 4294967294"},
      {R"({"kind":"metric","rank":1,"step":-1,"values":{}})",
       "'step' must be a whole number from 0 to 9007199254740991"},
      {R"({"kind":"step","step":1,"time_ns":"now"})", "'time_ns' must be a whole number from 0 on"},
      {R"({"kind":"step","step":1,"step":2})", "'step' stands there twice"},
      {R"({"kind":"step"})", "'step' is missing"},
      {joined({kMetric, R"("values":[]})"}), "'values' must be an object"},
      {joined({kMetric, R"("values":{"a":"x"}})"}),
       R"('a' must be a number, "NaN", "Infinity" or "-Infinity")"},
      {joined({kMetric, R"("values":{"a":true}})"}),
       R"('a' must be a number, "NaN", "Infinity" or "-Infinity")"},
      {joined({kMetric, R"("values":{"b":1,"a":1,"b":2}})"}), "'b' stands there twice"},
      {joined({kMetric, R"("values":{"a":1e999}})"}), "it is no JSON object"},
      {joined({kMetric, R"("digests":{"p":1}})"}), "'p' must be up to 16 hexadecimal digits"},
      {joined({kMetric, R"("digests":{"p":""}})"}), "'p' must be up to 16 hexadecimal digits"},
      {joined({kMetric, R"("digests":{"p":"-1"}})"}), "'p' must be up to 16 hexadecimal digits"},
      {joined({kMetric, R"("digests":{"p":"12345678123456781"}})"}),
       "'p' must be up to 16 hexadecimal digits"},
      {joined({kMetric, R"("digests":{"p":"0xab"}})"}), "'p' must be up to 16 hexadecimal digits"},
      {joined({kMetric, R"("digests":{"p":"a","p":"b"}})"}), "'p' stands there twice"},
      {R"({"kind":"phase","state":"begin"})", "'name' is missing"},
      {R"({"kind":"phase","name":"n","state":"on"})", R"('state' must be "begin" or "end")"},
      {R"({"kind":"phase","name":"n"})", "'state' is missing"},
      {R"({"kind":"event"})", "'name' is missing"},
      {R"({"kind":"event","name":"n","a":1,"a":2})", "'a' stands there twice"},
      {R"({"kind":"stack"})", "'threads' is missing"},
      {R"({"kind":"stack","threads":{}})", "'threads' must be an array of objects"},
      {R"({"kind":"stack","threads":[1]})", "'threads' must be an array of objects"},
      {R"({"kind":"stack","threads":[{"frames":"x"}]})", "'frames' must be an array of strings"},
      {R"({"kind":"stack","threads":[{"frames":[1]}]})", "'frames' must be an array of strings"},
      {joined({R"({"kind":"log","line":")", long_text, "\"}"}), "it is longer than a line may be"},
  };
  for (const auto& row : cases)
    BOOST_TEST_CONTEXT(row.text.substr(0, 200)) BOOST_TEST(refusal(row.text) == row.says);
}

BOOST_AUTO_TEST_CASE(a_line_of_the_largest_size_is_read) {
  const std::string head = R"({"kind":"log","line":")", tail = "\"}";
  const std::string text =
      joined({head, std::string(limits::kLineBytes - head.size() - tail.size(), 'x'), tail});
  BOOST_TEST(text.size() == limits::kLineBytes);
  BOOST_TEST(parsed(text).text.size() == text.size() - head.size() - tail.size());
  BOOST_TEST((parsed(R"({"kind":"step","step":1})").step == 1));  // and a small one after it
}

BOOST_AUTO_TEST_SUITE_END()
