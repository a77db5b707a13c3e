#include <thread>

#include "tail_fixture.h"

using namespace culprit;
using namespace culprit::ingest;
using namespace culprit::ingest::testing;

// Actions of an application on its files during the tailer's checks: each step comes right before one of the
// tailer's file system calls, starting at each of them in turn.
namespace {

class Script {
 public:
  using Steps = std::vector<std::function<void(TailFolderFixture&)>>;

  // The steps begin before call `begin`; one follows every `apart` calls.
  Script(const char* pattern, Steps steps, size_t begin, size_t apart)
      : f(pattern), steps_(std::move(steps)), begin_(begin), apart_(apart) {
    f.options.before_ask = [this] { ask(); };
    f.restart();
  }
  // False if there were fewer calls.
  bool play() {
    playing_ = true;
    for (int i = 0; i < 12; ++i) {
      f.changed = {f.folder};
      f.round(60 * kNsPerMs);
    }
    playing_ = false;
    const bool reached = next_ > 0;
    while (next_ < steps_.size()) steps_[next_++](f);
    f.settle();
    return reached;
  }

  TailFolderFixture f;

 private:
  void ask() {
    if (!playing_ || next_ == steps_.size() || asked_++ < begin_ + next_ * apart_) return;
    steps_[next_++](f);
  }

  Steps steps_;
  size_t begin_, apart_, asked_ = 0, next_ = 0;
  bool playing_ = false;
};

std::string line(int number) { return "generation " + std::to_string(number) + std::string(280, '.') + "\n"; }

// Created, written and renamed repeatedly: each of these is a step.
Script::Steps rotations(int count, bool by_date, std::string& written) {
  Script::Steps steps;
  for (int i = 1; i <= count; ++i) {
    steps.push_back([=](TailFolderFixture& f) {
      if (by_date) return f.rename("a.log", "a.log-20261121-" + std::to_string(100'000 + i));
      for (int n = i - 1; n > 0; --n)
        f.rename("a.log." + std::to_string(n), "a.log." + std::to_string(n + 1));
      f.rename("a.log", "a.log.1");
    });
    steps.push_back([](TailFolderFixture& f) { f.append("a.log", ""); });
    steps.push_back([=](TailFolderFixture& f) { f.append("a.log", line(i)); });
    written += line(i);
  }
  return steps;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(tailer_race)

BOOST_AUTO_TEST_CASE(renames_at_any_moment_of_a_round_lose_and_double_nothing) {
  size_t played = 0;
  for (const char* pattern : {"a.log", "a*"}) {
    for (const bool by_date : {true, false}) {
      for (const size_t apart : {1, 2, 3, 5, 8}) {
        for (size_t begin = 0;; ++begin) {
          std::string written = line(0);
          Script script(pattern, rotations(3, by_date, written), begin, apart);
          script.f.append("a.log", line(0));
          script.f.settle();
          const bool reached = script.play();
          BOOST_TEST_CONTEXT(pattern << (by_date ? ", dates" : ", numbers") << ", begins before question "
                                     << begin << ", one each " << apart) {
            BOOST_CHECK(script.f.evidence("a.log") == written);
            BOOST_CHECK_EQUAL(script.f.sources(), 1);
            BOOST_CHECK_EQUAL(script.f.gaps("a.log"), 0);
          }
          ++played;
          if (!reached || begin > 60) break;
        }
      }
    }
  }
  BOOST_CHECK_GE(played, 200);
}

// The same without a script: another thread renames about once a round. CULPRIT_REPEAT repeats it.
BOOST_AUTO_TEST_CASE(a_log_that_is_renamed_without_pause_while_it_is_read_comes_whole) {
  const char* const more = std::getenv("CULPRIT_REPEAT");
  const int repeat = more != nullptr ? std::atoi(more) : 1;
  for (int i = 0; i < 2 * repeat; ++i) {
    TailFolderFixture f(i % 2 == 0 ? "a.log" : "a*");
    f.append("a.log", line(0));
    f.settle();
    std::string written = line(0);
    std::atomic<int> rounds = 0;
    std::atomic<bool> over = false;
    std::thread writer([&] {
      for (int n = 1; n <= 200; ++n) {
        const int before = rounds;
        f.rename("a.log", "a.log-20261121-" + std::to_string(100'000 + n));
        f.append("a.log", line(n));
        written += line(n);
        while (n % 4 != 0 && rounds == before) std::this_thread::yield();
      }
      over = true;
    });
    while (!over) {
      f.changed = {f.folder};
      f.round(20 * kNsPerMs);
      ++rounds;
    }
    writer.join();
    f.settle();
    BOOST_CHECK(f.evidence("a.log") == written);
    BOOST_CHECK_EQUAL(f.sources(), 1);
    BOOST_CHECK_EQUAL(f.gaps("a.log"), 0);
  }
}

BOOST_AUTO_TEST_SUITE_END()
