#include "ingest/live/tailer.h"

#include <random>

#include "tail_fixture.h"

using namespace culprit;
using namespace culprit::ingest;
using namespace culprit::ingest::testing;
using namespace std::string_literals;

namespace {

using Fixture = TailFolderFixture;

// Unique lines, so that a doubled or a missing one is detected.
std::string lines(const std::string& mark, int n = 20) {
  std::string all;
  for (int i = 0; i < n; ++i) all += mark + " line " + std::to_string(i) + " of some text that a log has\n";
  return all;
}

// Events of a log while the tailer runs or is stopped. Afterwards the evidence is `expected`.
struct Case {
  std::string name;
  std::function<void(Fixture&)> before;  // then the tailer reads everything
  std::function<void(Fixture&)> then;
  std::string expected;
  size_t gaps_max = 0;
};

const std::string a = lines("a"), b = lines("b"), c = lines("c"), d = lines("d");

void first(Fixture& f) { f.append("x.log", a); }

// One more each second: not within one step of the file system's clock.
void rotate_upwards(Fixture& f, int number) {
  const std::string name = f.at("x.log." + std::to_string(number));
  f.rename("x.log", "x.log." + std::to_string(number));
  const auto now = std::filesystem::last_write_time(name);
  std::filesystem::last_write_time(name, now + std::chrono::seconds(number));
}

std::vector<Case> renames() {
  return {
      {"grows", first, [](Fixture& f) { f.append("x.log", b); }, a + b},
      {"renamed and created", first,
       [](Fixture& f) {
         f.append("x.log", b);
         f.rename("x.log", "x.log.1");
         f.append("x.log", c);
       },
       a + b + c},
      {"renamed, and created later", first,
       [](Fixture& f) {
         f.append("x.log", b);
         f.rename("x.log", "x.log.1");
       },
       a + b},
      {"renamed to a date", first,
       [](Fixture& f) {
         f.append("x.log", b);
         f.rename("x.log", "x.log-20261121");
         f.append("x.log", c);
       },
       a + b + c},
      {"rotated three times", first,
       [](Fixture& f) {
         f.append("x.log", b);
         f.rename("x.log", "x.log.1");
         f.append("x.log", c);
         f.rename("x.log.1", "x.log.2");
         f.rename("x.log", "x.log.1");
         f.append("x.log", d);
         f.rename("x.log.2", "x.log.3");
         f.rename("x.log.1", "x.log.2");
         f.rename("x.log", "x.log.1");
         f.append("x.log", "end\n");
       },
       a + b + c + d + "end\n"},
      {"rotated three times, counted upwards", first,
       [](Fixture& f) {
         f.append("x.log", b);
         rotate_upwards(f, 1);
         f.append("x.log", c);
         rotate_upwards(f, 2);
         f.append("x.log", d);
         rotate_upwards(f, 3);
         f.append("x.log", "end\n");
       },
       a + b + c + d + "end\n"},
      {"rotated twice by date", first,
       [](Fixture& f) {
         f.append("x.log", b);
         f.rename("x.log", "x-2026-11-20.log");
         f.append("x.log", c);
         f.rename("x.log", "x-2026-11-21.log");
         f.append("x.log", d);
       },
       a + b + c + d},
  };
}

std::vector<Case> rewrites() {
  return {
      {"copied and truncated", first,
       [](Fixture& f) {
         f.append("x.log", b);
         f.copy("x.log", "x.log.1");
         f.truncate("x.log");
         f.append("x.log", c);
       },
       a + b + c, 1},
      {"copied and truncated, and longer than before", first,
       [](Fixture& f) {
         f.append("x.log", b);
         f.copy("x.log", "x.log.1");
         f.truncate("x.log");
         f.append("x.log", c + d + d);
       },
       a + b + c + d + d, 1},
      {"truncated", first,
       [](Fixture& f) {
         f.truncate("x.log");
         f.append("x.log", "b\n");
       },
       a + "b\n", 1},
      {"truncated and rewritten to the same size", first,
       [](Fixture& f) {
         f.truncate("x.log");
         f.append("x.log", std::string(a.size(), 'z'));
       },
       a + std::string(a.size(), 'z'), 1},
      {"removed and created", first,
       [](Fixture& f) {
         f.remove("x.log");
         f.append("x.log", b);
       },
       a + b, 1},
      {"linked and unlinked", first,
       [](Fixture& f) {
         f.append("x.log", b);
         std::filesystem::create_hard_link(f.at("x.log"), f.at("x.log.1"));
         f.remove("x.log");
         f.append("x.log", c);
       },
       a + b + c},
      {"a line without its end", [](Fixture& f) { f.append("x.log", "half of"); },
       [](Fixture& f) { f.append("x.log", " a line\n"); }, "half of a line\n"},
      {"emptied and empty", first, [](Fixture& f) { f.truncate("x.log"); }, a, 1},
  };
}

void check_case(const Case& one, const std::string& pattern, bool stopped) {
  BOOST_TEST_CONTEXT(one.name << ", " << pattern << (stopped ? ", stopped" : ", running")) {
    Fixture f(pattern);
    one.before(f);
    f.settle();
    if (stopped) f.tailer.reset();
    one.then(f);
    if (stopped) f.restart();
    f.settle();
    BOOST_CHECK_EQUAL(f.evidence("x.log"), one.expected);
    BOOST_CHECK_EQUAL(f.sources(), 1);
    BOOST_CHECK_LE(f.gaps("x.log"), one.gaps_max);
    // No byte is read twice afterwards either.
    f.restart();
    f.settle();
    BOOST_CHECK_EQUAL(f.evidence("x.log"), one.expected);
    BOOST_CHECK_EQUAL(f.sources(), 1);
  }
}

}  // namespace

