#include "ingest/live/tailer.h"

#include <random>

#include "tail_fixture.h"

using namespace culprit;
using namespace culprit::ingest;
using namespace culprit::ingest::testing;
using namespace std::string_literals;

BOOST_AUTO_TEST_SUITE(tailer)

namespace {

using Fixture = TailFolderFixture;

// Lines that never come twice, so that a doubled or a missing one shows.
std::string lines(const std::string& mark, int n = 20) {
  std::string all;
  for (int i = 0; i < n; ++i) all += mark + " line " + std::to_string(i) + " of some text that a log has\n";
  return all;
}

// What happens to a log while the tailer runs or stands still. Afterwards the evidence is `expected`.
struct Case {
  std::string name;
  std::function<void(Fixture&)> before;  // then the tailer reads all
  std::function<void(Fixture&)> then;
  std::string expected;
  size_t gaps_max = 0;
};

const std::string a = lines("a"), b = lines("b"), c = lines("c"), d = lines("d");

std::vector<Case> cases() {
  const auto first = [](Fixture& f) { f.append("x.log", a); };
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
      {"rotated twice by date", first,
       [](Fixture& f) {
         f.append("x.log", b);
         f.rename("x.log", "x-2026-11-20.log");
         f.append("x.log", c);
         f.rename("x.log", "x-2026-11-21.log");
         f.append("x.log", d);
       },
       a + b + c + d},
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
    // Nothing is taken twice afterwards either.
    f.restart();
    f.settle();
    BOOST_CHECK_EQUAL(f.evidence("x.log"), one.expected);
    BOOST_CHECK_EQUAL(f.sources(), 1);
  }
}

}  // namespace

BOOST_AUTO_TEST_CASE(every_byte_comes_once_whatever_becomes_of_the_file) {
  for (const Case& one : cases())
    for (const char* pattern : {"x.log", "*.log", "x*"})
      for (const bool stopped : {false, true}) check_case(one, pattern, stopped);
}

BOOST_AUTO_TEST_SUITE_END()
