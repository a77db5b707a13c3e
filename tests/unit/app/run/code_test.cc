#include "app/run/code.h"

#include <sys/stat.h>
#include <unistd.h>

#include <boost/test/unit_test.hpp>
#include <filesystem>
#include <fstream>

namespace culprit::app {
namespace {

using recover::Progress;

std::vector<Attempt> ran(const std::vector<std::pair<std::string, Progress>>& revisions) {
  std::vector<Attempt> out;
  for (const auto& [revision, progress] : revisions) {
    Attempt& a = out.emplace_back();
    a.revision = revision;
    a.failure.progress = progress;
  }
  return out;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(code)

BOOST_AUTO_TEST_CASE(a_revision_that_ran_before_is_not_pending) {
  const CodeFile file{"a", "", "b", 0};
  BOOST_TEST(code_choice(ran({{"a", Progress::kNone}}), file).pending == "b");
  BOOST_TEST(code_choice(ran({{"a", Progress::kNone}, {"b", Progress::kNone}}), file).pending == "");
  BOOST_TEST(code_choice(ran({{"a", Progress::kNone}, {"b", Progress::kNone}, {"a", Progress::kNone}}), file)
                 .pending == "");
}

BOOST_AUTO_TEST_CASE(a_revision_is_untried_until_an_attempt_advanced_and_failed_later) {
  const CodeFile file{"a", "z", "", 0};
  BOOST_TEST(code_choice(ran({{"a", Progress::kMade}}), file).before == "");
  BOOST_TEST(code_choice(ran({{"a", Progress::kMade}, {"b", Progress::kMade}}), file).before == "a");
  BOOST_TEST(code_choice(ran({{"a", Progress::kMade}, {"b", Progress::kNone}, {"b", Progress::kNone}}), file)
                 .before == "a");
  BOOST_TEST(code_choice(ran({{"a", Progress::kMade}, {"b", Progress::kMade}, {"b", Progress::kNone}}), file)
                 .before == "");
  // What ran before is not known: the last good one.
  BOOST_TEST(code_choice(ran({{"", Progress::kMade}, {"b", Progress::kNone}}), file).before == "z");
  // It went back, and the old one fails too.
  BOOST_TEST(code_choice(ran({{"a", Progress::kNone}, {"b", Progress::kNone}, {"a", Progress::kNone}}), file)
                 .before == "b");
}

BOOST_AUTO_TEST_CASE(a_pending_revision_is_due_after_its_time_from_the_last_edit) {
  const CodeFile file{"a", "", "b", 100};
  BOOST_TEST(pending_due(ran({{"a", Progress::kNone}}), file, 50) == 150);
  BOOST_TEST(pending_due(ran({{"b", Progress::kNone}}), file, 50) == kNoTime);
  BOOST_TEST(pending_due({}, {"a", "", "", 100}, 50) == kNoTime);
}

BOOST_AUTO_TEST_CASE(a_file_that_is_no_job_file_or_names_an_option_is_refused) {
  char name[] = "/tmp/culprit-unit-code.XXXXXX";
  const std::string folder = ::mkdtemp(name), path = folder + "/job.toml";
  const auto with = [&](const std::string& text) {
    std::ofstream(path) << text;
    return read_code(path);
  };
  BOOST_TEST(with("[code]\nrevision = \"v1.2/x@3\"\npending = \"9e1f\"\n").value().pending == "9e1f");
  BOOST_TEST(with("[job]\nid = \"x\"\n").value().revision.empty());
  for (const char* text : {"[code]\npending = \"--exec=x\"", "[code]\npending = \"a b\"",
                           "[code]\npending = \"a;b\"", "[code]\npending = 7", "[code"})
    BOOST_TEST(!with(text).has_value(), text);
  BOOST_TEST(!read_code(folder + "/none").has_value());
  const std::string pipe = folder + "/pipe";
  BOOST_TEST(::mkfifo(pipe.c_str(), 0600) == 0);
  BOOST_TEST(!read_code(pipe).has_value());
  std::filesystem::remove_all(folder);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace culprit::app