BOOST_AUTO_TEST_SUITE(tailer)

BOOST_AUTO_TEST_CASE(every_byte_comes_once_whatever_becomes_of_the_file) {
  for (const auto& list : {renames(), rewrites()})
    for (const Case& one : list)
      for (const char* pattern : {"x.log", "*.log", "x*"})
        for (const bool stopped : {false, true}) check_case(one, pattern, stopped);
}

namespace {

BOOST_AUTO_TEST_CASE(parts_that_are_remembered_no_more_are_not_taken_again) {
  Fixture f("*.log");
  std::string expected;
  for (int i = 1; i <= static_cast<int>(kPastPlaces) + 8; ++i) {
    const std::string more = lines("part " + std::to_string(i), 3);
    expected += more;
    f.append("x.log", more);
    f.settle();
    rotate_upwards(f, i);
  }
  f.restart();
  f.append("x.log", "end\n");
  f.settle();
  BOOST_CHECK_EQUAL(f.evidence("x.log"), expected + "end\n");
}

enum class Rotation { kNumbers, kDates, kCopies };

// A log that is written, rotated and compressed at random, and a tailer that runs, falls behind, is killed
// and restarts. No part of the log is removed, so no byte may be missing.
class RandomLife {
 public:
  RandomLife(unsigned seed, Rotation rotation, const std::string& pattern)
      : random_(seed), rotation_(rotation), f_(pattern) {}

  void play(int steps) {
    // A part that was rotated before the first check may be no part of it.
    while (!started_) write();
    f_.round();
    for (int i = 0; i < steps; ++i) {
      step();
      BOOST_REQUIRE_MESSAGE(written_.starts_with(f_.evidence("x.log")), "wrong after step " << i);
    }
    f_.settle();
    BOOST_CHECK_EQUAL(f_.sources(), 1);
    BOOST_REQUIRE(f_.evidence("x.log") == written_);
    f_.restart();
    f_.settle();
    BOOST_REQUIRE(f_.evidence("x.log") == written_);
    BOOST_CHECK_EQUAL(f_.gap_bytes("x.log"), 0);
    if (rotation_ != Rotation::kCopies) BOOST_CHECK_EQUAL(f_.gaps("x.log"), 0);
  }

