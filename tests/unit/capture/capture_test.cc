// The program itself on real processes, which this test starts.
#include "capture/capture.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <boost/test/unit_test.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "capture/stop_guard.h"
#include "capture/tool.h"
#include "io/descriptors.h"
#include "io/process_end.h"

using namespace culprit;
using namespace culprit::capture;
using Json = nlohmann::json;

namespace {

// A process that catches no signal but ends with the test.
class Process {
 public:
  template <class Body>
  explicit Process(Body body) {
    int ready[2];
    BOOST_REQUIRE(::pipe(ready) == 0);
    pid_ = ::fork();
    if (pid_ == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      body();
      (void)!::write(ready[1], "x", 1);
      for (;;) ::pause();
    }
    char byte = 0;
    BOOST_REQUIRE(::read(ready[0], &byte, 1) == 1);
    ::close(ready[0]);
    ::close(ready[1]);
  }
  ~Process() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  uint32_t pid() const { return static_cast<uint32_t>(pid_); }
  ProcStat stat() const { return *ProcessReader().stat(pid()); }

 private:
  pid_t pid_ = 0;
};

Target target_of(const Process& process) { return {process.pid(), process.stat().start_ticks}; }

// What the program prints for a request.
std::vector<Json> captured(Request request) {
  int in[2], out[2];
  BOOST_REQUIRE(::pipe(in) == 0 && ::pipe(out) == 0);
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::dup2(in[0], 0);
    ::dup2(out[1], 1);
    ::close(in[1]);
    ::execl(CULPRIT_TEST_CAPTURE, "culprit-capture", nullptr);
    ::_exit(1);
  }
  ::close(in[0]);
  ::close(out[1]);
  const std::string line = request_line(request) + "\n";
  BOOST_REQUIRE(::write(in[1], line.data(), line.size()) == static_cast<ssize_t>(line.size()));
  ::close(in[1]);
  std::string text;
  char buffer[4096];
  for (ssize_t n = 0; (n = ::read(out[0], buffer, sizeof buffer)) > 0;)
    text.append(buffer, static_cast<size_t>(n));
  ::close(out[0]);
  ::waitpid(pid, nullptr, 0);
  std::vector<Json> lines;
  std::istringstream in_lines(text);
  for (std::string one; std::getline(in_lines, one);) lines.push_back(Json::parse(one));
  return lines;
}

Json captured_one(const Target& target, std::vector<std::string> tools = {}) {
  Request request;
  request.job = "j";
  request.all = true;
  request.tools = std::move(tools);
  request.targets = {target};
  const auto lines = captured(request);
  BOOST_REQUIRE(lines.size() == 1u);
  return lines[0];
}

