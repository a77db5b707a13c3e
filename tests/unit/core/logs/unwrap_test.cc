#include "core/logs/unwrap.h"

#include <boost/test/unit_test.hpp>

#include "core/logs/json_line.h"

using namespace culprit;
using namespace culprit::logs;

namespace {

struct Row {
  const char *line, *text, *host;
};

std::string text_of(std::string_view line, std::string* host = nullptr) {
  std::string made;
  made.reserve(line.size());
  const auto inner = unwrap(line, made);
  if (!inner) return "-";
  if (host) *host = inner->host;
  return std::string(inner->text);
}

}  // namespace

BOOST_AUTO_TEST_CASE(the_line_of_a_program_is_taken_out_of_what_a_log_service_puts_around_it) {
  const Row rows[] = {
      {R"({"severity":"INFO","textPayload":"GPU lost","resource":{"labels":{"node_name":"n7"}}})", "GPU lost",
       "n7"},
      {R"({"jsonPayload":{"message":"GPU lost"},"labels":{"compute.googleapis.com/resource_name":"n7"}})",
       "GPU lost", "n7"},
      {R"({"_TRANSPORT":"kernel","PRIORITY":"6","_HOSTNAME":"n7","MESSAGE":"GPU lost"})", "GPU lost", "n7"},
      {R"({"@timestamp":"2026-03-01 10:00:00.000","@message":"GPU lost","@logStream":"a"})", "GPU lost", ""},
      {R"({"stream":{"host":"n7"},"values":[["1772359200000000000","one"],["1772359200000000001","two"]]})",
       "one | two", "n7"},
      {R"({"labels":{"pod":"train-3"},"line":"GPU lost","timestamp":"2026-03-01T10:00:00Z"})", "GPU lost",
       "train-3"},
      {R"({"log":"GPU lost\n","stream":"stderr","time":"2026-03-01T10:00:00.5Z"})", "GPU lost ", ""},
      {R"({"log":"GPU lost","kubernetes":{"host":"n7","pod_name":"p"},"stream":"stderr"})", "GPU lost", "n7"},
  };
  for (const Row& row : rows) {
    std::string host;
    BOOST_TEST(text_of(row.line, &host) == row.text, row.line);
    BOOST_TEST(host == row.host, row.line);
  }
}

BOOST_AUTO_TEST_CASE(a_field_of_an_object_over_several_lines_gives_the_line_of_the_program) {
  const Row rows[] = {
      {R"("textPayload": "RuntimeError: no \"such\" module",)", R"(RuntimeError: no "such" module)", ""},
      {R"("message" : "GPU lost")", "GPU lost", ""},
      {R"("msg": "GPU lost", "rank": 3)", "-", ""},
      {R"("level": "INFO",)", "-", ""},
      {R"("message": {)", "-", ""},
      {R"("message")", "-", ""},
      {R"(")", "-", ""},
  };
  for (const Row& row : rows) BOOST_TEST(text_of(row.line) == row.text, row.line);
}

BOOST_AUTO_TEST_CASE(an_event_of_kubernetes_reads_as_kubectl_prints_it) {
  std::string host;
  BOOST_TEST(
      text_of(R"({"kind":"Event","type":"Warning","reason":"FailedMount","message":"no \"such\" volume",)"
              R"("involvedObject":{"kind":"Pod","name":"train-3"},"source":{"host":"n7"}})",
              &host) == R"(FailedMount Pod/train-3: no "such" volume)");
  BOOST_TEST(host == "n7");
}

BOOST_AUTO_TEST_CASE(the_event_of_a_health_monitor_is_found_at_any_depth) {
  std::string host;
  BOOST_TEST(
      text_of(R"({"level":"INFO","msg":"received","events":{"events":[{"componentClass":"GPU",)"
              R"("checkName":"SysXIDError","isFatal":true,"errorCode":["13"],"entitiesImpacted":[)"
              R"({"entityType":"PCI","entityValue":"0001:00:00"},{"entityType":"SM","entityValue":"2"}],)"
              R"("nodeName":"n7"}]}})",
              &host) == "GPU SysXIDError: XID 13, PCI 0001:00:00, SM 2");
  BOOST_TEST(host == "n7");
  BOOST_TEST(text_of(R"({"checkName":"SysXIDError","isHealthy":true,"message":"fine"})") == "fine");
}

BOOST_AUTO_TEST_CASE(the_metrics_of_a_step_stay_together) {
  BOOST_TEST(text_of(R"({"level": "info", "msg": "step", "loss": 2.5})") == "-");
  BOOST_TEST(text_of(R"({"level": "info", "msg": "started", "pid": 7})") == "started");
  BOOST_TEST(text_of(R"({"level": "error", "msg": "step failed", "loss": 2.5})") == "step failed");
}

BOOST_AUTO_TEST_CASE(a_failure_is_told_with_its_reason) {
  BOOST_TEST(text_of(R"({"level": "error", "msg": "pull failed", "error": "no space left"})") ==
             "pull failed: no space left");
}

BOOST_AUTO_TEST_CASE(escapes_are_resolved_and_line_breaks_become_blanks) {
  const std::pair<const char*, const char*> rows[] = {
      {R"(a \"b\" \\ \/ c)", R"(a "b" \ / c)"},
      {R"(a\nb\tc\r)", "a b c "},
      {R"(\u00e9\u4e2d)", "é中"},
      {R"(\ud83d\ude00)", "??"},
      {R"(end\)", "end\\"},
      {R"(\u12)", "u12"},
      {R"(\u0000)", " "},
      {"", ""},
  };
  for (const auto& [text, wanted] : rows) {
    std::string out;
    append_unescaped(text, out);
    BOOST_TEST(out == wanted, text);
    BOOST_TEST(out.size() <= std::string_view(text).size());
  }
}

BOOST_AUTO_TEST_CASE(what_is_made_of_a_line_is_never_longer_than_the_line) {
  for (const std::string_view line :
       {R"({"checkName":"aXid","isFatal":1,"errorCode":["1","2","3","4"]})",
        R"({"values":[["","a"],["","b"]]})", R"({"reason":"a","involvedObject":{"name":"b"}})",
        R"({"error":"a","msg":"b","level":"fatal"})"}) {
    std::string made;
    made.reserve(line.size());
    BOOST_TEST(unwrap(line, made).has_value(), line);
    BOOST_TEST(made.size() <= line.size(), line);
  }
}
