#include "core/logs/tracebacks.h"

#include <boost/test/unit_test.hpp>

using namespace culprit;
using namespace culprit::logs;

BOOST_AUTO_TEST_CASE(the_first_line_of_a_traceback_shows_its_style) {
  struct Case {
    std::string_view line;
    std::optional<TracebackStyle> style;
  };
  const Case cases[] = {
      {"Traceback (most recent call last):", TracebackStyle::kPlain},
      {"Original Traceback (most recent call last):", TracebackStyle::kPlain},
      {"+ Exception Group Traceback (most recent call last):", TracebackStyle::kGroup},
      {"╭───── Traceback (most recent call last) ─────╮", TracebackStyle::kBox},
      {"+----- Traceback (most recent call last) -----+", TracebackStyle::kBox},
      {"ValueError                                Traceback (most recent call last)",
       TracebackStyle::kNotebook},
      {"see Traceback (most recent call last)", {}},
      {"completion: Traceback (most recent call last):", {}},
      {"grep 'Traceback (most recent call last)' *.log", {}},
  };
  for (const Case& c : cases) BOOST_TEST_CONTEXT(c.line) {
      const auto head = traceback_head(c.line);
      BOOST_REQUIRE(head.has_value() == c.style.has_value());
      if (head) BOOST_TEST((head->style == *c.style));
    }
}

BOOST_AUTO_TEST_CASE(the_entry_of_a_program_is_known_in_each_style) {
  for (const char* yes : {"File \"run.py\", line 5, in <module>", "/app/run.py:5 in <module>        │",
                          "Cell In[9], line 3", "File \"runpy.py\", line 8, in _run_module_as_main"})
    BOOST_TEST_CONTEXT(yes) BOOST_TEST(is_entry(yes));
  for (const char* no : {"File \"run.py\", line 5, in main", "/app/run.py:5 in main │", "File ~/nb/ui.py:12"})
    BOOST_TEST_CONTEXT(no) BOOST_TEST(!is_entry(no));
}
