#include "core/detect/logs/pool.h"

#include <algorithm>
#include <boost/test/unit_test.hpp>

#include "core/logs/line_parser.h"

using namespace culprit;
using culprit::detect::Pool;

namespace {
Pool sample() {
  Pool pool;
  pool.jobs = 3;
  pool.forms.push_back({7, "step <*> done", 3, 40, 1.0, 0});
  pool.forms.push_back({9, "a\ttab stays", 1, 1, 0.25, 2});
  return pool;
}
}  // namespace

BOOST_AUTO_TEST_CASE(a_saved_pool_loads_as_it_was) {
  const auto loaded = Pool::load(sample().save().value(), "p");
  BOOST_REQUIRE(loaded.has_value());
  BOOST_TEST(loaded->jobs == 3u);
  BOOST_REQUIRE(loaded->forms.size() == 2u);
  BOOST_TEST(loaded->forms[0].host_max == 40);
  BOOST_TEST(loaded->forms[1].text == "a\ttab stays");
  BOOST_TEST(loaded->save().value() == sample().save().value());
}

BOOST_AUTO_TEST_CASE(merging_adds_jobs_and_keeps_the_largest_counts) {
  Pool pool = sample(), other = sample();
  other.forms[0].host_max = 90;
  pool.merge(other);
  BOOST_TEST(pool.jobs == 6u);
  BOOST_TEST(pool.forms.size() == 2u);
  BOOST_TEST(pool.forms[0].jobs == 6u);
  BOOST_TEST(pool.forms[0].host_max == 90);
}

BOOST_AUTO_TEST_CASE(a_pool_resembles_jobs_that_share_a_fifth_of_the_messages) {
  logs::JobLog log({});
  SourceInfo source;
  source.file = "a.log";
  logs::LogBatch batch;
  batch.source = log.open_source(source);
  const std::string text = "alpha begins\nbeta goes on\ngamma is read\ndelta is kept\nomega ends here\n";
  logs::LineParser parser({});
  parser.parse({batch.source, 0, 0, text, text.size(), true}, source, batch);
  log.add(batch);
  Pool pool;
  pool.jobs = 1;
  for (uint64_t i = 1; i <= 10; ++i) pool.forms.push_back({i, "another", 1, 1, 1, 0});
  BOOST_TEST(!pool.resembles(log));
  pool.forms.push_back({log.forms()[0].hash, "alpha begins", 1, 1, 1, 0});
  std::sort(pool.forms.begin(), pool.forms.end(),
            [](const auto& a, const auto& b) { return a.hash < b.hash; });
  BOOST_TEST(pool.resembles(log), "one of five");
}

BOOST_AUTO_TEST_CASE(what_is_no_pool_is_refused_with_its_line) {
  for (const std::string& text :
       {std::string(), std::string("hello\n"), std::string("culprit.pool/2\t2\nnonsense\n"),
        std::string("culprit.pool/2\tx\n"), std::string("culprit.pool/2\t1\n07\t1\tnan\t1\t0\ta\n"),
        std::string("culprit.pool/2\t1\n07\t1\t1\tinf\t0\ta\n"),
        std::string("culprit.pool/2\t1\n07\t1\t-1\t1\t0\ta\n")}) {
    const auto loaded = Pool::load(text, "dir/p");
    BOOST_REQUIRE(!loaded.has_value());
    BOOST_TEST(loaded.error().text.starts_with("dir/p:"));
  }
}

BOOST_AUTO_TEST_CASE(a_pool_that_could_not_be_loaded_is_not_saved) {
  const size_t size = sample().save().value().size();
  BOOST_TEST(sample().save(size).has_value());
  BOOST_TEST(!sample().save(size - 1).has_value());
}
