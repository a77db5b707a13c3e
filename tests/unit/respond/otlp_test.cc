// Bodies of OTLP: the form that the receivers publish.
#include "respond/otlp.h"

#include <boost/test/unit_test.hpp>
#include <nlohmann/json.hpp>

using namespace culprit;
using namespace culprit::respond;
using nlohmann::json;

BOOST_AUTO_TEST_SUITE(otlp)

BOOST_AUTO_TEST_CASE(a_record_has_times_and_integers_as_texts_and_leaves_out_what_is_not_known) {
  OtlpLog log;
  log.seen_ns = 1'700'000'000'000'000'001;
  log.severity = OtlpSeverity::kError;
  log.text = "GPU \xff lost";
  log.attributes = {
      {"a", std::string("x")}, {"none", std::string()}, {"n", int64_t{7}}, {"d", 0.5}, {"b", true}};
  const json record = json::parse(otlp_log(log));
  BOOST_CHECK(!record.contains("timeUnixNano"));
  BOOST_CHECK_EQUAL(record["observedTimeUnixNano"], "1700000000000000001");
  BOOST_CHECK_EQUAL(record["severityNumber"], 17);
  BOOST_CHECK_EQUAL(
      record["attributes"],
      json::parse(R"([{"key":"a","value":{"stringValue":"x"}},{"key":"n","value":{"intValue":"7"}},
                                    {"key":"d","value":{"doubleValue":0.5}},{"key":"b","value":{"boolValue":true}}])"));
  const json body = json::parse(otlp_logs_body({otlp_log(log), otlp_log(log)}, {"gpu-1"}));
  const json& of = body["resourceLogs"][0];
  BOOST_CHECK_EQUAL(of["scopeLogs"][0]["logRecords"].size(), 2);
  BOOST_CHECK_EQUAL(of["resource"]["attributes"][2]["value"]["stringValue"], "gpu-1");
}

BOOST_AUTO_TEST_CASE(metrics_are_those_of_the_text) {
  const OtlpMetrics made = otlp_metrics_body(R"(# HELP x_total Things.
# TYPE x_total counter
x_total{a="1",b="q\"\\\n"} 3
x_total{a="2"} 4.5
# HELP y Now.
# TYPE y gauge
y -1
y{of="inf"} +Inf
broken
# HELP z Times.
# TYPE z histogram
z_bucket{le="0.1"} 1
z_bucket{le="1"} 3
z_bucket{le="+Inf"} 4
z_sum 5.5
z_count 4
)",
                                             {"gpu-1"}, 10, 20);
  BOOST_CHECK_EQUAL(made.points, 4);
  const json metrics = json::parse(made.body)["resourceMetrics"][0]["scopeMetrics"][0]["metrics"];
  BOOST_REQUIRE_EQUAL(metrics.size(), 3);
  BOOST_CHECK_EQUAL(metrics[0], json::parse(R"({"name":"x_total","description":"Things.","sum":{
    "aggregationTemporality":2,"isMonotonic":true,"dataPoints":[
    {"attributes":[{"key":"a","value":{"stringValue":"1"}},{"key":"b","value":{"stringValue":"q\"\\\n"}}],
     "startTimeUnixNano":"10","timeUnixNano":"20","asDouble":3.0},
    {"attributes":[{"key":"a","value":{"stringValue":"2"}}],
     "startTimeUnixNano":"10","timeUnixNano":"20","asDouble":4.5}]}})"));
  BOOST_CHECK_EQUAL(metrics[1]["gauge"]["dataPoints"].size(), 1);
  BOOST_CHECK_EQUAL(metrics[2]["histogram"], json::parse(R"({"aggregationTemporality":2,"dataPoints":[
    {"attributes":[],"startTimeUnixNano":"10","timeUnixNano":"20","count":"4","sum":5.5,
     "bucketCounts":["1","2","1"],"explicitBounds":[0.1,1.0]}]})"));
}

BOOST_AUTO_TEST_CASE(further_points_are_left_out_and_counted) {
  std::string text = "# HELP x Things.\n# TYPE x gauge\n";
  for (size_t i = 0; i < kOtlpPoints + 3; ++i) text += "x{i=\"" + std::to_string(i) + "\"} 1\n";
  const OtlpMetrics made = otlp_metrics_body(text, {"h"}, 0, 1);
  BOOST_CHECK_EQUAL(made.points, kOtlpPoints);
  BOOST_CHECK_EQUAL(made.left_out, 3);
}

BOOST_AUTO_TEST_CASE(an_answer_says_what_was_rejected) {
  BOOST_CHECK_EQUAL(otlp_rejected(R"({"partialSuccess":{"rejectedLogRecords":"3"}})"), 3);
  BOOST_CHECK_EQUAL(otlp_rejected(R"({"partialSuccess":{"rejectedDataPoints":4,"errorMessage":"x"}})"), 4);
  for (const char* none :
       {"", "{}", "[1]", R"({"partialSuccess":7})", R"({"partialSuccess":{"rejectedLogRecords":"x"}})"})
    BOOST_CHECK_EQUAL(otlp_rejected(none), 0);
}

BOOST_AUTO_TEST_SUITE_END()
