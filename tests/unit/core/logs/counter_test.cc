#include "core/logs/counter.h"

#include <fmt/format.h>

#include <boost/test/unit_test.hpp>

using namespace culprit::logs;

BOOST_AUTO_TEST_CASE(a_number_that_counts_up_is_found_unless_its_word_says_that_it_counts_messages) {
  struct Case {
    const char* form;
    bool counts;
  };
  const Case cases[] = {{"profiler reuse, seq {} on side stream", false},
                        {"allreduce opcount={} done", false},
                        {"batch {} done", true},
                        {"[{}] loss 2.1", true},
                        {"consequence {} done", true}};
  for (const Case& c : cases) BOOST_TEST_CONTEXT(c.form) {
      CounterWatch watch;
      for (int i = 0; i < 20; ++i) watch.see(0, fmt::format(fmt::runtime(c.form), 83 * i));
      BOOST_TEST(watch.counts() == c.counts);
    }
}
