// One check of a host with programs of the test's own: what each answers, and that none holds the caller up.
#include "app/check/host_check.h"

#include <sys/stat.h>

#include <boost/test/unit_test.hpp>
#include <filesystem>
#include <fstream>

#include "../../check/folder.h"
#include "base/clock.h"

using namespace culprit;
using namespace culprit::app;
using check::Answer;

namespace {

struct Programs {
  check::testing::Folder folder;
  std::string script(const std::string& name, const std::string& text) const {
    const std::string path = (folder.path / name).string();
    std::ofstream(path) << "#!/bin/sh\n" << text << "\n";
    ::chmod(path.c_str(), 0755);
    return path;
  }
  HostCheckOptions options(const std::string& program) const {
    HostCheckOptions out;
    out.program = script("program", program);
    out.folder = folder.path.string();
    out.memory = out.disk = 1;
    out.within_ns = 60 * kNsPerSecond;
    return out;
  }
};

constexpr const char* kSound = R"(echo '{"part":"memory","answer":"passed","text":"fine","took_s":0.1}')";

}  // namespace

BOOST_AUTO_TEST_SUITE(check_of_a_host)

BOOST_AUTO_TEST_CASE(commands_answer_by_their_status) {
  const struct {
    const char* text;
    Answer answer;
    const char* why;
  } rows[] = {{"exit 0", Answer::kPassed, "passed: memory, diag"},
              {"echo GPU 3 fails; exit 1", Answer::kFailed, "diag: exited with status 1: GPU 3 fails"},
              {"echo no engine >&2; exit 75", Answer::kNoAnswer, "diag: no engine"},
              {"exit 127", Answer::kNoAnswer, "diag: exited with status 127"},
              {"kill -9 $$", Answer::kNoAnswer, "diag: ended by signal 9"}};
  for (const auto& row : rows) {
    const Programs programs;
    HostCheckOptions options = programs.options(kSound);
    options.commands = {programs.script("diag", row.text) + "  -r 1 "};
    const HostCheck done = check_host(options);
    BOOST_TEST((done.outcome.answer == row.answer), row.text);
    BOOST_TEST(done.outcome.why == row.why);
  }
}

BOOST_AUTO_TEST_CASE(a_missing_program_or_command_has_no_answer) {
  const Programs programs;
  HostCheckOptions options = programs.options(kSound);
  options.commands = {"/nowhere/dcgmi diag"};
  BOOST_TEST((check_host(options).outcome.answer == Answer::kNoAnswer));
  options.commands.clear();
  options.program = "/nowhere/culprit-node-check";
  BOOST_TEST((check_host(options).outcome.answer == Answer::kNoAnswer));
}

BOOST_AUTO_TEST_CASE(accelerators_without_a_command_have_no_answer) {
  const Programs programs;
  HostCheckOptions options = programs.options(kSound);
  options.accelerators = [] { return size_t{8}; };
  const HostCheck done = check_host(options);
  BOOST_TEST((done.outcome.answer == Answer::kNoAnswer));
  BOOST_TEST(done.outcome.why.starts_with("accelerators: 8 accelerators here"), done.outcome.why);
}

BOOST_AUTO_TEST_CASE(a_failed_part_leaves_out_the_commands) {
  const Programs programs;
  HostCheckOptions options =
      programs.options(R"(echo '{"part":"memory","answer":"failed","text":"wrong"}'; echo noise)");
  options.commands = {programs.script("diag", "touch " + (programs.folder.path / "ran").string())};
  const HostCheck done = check_host(options);
  BOOST_TEST((done.outcome.answer == Answer::kFailed));
  BOOST_TEST(done.outcome.why == "memory: wrong");
  BOOST_TEST(!std::filesystem::exists(programs.folder.path / "ran"));
}

// The parts before the one that hangs are known.
BOOST_AUTO_TEST_CASE(a_part_that_hangs_has_no_answer_within_the_time) {
  const Programs programs;
  HostCheckOptions options = programs.options(std::string(kSound) + "; exec sleep 1000");
  options.within_ns = 100 * kNsPerMs;
  const TimeNs began = steady_now();
  const HostCheck done = check_host(options);
  BOOST_TEST(steady_now() - began < 30 * kNsPerSecond);
  BOOST_REQUIRE(done.parts.size() == 2u);
  BOOST_TEST((done.parts[0].answer == Answer::kPassed));
  BOOST_TEST((done.parts[1].name == "disk" && done.parts[1].answer == Answer::kNoAnswer));
  std::atomic<bool> stop = true;
  options.within_ns = 3600 * kNsPerSecond;
  options.stop = &stop;
  BOOST_TEST((check_host(options).outcome.answer == Answer::kNoAnswer));
}

BOOST_AUTO_TEST_CASE(a_job_of_another_user_is_in_the_way) {
  const auto view_of = [](std::string job, uint32_t uid, bool cut = false) {
    ProcessView view;
    view.processes[7].job = std::move(job);
    view.processes[7].uid = uid;
    view.cut = cut;
    return view;
  };
  BOOST_TEST((job_in_the_way(view_of("4711", 1000), 990) == "job 4711 has processes here"));
  BOOST_TEST(!job_in_the_way(view_of("4711", 1000), 1000).has_value());
  BOOST_TEST(!job_in_the_way(view_of("docker-1", 0), 990).has_value());
  BOOST_TEST(!job_in_the_way(view_of("", 1000), 990).has_value());
  BOOST_TEST(job_in_the_way(view_of("", 1000, true), 990).has_value());
}

BOOST_AUTO_TEST_SUITE_END()
