#include <signal.h>

#include <sys/resource.h>

#include <atomic>
#include <boost/test/unit_test.hpp>
#include <latch>
#include <thread>

#include "fixtures.h"

using namespace culprit;
using namespace culprit::io;
using namespace culprit::io::testing;

BOOST_AUTO_TEST_SUITE(env)

BOOST_AUTO_TEST_CASE(a_timer_calls_once_or_again_and_again) {
  RealLoop loop;
  int once = 0, often = 0;
  auto single = loop.env->timer([&] { ++once; });
  auto repeated = loop.env->timer([&] {
    if (++often == 3) loop.env->stop();
  });
  single->start(0);
  repeated->start(kNsPerMs, kNsPerMs);
  loop.run();
  BOOST_TEST(once == 1);
  BOOST_TEST(often == 3);
}

BOOST_AUTO_TEST_CASE(a_timer_is_never_early) {
  RealLoop loop;
  const TimeNs before = loop.env->now(Clock::kMonotonic);
  auto timer = loop.env->timer([&] { loop.env->stop(); });
  timer->start(2 * kNsPerMs + 1);
  loop.run();
  BOOST_TEST(loop.env->now(Clock::kMonotonic) - before >= 2 * kNsPerMs);
}

BOOST_AUTO_TEST_CASE(a_stopped_or_destroyed_timer_does_not_call) {
  RealLoop loop;
  bool called = false;
  auto stopped = loop.env->timer([&] { called = true; });
  auto destroyed = loop.env->timer([&] { called = true; });
  auto last = loop.env->timer([&] { loop.env->stop(); });
  stopped->start(kNsPerMs), destroyed->start(kNsPerMs), last->start(3 * kNsPerMs);
  stopped->stop(), destroyed.reset();
  loop.run();
  BOOST_TEST(!called);
}

BOOST_AUTO_TEST_CASE(a_timer_may_be_destroyed_from_within_its_call) {
  RealLoop loop;
  std::string seen;
  std::unique_ptr<Timer> timer;
  timer = loop.env->timer([&, held = std::string(100, 'x')] {
    timer.reset();
    seen = held;  // the closure still exists
    loop.env->stop();
  });
  timer->start(0, kNsPerMs);
  loop.run();
  BOOST_TEST(seen == std::string(100, 'x'));
}

BOOST_AUTO_TEST_CASE(posts_of_each_thread_run_in_order_on_the_loop) {
  RealLoop loop;
  constexpr int kThreads = 4, kPosts = 1000;
  const auto loop_thread = std::this_thread::get_id();
  std::vector<int> next(kThreads, 0);
  int wrong = 0, total = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < kPosts; ++i)
        loop.env->post([&, t, i] {
          wrong += next[t]++ != i || std::this_thread::get_id() != loop_thread;
          if (++total == kThreads * kPosts) loop.env->stop();
        });
    });
  loop.run();
  for (auto& thread : threads) thread.join();
  BOOST_TEST(wrong == 0);
  BOOST_TEST(total == kThreads * kPosts);
}

BOOST_AUTO_TEST_CASE(what_is_posted_before_stop_is_done_and_a_stopped_loop_runs_again) {
  RealLoop loop;
  std::string done;
  loop.env->post([&] { done += 'a'; });
  loop.env->stop();
  loop.run();
  BOOST_TEST(done == "a");
  loop.env->post([&] { done += 'b', loop.env->stop(); });
  loop.run();
  BOOST_TEST(done == "ab");
}

BOOST_AUTO_TEST_CASE(a_worker_works_in_order_on_its_thread_and_calls_back_on_the_loop) {
  RealLoop loop;
  const auto loop_thread = std::this_thread::get_id();
  std::vector<int> worked, reported;
  std::atomic<int> wrong = 0;  // of both threads
  auto worker = *loop.env->worker("a name longer than the kernel keeps");
  for (int i = 0; i < 100; ++i)
    worker->submit(
        [&, i] {
          wrong += std::this_thread::get_id() == loop_thread;
          worked.push_back(i);
        },
        [&, i] {
          wrong += std::this_thread::get_id() != loop_thread;
          reported.push_back(i);
          if (i == 99) loop.env->stop();
        });
  loop.run();
  BOOST_TEST(wrong == 0);
  BOOST_TEST(worker->queued() == 0u);
  BOOST_TEST(reported.size() == 100u);
  BOOST_TEST(worked == reported);
}

