#include "app/play/play.h"

#include <boost/test/unit_test.hpp>

using namespace culprit;
using namespace culprit::app;

BOOST_AUTO_TEST_SUITE(play)

BOOST_AUTO_TEST_CASE(the_last_run_of_a_job_is_read_whatever_a_server_answers) {
  struct Case {
    const char* answer;
    std::optional<uint64_t> run;
    uint64_t lines = 0;
    bool runs = true;
  };
  const Case cases[] = {
      {"", {}},
      {"[]", {}},
      {R"({"items": 3})", {}},
      {R"({"items": [3, {"id": 4}, {"id": "k", "run": 9}]})", {}},
      {R"({"items": [{"id": "j", "run": 2, "lines": 70, "state": "running"}, {"id": "j", "run": 1}]})", 2,
       70},
      {R"({"items": [{"id": "j", "run": 2, "lines": 70, "state": "failed"}]})", 2, 70, false},
      {R"({"items": [{"id": "j", "run": "2", "lines": "many", "state": 7}]})", 0, 0, false},
      {R"({"items": [{"id": "j", "run": -2, "lines": null}]})", 0},
  };
  for (const Case& c : cases) {
    const auto row = last_run(c.answer, "j");
    BOOST_TEST_CONTEXT(c.answer) {
      BOOST_TEST_REQUIRE(row.has_value() == c.run.has_value());
      if (row) BOOST_TEST((row->run == *c.run && row->lines == c.lines && row->runs == c.runs));
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()
