#include "io/child.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <boost/test/unit_test.hpp>
#include <cerrno>
#include <cstdlib>

#include "io/descriptors.h"

using namespace culprit;
using io::Child, io::ChildKill, io::ChildProgram, io::Descriptor;

namespace {

constexpr TimeNs kLong = 60 * kNsPerSecond;  // of what is expected to happen

struct TestPipe {
  TestPipe() {
    int ends[2];
    BOOST_REQUIRE(::pipe2(ends, O_CLOEXEC) == 0);
    read_end = Descriptor(ends[0]);
    write_end = Descriptor(ends[1]);
  }
  // Until all writers have closed it.
  std::string rest() {
    write_end = Descriptor();
    std::string out;
    char bytes[4096];
    for (ssize_t n = 0; (n = ::read(read_end.get(), bytes, sizeof bytes)) > 0;)
      out.append(bytes, static_cast<size_t>(n));
    return out;
  }
  Descriptor read_end, write_end;
};

ChildProgram shell(const std::string& script, std::vector<int> descriptors) {
  return {.path = "/bin/sh",
          .arguments = {"sh", "-c", script},
          .environment = {"PATH=/usr/bin:/bin"},
          .descriptors = std::move(descriptors)};
}

Child started(const ChildProgram& program) {
  auto child = Child::start(program);
  BOOST_REQUIRE_MESSAGE(child, (child ? "" : child.error().text));
  return std::move(*child);
}

// Standard output of a script.
std::string output_of(const std::string& script) {
  TestPipe out;
  Child child = started(shell(script, {ChildProgram::kNull, out.write_end.get()}));
  std::string text = out.rest();
  BOOST_TEST(child.wait(kLong).has_value());
  return text;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(child_programs)

BOOST_AUTO_TEST_CASE(a_program_has_only_the_environment_that_it_is_given) {
  ::setenv("CULPRIT_TEST_SECRET", "hunter2", 1);
  const std::string text = output_of("tr '\\0' '\\n' < /proc/$$/environ");
  ::unsetenv("CULPRIT_TEST_SECRET");
  BOOST_TEST(text == "PATH=/usr/bin:/bin\n");
}

BOOST_AUTO_TEST_CASE(a_program_has_only_the_descriptors_that_it_is_given) {
  const Descriptor inherited(::open("/dev/zero", O_RDONLY));  // without O_CLOEXEC
  BOOST_REQUIRE(inherited.get() > 2);
  BOOST_TEST(output_of("for fd in /proc/$$/fd/*; do readlink $fd; done | grep -c zero") == "0\n");
}

BOOST_AUTO_TEST_CASE(standard_streams_that_are_not_given_are_dev_null) {
  BOOST_TEST(output_of("readlink /proc/$$/fd/0; readlink /proc/$$/fd/2") == "/dev/null\n/dev/null\n");
}

BOOST_AUTO_TEST_CASE(descriptors_are_copied_to_their_numbers_even_where_they_cross) {
  TestPipe third, fourth;
  // The program's 3 is our 4 and the other way round.
  const int saved_3 = ::fcntl(3, F_DUPFD_CLOEXEC, 50), saved_4 = ::fcntl(4, F_DUPFD_CLOEXEC, 50);
  const int high_third = ::fcntl(third.write_end.get(), F_DUPFD_CLOEXEC, 50);
  const int high_fourth = ::fcntl(fourth.write_end.get(), F_DUPFD_CLOEXEC, 50);
  const int read_third = ::fcntl(third.read_end.get(), F_DUPFD_CLOEXEC, 50);
  const int read_fourth = ::fcntl(fourth.read_end.get(), F_DUPFD_CLOEXEC, 50);
  ::dup3(high_third, 4, O_CLOEXEC);
  ::dup3(high_fourth, 3, O_CLOEXEC);
  Child child = started(shell("echo three >&3; echo four >&4",
                              {ChildProgram::kNull, ChildProgram::kNull, ChildProgram::kNull, 4, 3}));
  const auto end = child.wait(kLong);
  for (const auto& [saved, number] : {std::pair(saved_3, 3), std::pair(saved_4, 4)}) {
    if (saved >= 0) ::dup3(saved, number, O_CLOEXEC);
    if (saved < 0) ::close(number);
    if (saved >= 0) ::close(saved);
  }
  BOOST_TEST((end && end->is_success()));
  char text[8]{};
  BOOST_TEST(::read(read_third, text, sizeof text) == 6);
  BOOST_TEST(std::string(text, 6) == "three\n");
  BOOST_TEST(::read(read_fourth, text, sizeof text) == 5);
  BOOST_TEST(std::string(text, 5) == "four\n");
  for (const int fd : {high_third, high_fourth, read_third, read_fourth}) ::close(fd);
}

BOOST_AUTO_TEST_CASE(no_signal_is_blocked_or_ignored_in_a_program) {
  sigset_t blocked, before;
  sigemptyset(&blocked);
  sigaddset(&blocked, SIGTERM);
  ::sigprocmask(SIG_BLOCK, &blocked, &before);
  const auto old = ::signal(SIGUSR1, SIG_IGN);
  const std::string masks = output_of("sed -n -E 's/^Sig(Blk|Ign):.//p' /proc/self/status");
  ::signal(SIGUSR1, old);
  ::sigprocmask(SIG_SETMASK, &before, nullptr);
  const size_t second = masks.find('\n') + 1;
  BOOST_REQUIRE(second < masks.size());
  BOOST_TEST(std::stoull(masks, nullptr, 16) == 0U);
  constexpr unsigned long long kOfLibrary = 0x1'8000'0000;  // 32 and 33: the C library's own
  BOOST_TEST((std::stoull(masks.substr(second), nullptr, 16) & ~kOfLibrary) == 0U);
}

BOOST_AUTO_TEST_CASE(a_program_leads_a_group_of_its_own) {
  TestPipe in;
  Child child = started(shell("read line", {in.read_end.get()}));
  BOOST_TEST(::getpgid(child.pid()) == child.pid());
}

BOOST_AUTO_TEST_CASE(a_program_that_is_not_there_is_an_error_with_its_path) {
  const auto child = Child::start({.path = "/nonexistent/program", .arguments = {"program"}});
  BOOST_REQUIRE(!child);
  BOOST_TEST(child.error().text == "/nonexistent/program: no such file or directory");
  BOOST_TEST((child.error().code == ErrorCode::kNotFound));
}

BOOST_AUTO_TEST_CASE(a_wait_ends_at_its_deadline_or_with_the_program) {
  TestPipe in;
  Child child = started(shell("read line; exit 7", {in.read_end.get()}));
  BOOST_TEST(!child.wait(kNsPerMs));
  BOOST_TEST(!child.has_ended());
  in.write_end = Descriptor();
  const auto end = child.wait(kLong);
  BOOST_REQUIRE(end);
  BOOST_TEST(end->code == 7);
  BOOST_TEST(end->signal == 0);
  BOOST_TEST(!end->is_success());
  BOOST_TEST(child.is_waited_for());
  BOOST_TEST(!child.wait(0));  // it is told once
}

BOOST_AUTO_TEST_CASE(an_end_by_a_signal_has_its_number) {
  Child child = started(shell("kill -9 $$", {}));
  const auto end = child.wait(kLong);
  BOOST_REQUIRE(end);
  BOOST_TEST(end->signal == SIGKILL);
  BOOST_TEST(!end->is_success());
}

BOOST_AUTO_TEST_CASE(kill_ends_the_group_also_after_the_end_of_the_program) {
  TestPipe in, out;
  Child child = started(shell("cat <&3 & exit 0", {ChildProgram::kNull, out.write_end.get(),
                                                   ChildProgram::kNull, in.read_end.get()}));
  siginfo_t ended{};
  BOOST_REQUIRE(::waitid(P_PID, static_cast<id_t>(child.pid()), &ended, WEXITED | WNOWAIT) == 0);
  BOOST_TEST(child.has_ended());
  child.kill();
  BOOST_TEST(out.rest().empty());  // `cat` held it open, and nothing else ends it
  const auto end = child.wait(kLong);
  BOOST_TEST((end && end->is_success()));
}

BOOST_AUTO_TEST_CASE(kill_of_the_process_leaves_its_group) {
  TestPipe in, out;
  ChildProgram program = shell(
      "cat <&3 & wait", {ChildProgram::kNull, out.write_end.get(), ChildProgram::kNull, in.read_end.get()});
  program.kill = ChildKill::kProcess;
  Child child = started(program);
  in.read_end = Descriptor();
  BOOST_TEST(::write(in.write_end.get(), "alive\n", 6) == 6);
  char text[8]{};
  BOOST_TEST(::read(out.read_end.get(), text, sizeof text) == 6);  // `cat` runs
  child.kill();
  const auto end = child.wait(kLong);
  BOOST_REQUIRE(end);
  BOOST_TEST(end->signal == SIGKILL);
  BOOST_TEST(::write(in.write_end.get(), "still\n", 6) == 6);
  in.write_end = Descriptor();
  BOOST_TEST(out.rest() == "still\n");
}

BOOST_AUTO_TEST_CASE(the_end_of_its_owner_ends_a_program) {
  TestPipe in;
  pid_t pid = 0;
  {
    const Child child = started(shell("read line", {in.read_end.get()}));
    pid = child.pid();
    BOOST_TEST(::kill(pid, 0) == 0);
  }
  BOOST_TEST(::waitpid(pid, nullptr, WNOHANG) == -1);
  BOOST_TEST(errno == ECHILD);
}

BOOST_AUTO_TEST_CASE(a_program_that_was_waited_for_is_not_killed_again) {
  Child child = started(shell("exit 0", {}));
  BOOST_TEST(child.wait(kLong).has_value());
  child.kill();  // the number may be another's: nothing is sent
  BOOST_TEST(child.end(0));
  BOOST_TEST(!Child().wait(0));
}

BOOST_AUTO_TEST_SUITE_END()
