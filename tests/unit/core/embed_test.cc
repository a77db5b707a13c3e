#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <cstring>
#include <string>

#include "culprit/embed.h"

namespace {
const std::string kLog =
    "[rank0]: step 1 ok\n[rank0]: step 2 ok\n"
    "node-3: kernel: NVRM: Xid (PCI:0000:9b:00): 79, pid=1, GPU has fallen off the bus.\n";

std::string report_of(culprit_job* job) {
  char* text = culprit_report(job);
  std::string out = text;
  culprit_free(text);
  return out;
}
}  // namespace

BOOST_AUTO_TEST_CASE(lines_may_arrive_cut_anywhere) {
  std::string whole, pieces;
  for (const size_t size : {kLog.size(), size_t{1}}) {
    culprit_job* job = culprit_create(nullptr, nullptr, 0);
    const culprit_source info{sizeof info, "in", nullptr, -1, -1};
    const int source = culprit_open(job, &info);
    for (size_t at = 0; at < kLog.size(); at += size)
      BOOST_TEST(culprit_feed(job, source, kLog.data() + at, std::min(size, kLog.size() - at)) == 0);
    BOOST_TEST(culprit_close(job, source) == 0);
    (size == 1 ? pieces : whole) = report_of(job);
    culprit_destroy(job);
  }
  BOOST_TEST(whole == pieces);
  BOOST_TEST(whole.find("\"lines\":3") != std::string::npos);
}

namespace {

// Ranks that print steps; one fails with a chain of tracebacks and a launcher's list. One line is longer than
// a feed.
std::string failing_job() {
  std::string text;
  const auto line = [&](int second, const std::string& what) {
    text += "2026-11-21 02:" + std::to_string(10 + second / 60) + ":" + std::to_string(10 + second % 50) +
            " node-" + std::to_string(second % 3) + ": " + what + "\n";
  };
  for (int s = 0; s < 600; ++s) line(s, "step " + std::to_string(s) + " loss 2.1");
  text += "dumped tensor " + std::string(300'000, 'y') + "\n";
  text +=
      "Traceback (most recent call last):\n"
      "  File \"train.py\", line 7, in main\n"
      "    run()\n"
      "  File \"train.py\", line 9, in run\n"
      "    step()\n"
      "KeyError: 'hidden_size'\n"
      "\n"
      "During handling of the above exception, another exception occurred:\n"
      "\n"
      "Traceback (most recent call last):\n"
      "  File \"train.py\", line 12, in step\n"
      "RuntimeError: no such layer\n"
      "Root Cause (first observed failure):\n"
      "[0]:\n"
      "  time      : 2026-11-21_02:30:09\n"
      "  host      : node-1\n"
      "  rank      : 3 (local_rank: 3)\n"
      "  exitcode  : 1 (pid: 4711)\n"
      "============================================================\n";
  return text;
}

template <class Size>
std::string fed(const std::string& text, Size size_at) {
  culprit_job* job = culprit_create(nullptr, nullptr, 0);
  const culprit_source info{sizeof info, "in", nullptr, -1, -1};
  const int source = culprit_open(job, &info);
  for (size_t at = 0; at < text.size();) {
    const size_t size = std::min(size_at(at), text.size() - at);
    culprit_feed(job, source, text.data() + at, size);
    at += size;
  }
  culprit_close(job, source);
  std::string out = report_of(job);
  culprit_destroy(job);
  return out;
}

}  // namespace

BOOST_AUTO_TEST_CASE(the_report_is_the_same_however_much_is_fed_at_a_time) {
  const std::string text = failing_job();
  const std::string whole = fed(text, [&](size_t) { return text.size(); });
  BOOST_TEST(whole.find("KeyError") != std::string::npos);
  BOOST_TEST(whole.find("1 lines are longer than") != std::string::npos);
  for (const size_t size : {size_t{1}, size_t{333}, size_t{64} << 10})
    BOOST_TEST((fed(text, [&](size_t) { return size; }) == whole));
  for (const size_t lines : {1, 2, 3, 7}) {
    const auto some_lines = [&](size_t at) {
      size_t end = at;
      for (size_t i = 0; i < lines && end < text.size(); ++i) end = text.find('\n', end) + 1;
      return end - at;
    };
    BOOST_TEST((fed(text, some_lines) == whole));
  }
}

BOOST_AUTO_TEST_CASE(a_finding_is_polled_once_with_its_host_and_line) {
  culprit_job* job = culprit_create(nullptr, nullptr, 0);
  const culprit_source info{sizeof info, "in", nullptr, -1, -1};
  const int source = culprit_open(job, &info);
  culprit_feed(job, source, kLog.data(), kLog.size());
  culprit_finding finding{};
  finding.size = sizeof finding;
  BOOST_REQUIRE(culprit_poll(job, &finding) == 1);
  BOOST_TEST(std::string(finding.host) == "node-3");
  BOOST_TEST(finding.line == 3u);
  BOOST_TEST(culprit_poll(job, &finding) == 0);
  culprit_destroy(job);
}

BOOST_AUTO_TEST_CASE(what_is_wrong_is_reported_in_a_sentence) {
  char error[200] = "";
  const culprit_options bad{sizeof bad, "[job\n", nullptr, 0, 0, nullptr};
  BOOST_TEST(culprit_create(&bad, error, sizeof error) == nullptr);
  BOOST_TEST(std::strlen(error) > 0u);
  culprit_job* job = culprit_create(nullptr, nullptr, 0);
  BOOST_TEST(culprit_feed(job, 7, "x", 1) == -1);
  BOOST_TEST(std::string(culprit_error(job)) == "source 7: is not open");
  culprit_destroy(job);
}

BOOST_AUTO_TEST_CASE(a_host_pattern_of_job_toml_places_sources_by_their_names) {
  const culprit_options options{sizeof options, "[job]\nhost_pattern = 'on_(?P<host>\\w+)_'\n", nullptr, 0, 0,
                                nullptr};
  culprit_job* job = culprit_create(&options, nullptr, 0);
  BOOST_REQUIRE(job != nullptr);
  const culprit_source info{sizeof info, "log_on_alpha_x", nullptr, -1, -1};
  const int source = culprit_open(job, &info);
  culprit_feed(job, source, kLog.data(), kLog.size());
  culprit_finding finding{};
  finding.size = sizeof finding;
  BOOST_REQUIRE(culprit_poll(job, &finding) == 1);
  BOOST_TEST(std::string(finding.host) == "alpha");
  culprit_destroy(job);
  char error[200] = "";
  const culprit_options bad{sizeof bad, "[job]\nhost_pattern = '(?P<host>'\n", nullptr, 0, 0, nullptr};
  BOOST_TEST(culprit_create(&bad, error, sizeof error) == nullptr);
  BOOST_TEST(std::strlen(error) > 0u);
}

BOOST_AUTO_TEST_CASE(a_rank_or_device_that_is_none_is_refused) {
  culprit_job* job = culprit_create(nullptr, nullptr, 0);
  for (const int64_t value : {int64_t{-2}, int64_t{0xffffffff}, int64_t{1} << 40}) {
    const culprit_source rank{sizeof rank, "in", nullptr, value, -1};
    BOOST_TEST(culprit_open(job, &rank) == -1);
    BOOST_TEST(std::string(culprit_error(job)) ==
               "rank " + std::to_string(value) + ": is no number of a process");
    const culprit_source local{sizeof local, "in", nullptr, -1, value};
    BOOST_TEST(culprit_open(job, &local) == -1);
  }
  culprit_destroy(job);
}
