#include "core/logs/json_line.h"

#include <boost/test/unit_test.hpp>

using namespace culprit;
using namespace culprit::logs;

BOOST_AUTO_TEST_CASE(the_fields_of_structured_loggers_are_found_at_the_top_of_the_object) {
  struct Row {
    const char *line, *message, *host;
    Level level;
    uint32_t rank;
  };
  const Row rows[] = {
      {R"({"ts": 1.5, "level": "error", "msg": "out of range", "hostname": "n1", "rank": 5})", "out of range",
       "n1", Level::kError, 5},
      {R"({"severity":"CRITICAL","message":"a \"b\", {c}","global_rank":"7"})", R"(a \"b\", {c})", "",
       Level::kFatal, 7},
      {R"({"k8s": {"msg": "inner", "host": "x"}, "event": "outer", "hostname": "n2" } )", "outer", "n2",
       Level::kNone, kNoRank},
      {R"({"list": [1, {"a": "]"}], "levelname": "WARNING", "text": ""})", "", "", Level::kWarning, kNoRank},
      {R"({"msg": 5, "rank": -1, "host": "two words"})", "", "", Level::kNone, kNoRank},
      {R"({"level": 50, "msg": "x", "host": "peer"})", "x", "", Level::kError, kNoRank},
      {R"({"log": {"level": "error"}, "message": "y"})", "y", "", Level::kError, kNoRank},
      {R"({"severity": "ERROR", "jsonPayload": {"message": "z", "rank": 3}})", "z", "", Level::kError, 3},
      {R"({})", nullptr, "", Level::kNone, kNoRank},
      {R"({"msg": "not closed})", nullptr, "", Level::kNone, kNoRank},
      {R"({"msg"})", nullptr, "", Level::kNone, kNoRank},
      {R"([{"msg": "x"}])", nullptr, "", Level::kNone, kNoRank},
      {"", nullptr, "", Level::kNone, kNoRank},
      {"{", nullptr, "", Level::kNone, kNoRank},
      {R"({"a":)", nullptr, "", Level::kNone, kNoRank},
      {R"({"a\)", nullptr, "", Level::kNone, kNoRank},
  };
  for (const Row& row : rows) {
    const auto json = json_line(row.line);
    BOOST_REQUIRE_MESSAGE(json.has_value() == (row.message != nullptr), row.line);
    if (!json) continue;
    BOOST_TEST(json->message == row.message, row.line);
    BOOST_TEST(json->host == row.host, row.line);
    BOOST_TEST((json->level == row.level), row.line);
    BOOST_TEST(json->rank == row.rank, row.line);
  }
}

BOOST_AUTO_TEST_CASE(the_service_that_wrote_a_line_of_journald_is_known_by_its_identifier_and_unit) {
  const std::pair<const char*, Service> rows[] = {
      {R"({"SYSLOG_IDENTIFIER":"rsync","_SYSTEMD_UNIT":"backup.service","MESSAGE":"x"})", Service::kForeign},
      {R"({"MESSAGE":"x","_SYSTEMD_UNIT":"sshd.service"})", Service::kForeign},
      {R"({"MESSAGE":"x","SYSLOG_IDENTIFIER":"slurmd"})", Service::kNode},
      {R"({"MESSAGE":"x","SYSLOG_IDENTIFIER":"systemd","_SYSTEMD_UNIT":"init.scope"})", Service::kNode},
      {R"({"MESSAGE":"x","SYSLOG_IDENTIFIER":"kernel","_TRANSPORT":"kernel"})", Service::kNone},
      {R"({"MESSAGE":"x","SYSLOG_IDENTIFIER":"python3","_SYSTEMD_UNIT":"train.service"})", Service::kNone},
      {R"({"MESSAGE":"x","SYSLOG_IDENTIFIER":"bash","_SYSTEMD_UNIT":"session-3.scope"})", Service::kNone},
      {R"({"MESSAGE":"x","SYSLOG_IDENTIFIER":"3fa1","CONTAINER_ID":"3fa1","_SYSTEMD_UNIT":"docker.service"})",
       Service::kNone},
      {R"({"message":"x","level":"error"})", Service::kNone},
  };
  for (const auto& [line, service] : rows) BOOST_TEST((json_line(line)->service == service), line);
}

BOOST_AUTO_TEST_CASE(journalds_transport_decides_whether_a_line_is_the_kernels) {
  const std::pair<const char*, bool> rows[] = {
      {R"({"MESSAGE":"x","SYSLOG_IDENTIFIER":"kernel","_TRANSPORT":"kernel"})", true},
      {R"({"MESSAGE":"x","_TRANSPORT":"kernel"})", true},
      {R"({"MESSAGE":"x","SYSLOG_IDENTIFIER":"kernel"})", true},  // a service that passes no transport on
      {R"({"MESSAGE":"x","SYSLOG_IDENTIFIER":"kernel","_TRANSPORT":"journal"})", false},
      {R"({"MESSAGE":"x","_TRANSPORT":"syslog","SYSLOG_IDENTIFIER":"kernel"})", false},
      {R"({"MESSAGE":"x"})", false},
  };
  for (const auto& [line, kernel] : rows) BOOST_TEST(json_line(line)->kernel == kernel, line);
}

BOOST_AUTO_TEST_CASE(what_an_error_says_of_itself_is_found_next_to_the_message) {
  const std::pair<const char*, const char*> rows[] = {
      {R"({"msg": "cannot load", "error": "open /data/a: permission denied"})",
       "open /data/a: permission denied"},
      {R"({"msg": "failed", "err": {"type": "Error", "message": "no route", "stack": "at a\nat b"}})",
       "no route"},
      {R"({"msg": "failed", "error": null})", ""},
  };
  for (const auto& [line, error] : rows) BOOST_TEST(json_line(line)->error == error, line);
  const auto list =
      json_line(R"({"exc_info": ["KeyError", "Traceback (most recent call last):\n  f\nKeyError: 1"]})");
  BOOST_TEST(joined_exception(list->exception) == "KeyError: 1");
}

BOOST_AUTO_TEST_CASE(the_exception_of_a_traceback_in_one_text_is_its_first_line_that_is_not_indented) {
  const std::pair<const char*, const char*> rows[] = {
      {R"(Traceback (most recent call last):\n  File \"a.py\", line 9, in f\n    g()\nValueError: bad\nmore" rank=5)",
       "ValueError: bad"},
      {R"(step failed: Traceback (most recent call last):\n  File \"a.py\"\nKeyError: 'x'\n\nDuring handling of )"
       R"(the above exception, another exception occurred:\n\nTraceback (most recent call last):\n  File \"b\"\n)"
       R"(RuntimeError: late)",
       "RuntimeError: late"},
      {R"(Traceback (most recent call last):\n  File \"a.py\", line 9)", ""},
      {R"(Traceback (most recent call last):)", ""},
      {R"(ValueError: bad\nmore)", ""},
      {R"(Traceback (most recent call last):\n  f\nOSError: C:\\new is gone)", R"(OSError: C:\\new is gone)"},
      {"", ""},
  };
  for (const auto& [text, exception] : rows) BOOST_TEST(joined_exception(text) == exception, text);
}
