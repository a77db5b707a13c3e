// One run of a program with its limits.
#include "io/program.h"

#include <boost/test/unit_test.hpp>

using namespace culprit;
using io::ProgramEnd, io::ProgramRun, io::run_program;

namespace {

ProgramRun shell_run(std::string script) {
  ProgramRun out;
  out.path = "/bin/sh";
  out.words = {"sh", "-c", std::move(script)};
  out.environment = {"PATH=/usr/bin:/bin", "WORD=one"};
  return out;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(program)

BOOST_AUTO_TEST_CASE(a_program_gets_its_input_and_gives_both_outputs) {
  ProgramRun run = shell_run("cat; echo \"$WORD\"; echo two >&2");
  run.input = std::string(1 << 17, 'x');  // more than a pipe has room for
  const ProgramEnd end = run_program(run);
  BOOST_TEST(end.is_success(), end.reason);
  BOOST_TEST((end.output == run.input + "one\n"));
  BOOST_TEST(end.errors == "two\n");
}

BOOST_AUTO_TEST_CASE(a_service_that_it_started_does_not_keep_it_alive) {
  ProgramRun run = shell_run("sleep 30 & echo done");
  run.within_ns = 20 * kNsPerSecond;
  const ProgramEnd end = run_program(run);
  BOOST_TEST(end.is_success(), end.reason);
  BOOST_TEST(end.output == "done\n");
}

BOOST_AUTO_TEST_CASE(the_reason_of_a_traceback_is_its_last_line) {
  ProgramRun run =
      shell_run("echo 'Traceback (most recent call last):' >&2; echo 'ValueError: no' >&2; exit 1");
  run.last_error = true;
  BOOST_TEST(run_program(run).reason == "ValueError: no");
}

BOOST_AUTO_TEST_CASE(each_end_has_its_kind_and_reason) {
  std::atomic<bool> stop = true;
  struct Row {
    const char* script;
    TimeNs within_ns;
    bool stopped;
    ProgramEnd::Kind kind;
    std::string reason;
  };
  const Row rows[] = {
      {"exit 3", kNsPerSecond * 60, false, ProgramEnd::Kind::kExited, "exited with status 3"},
      {"echo 'not now' >&2; exit 1", kNsPerSecond * 60, false, ProgramEnd::Kind::kExited, "not now"},
      {"kill -9 $$", kNsPerSecond * 60, false, ProgramEnd::Kind::kSignalled, "ended by signal 9"},
      {"sleep 60", kNsPerMs * 50, false, ProgramEnd::Kind::kTimeout, "did not end within 50ms"},
      {"exec >&- 2>&-; sleep 60", kNsPerMs * 50, false, ProgramEnd::Kind::kTimeout,
       "did not end within 50ms"},
      {"sleep 60", kNsPerSecond * 60, true, ProgramEnd::Kind::kStopped,
       "was ended early, since the daemon stops"},
      {"yes", kNsPerSecond * 60, false, ProgramEnd::Kind::kTooLong, "wrote more than 1.0 kB"},
  };
  for (const Row& row : rows) {
    ProgramRun run = shell_run(row.script);
    run.within_ns = row.within_ns;
    run.output_max = 1000;
    if (row.stopped) run.stop = &stop;
    const ProgramEnd end = run_program(run);
    BOOST_TEST((end.kind == row.kind), row.script);
    BOOST_TEST(end.reason == row.reason);
  }
}

BOOST_AUTO_TEST_CASE(a_program_that_reads_no_input_ends_as_it_likes) {
  ProgramRun run = shell_run("exit 0");
  run.input = std::string(1 << 20, 'x');
  BOOST_TEST(run_program(run).is_success());
}

BOOST_AUTO_TEST_CASE(a_program_that_is_not_there_is_not_started) {
  ProgramRun run;
  run.path = "/nonexistent/program";
  run.words = {"program"};
  const ProgramEnd end = run_program(run);
  BOOST_TEST((end.kind == ProgramEnd::Kind::kNotStarted));
  BOOST_TEST(!end.is_unknown());
  BOOST_TEST(end.reason == "/nonexistent/program: no such file or directory");
}

BOOST_AUTO_TEST_SUITE_END()