BOOST_AUTO_TEST_CASE(a_calm_call_waits_for_the_next_turn_of_the_loop_and_keeps_its_order) {
  RealLoop loop;
  auto worker = *loop.env->worker("w");
  std::vector<int> order;
  std::atomic<int> worked = 0;
  worker->submit_calmly([&] { ++worked; }, [&] { order.push_back(1); });
  worker->submit_calmly([&] { ++worked; }, [&] { order.push_back(2); });
  auto turn = loop.env->timer([&] {
    if (worked < 2) return;
    if (order.size() == 2) loop.env->stop();
  });
  turn->start(kNsPerMs, kNsPerMs);
  loop.run();
  worker->submit_calmly([] {}, [&] { order.push_back(3); });
  worker->submit([] {},
                 [&] {
                   order.push_back(4);
                   loop.env->stop();
                 });
  turn->stop();
  loop.run();  // the last call wakes the loop for both
  BOOST_TEST(order == (std::vector<int>{1, 2, 3, 4}), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(workers_do_not_wait_for_one_another) {
  RealLoop loop;
  std::latch gate(1);
  auto hung = *loop.env->worker("hung");
  auto other = *loop.env->worker("other");
  hung->submit([&] { gate.wait(); });
  other->submit([] {}, [&] { loop.env->stop(); });
  loop.run();
  BOOST_TEST(hung->queued() == 1u);
  gate.count_down();
}

BOOST_AUTO_TEST_CASE(a_destroyed_worker_drops_its_queue_without_a_call) {
  RealLoop loop;
  std::latch gate(1);
  std::atomic<bool> second = false;
  bool reported = false;
  auto worker = *loop.env->worker("w");
  worker->submit(
      [&] {
        loop.env->post([&] { loop.env->stop(); });
        gate.wait();
      },
      [&] { reported = true; });
  // Dropping it releases the first task.
  std::shared_ptr<void> opens(nullptr, [&](void*) { gate.count_down(); });
  worker->submit([&second, opens = std::move(opens)] { second = true; });
  loop.run();
  worker.reset();  // waits for the first task
  loop.env->stop();
  loop.run();
  BOOST_TEST(!reported);
  BOOST_TEST(!second.load());
}

BOOST_AUTO_TEST_CASE(an_abandoned_worker_holds_no_one_up_and_outlives_the_env) {
  auto gate = std::make_shared<std::latch>(1), ended = std::make_shared<std::latch>(1);
  {
    RealLoop loop;
    auto worker = *loop.env->worker("hung");
    worker->submit(
        [gate, ended, env = loop.env.get()] {
          env->post([env] { env->stop(); });
          gate->wait();
          ended->count_down();
        },
        [] { BOOST_ERROR("a call from an abandoned worker"); });
    loop.run();
    worker->abandon();
  }
  gate->count_down();
  ended->wait();
}

// As at the unit's TasksMax: there is no room for another stack.
BOOST_AUTO_TEST_CASE(a_thread_that_cannot_be_made_is_an_error) {
  RealLoop loop;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  BOOST_TEST_MESSAGE("passed over: the sanitizer itself cannot live without address space");
  return;
#endif
  rlimit before{};
  BOOST_REQUIRE(::getrlimit(RLIMIT_AS, &before) == 0);
  const rlimit none{1 << 20, before.rlim_max};
  std::vector<std::unique_ptr<Worker>> workers;
  std::string reported;
  workers.reserve(64);
  BOOST_REQUIRE(::setrlimit(RLIMIT_AS, &none) == 0);
  for (int i = 0; i < 64 && reported.empty(); ++i) {  // stacks of ended threads are reused
    auto worker = loop.env->worker("one-more");
    if (worker)
      workers.push_back(std::move(*worker));
    else
      reported = worker.error().text;
  }
  BOOST_REQUIRE(::setrlimit(RLIMIT_AS, &before) == 0);
  BOOST_TEST(reported.starts_with("a thread for one-more: "), reported);
}

BOOST_AUTO_TEST_CASE(a_signal_calls_all_that_watch_it) {
  RealLoop loop;
  int first = 0, second = 0;
  const auto stop = [&] {
    if (first > 0 && second > 0) loop.env->stop();
  };
  auto one = loop.env->on_signal(SIGHUP, [&] { ++first, stop(); });
  auto two = loop.env->on_signal(SIGHUP, [&] { ++second, stop(); });
  BOOST_REQUIRE(one);
  BOOST_REQUIRE(two);
  BOOST_REQUIRE(!loop.env->on_signal(SIGKILL, [] {}));
  ::raise(SIGHUP);
  loop.run();
  BOOST_TEST(first == 1);
  BOOST_TEST(second == 1);
}

BOOST_AUTO_TEST_CASE(a_descriptor_is_polled_and_not_closed) {
  RealLoop loop;
  int ends[2];
  BOOST_REQUIRE_EQUAL(::pipe(ends), 0);
  char byte = 0;
  std::unique_ptr<Poll> poll;
  poll = std::move(*loop.env->poll(ends[0], [&] {
    BOOST_TEST(::read(ends[0], &byte, 1) == 1);
    poll.reset();
    loop.env->stop();
  }));
  BOOST_TEST(!loop.env->poll(ends[0], [] {}).has_value());  // one at a time
  BOOST_REQUIRE_EQUAL(::write(ends[1], "xy", 2), 2);
  loop.run();
  BOOST_TEST(byte == 'x');
  BOOST_TEST(::read(ends[0], &byte, 1) == 1);
  BOOST_TEST(byte == 'y');
  ::close(ends[0]), ::close(ends[1]);
}

BOOST_AUTO_TEST_CASE(what_cannot_be_polled_is_an_error) {
  RealLoop loop;
  Folder folder;
  FILE* file = ::fopen((folder / "f").c_str(), "w");
  BOOST_TEST(!loop.env->poll(::fileno(file), [] {}).has_value());
  ::fclose(file);
  BOOST_TEST(!loop.env->poll(-1, [] {}).has_value());
}

BOOST_AUTO_TEST_SUITE_END()
