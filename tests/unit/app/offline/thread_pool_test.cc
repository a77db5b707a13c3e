// Work of a pool: each part once, on any number of threads, and its failure comes back.
#include "app/offline/thread_pool.h"

#include <atomic>
#include <boost/test/unit_test.hpp>
#include <stdexcept>

using namespace culprit;

BOOST_AUTO_TEST_CASE(a_pool_does_each_part_once) {
  for (const unsigned threads : {1, 2, 5}) {
    app::ThreadPool pool(threads);
    const comm::Parallel parallel = pool.parallel();
    BOOST_TEST(parallel.width == threads);
    for (const size_t n : {0, 1, 2, 1000}) {
      std::vector<std::atomic<int>> done(n);
      parallel.run(n, [&](size_t i) { ++done[i]; });
      for (const auto& times : done) BOOST_TEST(times == 1);
    }
  }
}

BOOST_AUTO_TEST_CASE(a_pool_passes_on_a_failure_and_works_on) {
  app::ThreadPool pool(3);
  const comm::Parallel parallel = pool.parallel();
  BOOST_CHECK_THROW(parallel.run(8,
                                 [](size_t i) {
                                   if (i == 5) throw std::bad_alloc();
                                 }),
                    std::bad_alloc);
  std::atomic<int> done{0};
  parallel.run(8, [&](size_t) { ++done; });
  BOOST_TEST(done == 8);
}
