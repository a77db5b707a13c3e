// NCCL's RAS in the network namespace of a process: the lines of an answer, and what is refused before
// anything is asked. tests/e2e has real namespaces.
#include "capture/pod_ras.h"

#include <unistd.h>

#include <boost/test/unit_test.hpp>

#include "base/text.h"

using namespace culprit;
using namespace culprit::capture;

namespace {

constexpr Target kPod = {17, 9000};

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> out;
  for (const std::string_view line : split(text, '\n'))
    if (!line.empty()) out.emplace_back(line);
  return out;
}

PodRas answered(std::string text) {
  PodRas out;
  out.uid = 1000;
  out.addresses = {"127.0.0.1", "10.42.0.7"};
  out.text = std::move(text);
  return out;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(pod_ras)

BOOST_AUTO_TEST_CASE(an_answer_of_any_length_is_the_same_behind_its_lines) {
  std::string mixed;
  while (mixed.size() < 100'000) mixed += "{\"rank\": 7}\n\u00e4\u20ac";
  for (const std::string& text : {std::string("x"), mixed, std::string(50'000, '\x01')}) {
    const auto lines = lines_of(ras_lines(kPod, answered(text)));
    for (const std::string& line : lines) BOOST_TEST(line.size() <= kAnswerBytes);
    const auto read = read_ras_lines(kPod.pid, lines);
    BOOST_REQUIRE_MESSAGE(read, (read ? "" : read.error().text));
    BOOST_TEST((*read == answered(text)));
  }
}

BOOST_AUTO_TEST_CASE(an_answer_with_a_lost_line_is_refused) {
  const auto all = lines_of(ras_lines(kPod, answered(std::string(30'000, 'x'))));
  BOOST_REQUIRE(all.size() == 5u);
  for (size_t lost = 0; lost < all.size(); ++lost) {
    auto lines = all;
    lines.erase(lines.begin() + static_cast<std::ptrdiff_t>(lost));
    BOOST_TEST(!read_ras_lines(kPod.pid, lines));
  }
  BOOST_TEST(!read_ras_lines(kPod.pid + 1, all));
  BOOST_TEST(!read_ras_lines(kPod.pid, {"", "[]", "{", R"({"kind":"ras","pid":17})"}));
}

BOOST_AUTO_TEST_CASE(why_there_is_no_answer_is_told) {
  for (const ErrorCode code : {ErrorCode::kDenied, ErrorCode::kNotFound, ErrorCode::kIo}) {
    const auto read = read_ras_lines(kPod.pid, lines_of(ras_lines(kPod, fail(code, "no \"way\"\n in"))));
    BOOST_REQUIRE(!read);
    BOOST_TEST((read.error().code == code));
    BOOST_TEST(read.error().text.starts_with("no \"way\""));
  }
}

BOOST_AUTO_TEST_CASE(a_process_without_a_namespace_of_its_own_is_not_asked) {
  const auto own = ask_pod_ras({static_cast<uint32_t>(::getpid()), 0}, 28'028, kNsPerSecond);
  BOOST_REQUIRE(!own);
  BOOST_TEST((own.error().code == ErrorCode::kInvalid));
}

BOOST_AUTO_TEST_CASE(a_later_process_with_the_number_is_not_asked) {
  const auto later = ask_pod_ras({static_cast<uint32_t>(::getpid()), 1}, 28'028, kNsPerSecond);
  BOOST_REQUIRE(!later);
  BOOST_TEST((later.error().code == ErrorCode::kNotFound));
}

BOOST_AUTO_TEST_SUITE_END()
