// Lines around the evidence, read from the files again: the right lines, joined windows, bounds.
#include "app/offline/source_lines.h"

#include <fmt/format.h>

#include <boost/test/unit_test.hpp>
#include <filesystem>
#include <fstream>

using namespace culprit;
using namespace culprit::app;

namespace {

struct Folder {
  std::filesystem::path path =
      std::filesystem::temp_directory_path() / fmt::format("culprit-lines-{}", ::getpid());
  Folder() { std::filesystem::create_directories(path); }
  ~Folder() { std::filesystem::remove_all(path); }
  std::string file(const std::string& name, const std::string& text) const {
    std::ofstream(path / name, std::ios::binary) << text;
    return path / name;
  }
};

std::string numbered(int n) {
  std::string out;
  for (int i = 1; i <= n; ++i) out += fmt::format("line {}\n", i);
  return out;
}

const ReadProgress kProgress;

}  // namespace

BOOST_AUTO_TEST_SUITE(source_lines)

BOOST_FIXTURE_TEST_CASE(windows_have_the_lines_around_and_touching_ones_are_joined, Folder) {
  const std::string a = file("a.log", numbered(100'000)), b = file("b.log", numbered(3));
  const WindowsRead read = read_windows(
      windows_around({{"n1", b, 2}, {{}, a, 50'008}, {{}, a, 50'000}, {{}, a, 50'000}, {{}, a, 99'999}}),
      kProgress);
  BOOST_REQUIRE(read.windows.size() == 3u);
  BOOST_TEST(read.left_out == 0u);
  BOOST_TEST(read.windows[0].first == 49'995u);
  BOOST_TEST(read.windows[0].here == (std::vector<uint64_t>{50'000, 50'008}),
             boost::test_tools::per_element());
  BOOST_TEST(read.windows[0].lines.size() == 19u);
  BOOST_TEST(read.windows[0].lines[5] == "line 50000");
  BOOST_TEST(read.windows[1].lines.back() == "line 100000");
  BOOST_TEST(read.windows[2].lines == (std::vector<std::string>{"line 1", "line 2", "line 3"}),
             boost::test_tools::per_element());
}

BOOST_FIXTURE_TEST_CASE(long_lines_are_cut_and_the_rest_is_counted, Folder) {
  const std::string a = file("a.log", std::string(5000, 'x') + "\nshort\n");
  const WindowsRead read = read_windows(windows_around({{{}, a, 2}}), kProgress);
  BOOST_REQUIRE(read.windows.size() == 1u);
  BOOST_TEST(read.windows[0].lines[0].size() == kContextLineBytes);
  BOOST_TEST(read.windows[0].cut[0] == 5000 - kContextLineBytes);
  BOOST_TEST(read.windows[0].cut[1] == 0u);
}

BOOST_FIXTURE_TEST_CASE(what_is_out_of_reach_is_left_out_and_counted, Folder) {
  const std::string a = file("a.log", numbered(2'000'000)), b = file("b.log", numbered(10));
  const std::vector<LinePlace> places{
      {{}, a, 5}, {{}, a, 1'999'990}, {{}, b, 5}, {{}, b, 500}, {{}, (path / "none.log"), 1}};
  const WindowsRead few = read_windows(windows_around(places), kProgress, 1 << 20);
  BOOST_TEST(few.windows.size() == 1u);
  BOOST_TEST(few.left_out == 4u);
  const WindowsRead all = read_windows(windows_around(places), kProgress);
  BOOST_TEST(all.windows.size() == 3u);
  BOOST_TEST(all.left_out == 2u);
}

BOOST_AUTO_TEST_CASE(the_verdict_shows_more_lines_than_the_others) {
  Report r;
  r.diagnoses.resize(3);
  for (Diagnosis& d : r.diagnoses)
    for (uint64_t line = 1; line <= 30; ++line)
      d.evidence.push_back({"n1", "a.log", line * 100, {}, "x", kNoTime, {}, {}});
  r.verdict = 1;
  BOOST_TEST(places_shown(r).size() == 20u + 2 * 3);
  r.diagnoses[1].evidence.clear();
  r.diagnoses[0].evidence[0].line.reset();
  BOOST_TEST(places_shown(r).size() == 6u);
}

BOOST_AUTO_TEST_SUITE_END()