 private:
  size_t below(size_t n) { return random_() % n; }

  void step() {
    switch (below(10)) {
      case 0:
        return rotate();
      case 1:
        return compress();
      case 2:
        f_.restart();
        return;
      case 3:
        f_.round(300 * kNsPerMs, false);
        f_.restart();
        return;
      case 4:
        f_.round(kNsPerSecond, true, 1 + below(300));
        return;
      case 5:
        f_.round(static_cast<TimeNs>(below(3000)) * kNsPerMs);
        return;
      default:
        return write();
    }
  }
  void write() {
    std::string text;
    for (size_t n = below(30); n > 0; --n) text += "line " + std::to_string(line_++) + " of this log\n";
    if (below(20) == 0) text += std::string(below(200'000), 'x');
    f_.append("x.log", text);
    written_ += text;
    started_ = started_ || !text.empty();
  }
  // The oldest has the largest number.
  void shift() {
    for (size_t n = parts_.size(); n > 0; --n) {
      const std::string& ending = parts_[n - 1];
      f_.rename("x.log." + std::to_string(n) + ending, "x.log." + std::to_string(n + 1) + ending);
    }
    parts_.insert(parts_.begin(), "");
  }
  void rotate() {
    if (!started_ || !std::filesystem::exists(f_.at("x.log"))) return;
    if (rotation_ == Rotation::kDates) {
      const std::string name = "x.log-20261121-" + std::to_string(100'000 + dates_.size());
      f_.rename("x.log", name);
      dates_.push_back(name);
    } else {
      // A copy of a log that the tailer does not know yet is a log of its own.
      if (rotation_ == Rotation::kCopies && f_.sources() == 0) return;
      shift();
      if (rotation_ == Rotation::kNumbers) f_.rename("x.log", "x.log.1");
      if (rotation_ == Rotation::kCopies) {
        f_.copy("x.log", "x.log.1");
        f_.truncate("x.log");
      }
    }
    if (below(3) == 0) f_.round(100 * kNsPerMs);
    if (rotation_ != Rotation::kCopies && below(2) == 0) f_.append("x.log", "");
  }
  void compress() {
    const std::string with[] = {"gzip", "zstd -q --rm", "xz"};
    const std::string endings[] = {".gz", ".zst", ".xz"};
    const size_t how = below(3);
    if (rotation_ == Rotation::kDates) {
      if (dates_.empty()) return;
      std::string& name = dates_[below(dates_.size())];
      if (!name.ends_with("z") && !name.ends_with("t")) f_.compress(name, with[how]), name += endings[how];
    } else if (!parts_.empty()) {
      const size_t n = below(parts_.size());
      if (!parts_[n].empty()) return;
      f_.compress("x.log." + std::to_string(n + 1), with[how]);
      parts_[n] = endings[how];
    }
  }

  std::mt19937 random_;
  Rotation rotation_;
  Fixture f_;
  std::string written_;
  uint64_t line_ = 0;
  bool started_ = false;
  std::vector<std::string> parts_, dates_;
};

}  // namespace

BOOST_AUTO_TEST_CASE(random_lives_lose_and_double_nothing) {
  for (const Rotation rotation : {Rotation::kNumbers, Rotation::kDates, Rotation::kCopies})
    for (const char* pattern : {"x.log", "x*"})
      for (unsigned seed = 1; seed <= 20; ++seed)
        BOOST_TEST_CONTEXT("rotation " << static_cast<int>(rotation) << ", " << pattern << ", seed " << seed)
  RandomLife(seed, rotation, pattern).play(150);
}

BOOST_AUTO_TEST_SUITE_END()