// A program that does this instead of py-spy, in a folder that others cannot change.
class FakeTool {
 public:
  explicit FakeTool(const std::string& script, const std::string& name = "py-spy",
                    const std::string& shell = "/bin/sh")
      : name_(name) {
    char folder[] = "/tmp/capture-XXXXXX";
    BOOST_REQUIRE(::mkdtemp(folder));
    folder_ = folder;
    std::ofstream(path()) << "#!" << shell << "\n" << script;
    ::chmod(path().c_str(), 0755);
    const std::string mark = folder_ + "/attached";
    BOOST_REQUIRE(::mkfifo(mark.c_str(), 0600) == 0);
    mark_ = io::Descriptor(::open(mark.c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK));
  }
  ~FakeTool() { std::filesystem::remove_all(folder_); }
  std::string path() const { return folder_ + "/" + name_; }
  // Until the script has written to "attached" in its folder.
  void wait_for_mark() const {
    pollfd wait{mark_.get(), POLLIN, 0};
    BOOST_REQUIRE(::poll(&wait, 1, 10'000) == 1);
  }

 private:
  std::string name_, folder_;
  io::Descriptor mark_;
};

}  // namespace

BOOST_AUTO_TEST_SUITE(captures)

BOOST_AUTO_TEST_CASE(a_process_that_calls_itself_something_else_is_reported_as_it_is) {
  const Process process([] { ::prctl(PR_SET_NAME, "x) Z 1 1 1"); });
  const Json line = captured_one(target_of(process));
  BOOST_TEST(line["state"] == "S");
  BOOST_TEST(line["name"] == "x) Z 1 1 1");
  BOOST_TEST(line["pid"] == process.pid());
}

BOOST_AUTO_TEST_CASE(a_stopped_process_is_reported_and_stays_stopped) {
  const Process process([] {});
  ::kill(static_cast<pid_t>(process.pid()), SIGSTOP);
  siginfo_t info{};
  ::waitid(P_PID, process.pid(), &info, WSTOPPED | WNOWAIT);
  const Json line = captured_one(target_of(process), {"eu-stack", "gdb"});
  BOOST_TEST(line["state"] == "T");
  BOOST_TEST(line["threads"].empty());
  BOOST_TEST(line["why"].get<std::string>().find("it is stopped") != std::string::npos);
  BOOST_TEST(process.stat().state == 'T');
}

BOOST_AUTO_TEST_CASE(a_process_that_ignores_every_signal_is_captured_and_runs_on) {
  const Process process([] {
    sigset_t all;
    ::sigfillset(&all);
    ::sigprocmask(SIG_BLOCK, &all, nullptr);
    for (int number = 1; number < 65; ++number) ::signal(number, SIG_IGN);
  });
  const Json line = captured_one(target_of(process), {"eu-stack", "gdb"});
  BOOST_TEST(line["state"] == "S");
  BOOST_TEST((!line["threads"].empty() || line.contains("why")), line.dump());
  BOOST_TEST(process.stat().state == 'S');
}

BOOST_AUTO_TEST_CASE(a_later_process_with_the_same_number_is_not_looked_at) {
  const Process process([] {});
  Target target = target_of(process);
  ++target.start_ticks;
  const Json line = captured_one(target);
  BOOST_TEST(line["state"] == "gone");
  BOOST_TEST(!line.contains("uid"));
  BOOST_TEST(line["threads"].empty());
}

BOOST_AUTO_TEST_CASE(a_process_that_ended_is_a_zombie_until_its_parent_collects_it) {
  const pid_t pid = ::fork();
  if (pid == 0) ::_exit(0);
  siginfo_t info{};
  ::waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOWAIT);
  const Json line = captured_one({static_cast<uint32_t>(pid), 0});
  ::waitpid(pid, nullptr, 0);
  BOOST_TEST(line["state"] == "Z");
  BOOST_TEST(line["why"].get<std::string>().find("has ended") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(a_tool_that_hangs_is_ended_and_named) {
  const FakeTool tool("exec sleep 1000\n");
  const Process process([] {});
  Request request;
  request.all = true;
  request.tools = {tool.path()};
  request.budget_ns = kNsPerSecond;
  request.targets = {target_of(process)};
  const auto lines = captured(request);
  BOOST_REQUIRE(lines.size() == 1u);
  BOOST_TEST(lines[0]["why"].get<std::string>().find("py-spy: it took longer") != std::string::npos);
  BOOST_TEST(lines[0]["state"] == "S");
}

BOOST_AUTO_TEST_CASE(a_tool_sees_no_environment_and_no_descriptor_of_ours) {
  const FakeTool tool(
      "n=$(ls /proc/$$/fd | wc -l); e=$(tr '\\0' ' ' </proc/$$/environ | sed 's/LC_ALL=C//')\n"
      "echo "
      "\"[{\\\"frames\\\":[{\\\"name\\\":\\\"$e\\\",\\\"filename\\\":\\\"$PWD\\\",\\\"line\\\":$n}]}]\"\n");
  ::setenv("SECRET", "s3", 1);
  const Process process([] {});
  const Json line = captured_one(target_of(process), {tool.path()});
  BOOST_REQUIRE_MESSAGE(line["tool"] == "py-spy", line.dump());
  const std::string frame = line["threads"][0]["frames"][0];
  BOOST_TEST(frame.find("s3") == frame.npos, frame);
  BOOST_TEST(frame.find("PATH=/usr/sbin") != frame.npos, frame);
  BOOST_TEST(frame.starts_with("/:"), frame);
}

BOOST_AUTO_TEST_CASE(a_tool_that_others_can_change_is_not_run) {
  const FakeTool tool("echo '[{\"frames\":[{\"name\":\"f\",\"filename\":\"x\"}]}]'\n");
  ::chmod(tool.path().c_str(), 0777);
  const Process process([] {});
  const Json line = captured_one(target_of(process), {tool.path()});
  BOOST_TEST(line["threads"].empty());
  BOOST_TEST(line["why"].get<std::string>().find("may change it") != std::string::npos);
}

namespace {

// Attaches as a debugger does, says so by a file, and then ends in some way.
std::string tracer(uint32_t pid, const std::string& then) {
  return "import ctypes, os, signal, sys, time\n"
         "libc = ctypes.CDLL(None)\npid = " +
         std::to_string(pid) +
         "\n"
         "libc.ptrace(16, pid, None, None)\nos.waitpid(pid, 0x40000000)\n"
         "with open(os.path.dirname(sys.argv[0]) + '/attached', 'w') as mark: mark.write('x')\n" +
         then + "\n";
}

// The state that it has for good; a signal takes a moment, and SIGCHLD tells of it. The end of a tracer has
// no event for us.
char settled(const Process& process, bool stopped) {
  sigset_t child, before;
  sigemptyset(&child);
  sigaddset(&child, SIGCHLD);
  ::pthread_sigmask(SIG_BLOCK, &child, &before);
  char state = '?';
  for (int i = 0; i < 40; ++i) {
    state = process.stat().state;
    if ((state == 'T') == stopped && state != 't') break;
    constexpr timespec kMost{0, 50'000'000};
    ::sigtimedwait(&child, nullptr, &kMost);
  }
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return state;
}

// The processes below one, which are ours once it has ended.
std::vector<pid_t> started_by(pid_t parent) {
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  std::vector<pid_t> out;
  std::ifstream children("/proc/" + std::to_string(parent) + "/task/" + std::to_string(parent) + "/children");
  for (pid_t pid = 0; children >> pid;) {
    out.push_back(pid);
    for (const pid_t below : started_by(pid)) out.push_back(below);
  }
  return out;
}

struct Tried {
  const char* then;
  bool stop;  // somebody stops the process while it is traced
};

}  // namespace

BOOST_AUTO_TEST_CASE(a_process_is_left_as_it_was_however_its_tool_ends) {
  const Tried cases[] = {{"time.sleep(.3); sys.exit(1)", false},  // ends without detaching
                         {"time.sleep(.3); sys.exit(1)", true},
                         {"time.sleep(.3); os.kill(os.getpid(), 9)", false},  // dies
                         {"time.sleep(.3); os.kill(os.getpid(), 9)", true},
                         {"time.sleep(.3); libc.ptrace(17, pid, None, None); print('x')", false},  // detaches
                         {"time.sleep(.3); libc.ptrace(17, pid, None, None); print('x')", true}};
  for (const auto& [then, stop] : cases) {
    const Process process([] {});
    const FakeTool tool(tracer(process.pid(), then), "eu-stack", "/usr/bin/python3");
    std::thread stopper;
    if (stop)
      stopper = std::thread([&] {
        tool.wait_for_mark();
        ::kill(static_cast<pid_t>(process.pid()), SIGSTOP);
      });
    const Json line = captured_one(target_of(process), {tool.path()});
    if (stopper.joinable()) stopper.join();
    BOOST_TEST((settled(process, stop) == 'T') == stop, then << " " << line.dump());
  }
}

BOOST_AUTO_TEST_CASE(a_process_is_left_as_it_was_when_the_capture_is_killed_half_way) {
  for (const bool stop : {false, true}) {
    const Process process([] {});
    const FakeTool tool(tracer(process.pid(), "time.sleep(60)"), "eu-stack", "/usr/bin/python3");
    Request request;
    request.job = "j";
    request.all = true;
    request.tools = {tool.path()};
    request.targets = {target_of(process)};
    const pid_t capture = ::fork();
    if (capture == 0) {
      int in[2];
      if (::pipe(in) != 0) ::_exit(1);
      const std::string line = request_line(request) + "\n";
      (void)!::write(in[1], line.data(), line.size());
      ::dup2(in[0], 0);
      ::close(in[1]);
      ::execl(CULPRIT_TEST_CAPTURE, "culprit-capture", nullptr);
      ::_exit(1);
    }
    tool.wait_for_mark();
    if (stop) ::kill(static_cast<pid_t>(process.pid()), SIGSTOP);
    BOOST_TEST(!io::ends_within(capture, 50 * kNsPerMs));  // the guard looks every 5 ms
    const std::vector<pid_t> started = started_by(capture);
    ::kill(capture, SIGKILL);
    ::waitpid(capture, nullptr, 0);
    for (const pid_t pid : started) {
      BOOST_TEST(io::ends_within(pid, 10 * kNsPerSecond));
      ::waitpid(pid, nullptr, WNOHANG);
    }
    BOOST_TEST((settled(process, stop) == 'T') == stop, stop);
  }
}

BOOST_AUTO_TEST_CASE(a_stop_at_any_moment_of_a_real_capture_stays) {
  std::vector<std::string> tools;
  for (const char* tool : {"eu-stack", "gdb"})
    if (find_tool(tool)) tools.emplace_back(tool);
  if (tools.empty()) {
    BOOST_TEST_MESSAGE("no tracer is installed");
    return;
  }
  for (int moment = 0; moment < 24; ++moment) {
    const Process process([] {});
    std::thread stopper([&] {
      // No event: it is the moment that is tried.
      ::usleep(static_cast<useconds_t>(moment) * 3000);
      ::kill(static_cast<pid_t>(process.pid()), SIGSTOP);
    });
    captured_one(target_of(process), {tools[static_cast<size_t>(moment) % tools.size()]});
    stopper.join();
    BOOST_TEST(settled(process, true) == 'T', moment);
  }
}

BOOST_AUTO_TEST_CASE(a_stop_that_a_tracer_made_is_told_from_that_of_somebody_else) {
  const StopView runs{'S', false, false, true}, held{'t', true, false, true}, asked{'t', true, true, true},
      stopped{'T', false, false, true}, left{'T', false, false, false};
  const std::pair<std::vector<StopView>, bool> cases[] = {
      {{runs, held, left}, false},
      {{runs, held, asked, left}, true},
      {{runs, stopped, held, left}, true},
      {{runs, asked, held, left}, false},  // and let go on again
      {{runs, stopped, runs, held, left}, false},
      {{runs, held, runs, stopped}, true}};
  for (const auto& [views, expected] : cases) {
    StopWatch watch;
    for (const StopView& view : views) watch.add(view);
    BOOST_TEST(watch.asked() == expected);
  }
}

BOOST_AUTO_TEST_CASE(a_process_without_a_rank_is_not_reported) {
  const Process process([] {});
  Request request;
  request.targets = {target_of(process)};
  BOOST_TEST(captured(request).empty());
}

BOOST_AUTO_TEST_CASE(the_rank_is_that_of_the_environment) {
  ::setenv("RANK", "6", 1);
  // The environment that counts is that of the start.
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    ::execl("/bin/sleep", "sleep", "1000", nullptr);
    ::_exit(1);
  }
  // Until the program is the new one.
  while (ProcessReader().stat(static_cast<uint32_t>(pid))->name != "sleep") ::sched_yield();
  const Json line = captured_one({static_cast<uint32_t>(pid), 0});
  ::kill(pid, SIGKILL);
  ::waitpid(pid, nullptr, 0);
  ::unsetenv("RANK");
  BOOST_TEST(line["rank"] == 6);
}

BOOST_AUTO_TEST_CASE(a_traced_or_stopped_or_blocked_process_is_not_traced) {
  ProcessLook look;
  look.threads = {{7, 7, "m", 'S', "", {}, {}, {}}};
  BOOST_TEST(why_not_traced(look).empty());
  look.threads[0].state = 'D';
  BOOST_TEST(why_not_traced(look).find("uninterruptible") != std::string::npos);
  look.threads[0].state = 'T';
  BOOST_TEST(why_not_traced(look).find("stopped") != std::string::npos);
  look.frozen = true;
  BOOST_TEST(why_not_traced(look).find("frozen") != std::string::npos);
  look.status.tracer = 5;
  BOOST_TEST(why_not_traced(look).find("process 5") != std::string::npos);
  // A child that is blocked does not keep its parent from being traced.
  ProcessLook parent;
  parent.threads = {{7, 7, "m", 'S', "", {}, {}, {}}, {8, 8, "worker", 'D', "", {}, {}, {}}};
  BOOST_TEST(why_not_traced(parent).empty());
}

BOOST_AUTO_TEST_CASE(only_a_thread_that_does_not_run_between_two_looks_is_stuck) {
  ProcessLook before, after;
  before.threads = {{7, 7, "a", 'D', "", {}, {}, {}, 5},
                    {7, 8, "b", 'D', "", {}, {}, {}, 5},
                    {7, 9, "c", 'S', "", {}, {}, {}, 5}};
  after.threads = {{7, 7, "a", 'D', "", {}, {}, {}, 5},
                   {7, 8, "b", 'D', "", {}, {}, {}, 6},
                   {7, 9, "c", 'D', "", {}, {}, {}, 5}};
  ProcessReader::mark_stuck(before, after);
  BOOST_TEST(after.threads[0].stuck);
  BOOST_TEST(!after.threads[1].stuck);
  BOOST_TEST(!after.threads[2].stuck);
  BOOST_TEST(after.stuck() == &after.threads[0]);
}

BOOST_AUTO_TEST_SUITE_END()
