// culprit-node-check: tests this host's memory and disk and reads what the kernel shows of its devices. It
// prints one line of JSON for each part as soon as the part has ended, so that a part that hangs does not
// hide the others. culpritd and `culprit node-check --full` run it and kill it after its time. It runs at
// the lowest priority and needs no rights.
//
// culprit-node-check WITHIN_MS MEMORY_BYTES DISK_BYTES FOLDER
// culprit-node-check run WITHIN_MS MEMORY_BYTES PROGRAM [WORD...]
//
// The second form replaces itself by a program with such limits.
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <csignal>
#include <cstdio>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "check/devices.h"
#include "check/disk.h"
#include "check/memory.h"

namespace culprit::check {
namespace {

constexpr uint64_t kProgramBytes = 256ull << 20;  // of the address space, besides the tested memory
constexpr int kIoprioIdle = 3 << 13;              // IOPRIO_CLASS_IDLE of linux/ioprio.h
constexpr int kIoprioProcess = 1;

std::optional<uint64_t> number(std::string_view word) {
  uint64_t out = 0;
  const auto read = std::from_chars(word.data(), word.data() + word.size(), out);
  if (read.ec != std::errc() || read.ptr != word.data() + word.size()) return std::nullopt;
  return out;
}

void limit(int what, uint64_t most) {
  const rlimit value{most, most};
  ::setrlimit(static_cast<__rlimit_resource_t>(what), &value);
}

// The lowest priority: whatever else runs on the host goes first.
void yield_to_others(TimeNs within) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  ::setpriority(PRIO_PROCESS, 0, 19);
  ::syscall(SYS_ioprio_set, kIoprioProcess, 0, kIoprioIdle);
  limit(RLIMIT_CORE, 0);
  limit(RLIMIT_CPU, static_cast<uint64_t>(within / kNsPerSecond) + 2);
}

// Without memory, the kernel ends this process before the daemon.
void die_first() {
  const int file = ::open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
  if (file < 0) return;
  [[maybe_unused]] const ssize_t written = ::write(file, "1000", 4);
  ::close(file);
}

bool print(const Part& part) {
  const std::string line = to_line(part) + "\n";
  return ::write(STDOUT_FILENO, line.data(), line.size()) == static_cast<ssize_t>(line.size());
}

// Drivers of accelerators reserve address space without end, so only memory that can be written counts.
int run_other(int argc, char** argv) {
  const auto within_ms = argc >= 5 ? number(argv[2]) : std::nullopt;
  const auto memory = argc >= 5 ? number(argv[3]) : std::nullopt;
  if (!within_ms || !memory || *within_ms > 3'600'000) return 2;
  yield_to_others(static_cast<TimeNs>(*within_ms) * kNsPerMs);
  limit(RLIMIT_DATA, *memory);
  die_first();
  ::execv(argv[4], argv + 4);
  ::perror(argv[4]);
  return 127;
}

int run(int argc, char** argv) {
  if (argc > 1 && std::string_view(argv[1]) == "run") return run_other(argc, argv);
  const auto within_ms = argc == 5 ? number(argv[1]) : std::nullopt;
  const auto memory = argc == 5 ? number(argv[2]) : std::nullopt;
  const auto disk = argc == 5 ? number(argv[3]) : std::nullopt;
  if (!within_ms || !memory || !disk || *within_ms > 3'600'000) return 2;
  const TimeNs within = static_cast<TimeNs>(*within_ms) * kNsPerMs, until = steady_now() + within;
  const uint64_t seed = static_cast<uint64_t>(steady_now());
  yield_to_others(within);
  limit(RLIMIT_AS, *memory + kProgramBytes);
  bool written = print(check_pcie());
  if (const Part errors = check_memory_errors(); errors.answer != Answer::kNoAnswer)
    written = written && print(errors);
  if (*memory > 0) written = written && print(test_memory({*memory, until, seed, available_memory(), {}}));
  if (*disk > 0) written = written && print(test_disk({argv[4], *disk, until, seed, false}));
  return written ? 0 : 1;
}

}  // namespace
}  // namespace culprit::check

int main(int argc, char** argv) { return culprit::check::run(argc, argv); }
