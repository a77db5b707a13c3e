// Fails each system call of a daemon's intake in turn, in scenarios of log rotation and kill -9. After each
// the daemon runs without failures, and its evidence must have every byte that was written to the watched
// log once, or a gap where bytes are missing.
//
//   fault_sweep [--only NAME] [--call N]    a row per scenario and kind of failure, and 'N passed, N failed'
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "host.h"
#include "shim.h"

namespace culprit::fault {
namespace {

struct Scenario {
  const char* name;
  const char* pattern;
  std::function<void(Host&)> steps;
  bool rotates = true;  // by itself
};

constexpr Host::Rounds kStored{.count = 2}, kOne{};
constexpr Host::Rounds kUnstored{.count = 2, .commits = false};

void appends(Host& host) {
  host.write(30);
  host.run(kStored);
  host.write(30);
  host.run(kOne);
  host.kill();
  host.write(30);
  host.run(kStored);
}

void renames_while_it_runs(Host& host) {
  host.write(30);
  host.run(kStored);
  for (int i = 0; i < 3; ++i) {
    host.rename_away();
    host.write(30);
    host.run(kOne);
    host.write(5);
  }
  host.run(kOne);
}

void renames_while_it_is_down(Host& host) {
  host.write(30);
  host.run(kStored);
  host.write(10);
  host.kill();
  for (int i = 0; i < 3; ++i) {
    host.rename_away();
    host.write(30);
  }
  host.run(kStored);
  host.write(5);
  host.run(kOne);
}

void renames_before_it_stores(Host& host) {
  host.write(30);
  host.run(kUnstored);
  for (int i = 0; i < 2; ++i) {
    host.rename_away();
    host.write(30);
    host.run(kUnstored);
  }
  host.kill();
  host.write(5);
  host.run(kStored);
}

// The rename, a moment without a file, then another.
void renames_slowly(Host& host) {
  host.write(30);
  host.run(kStored);
  for (int i = 0; i < 2; ++i) {
    host.write(10);
    host.create_later();
    host.run(kOne);
    host.write(30);
    host.run(kOne);
  }
}

void truncates_copied(Host& host) {
  host.write(30);
  host.run(kStored);
  for (int i = 0; i < 2; ++i) {
    host.write(20);
    host.truncate_copied();
    host.write(10);
    host.run(kOne);
  }
  host.kill();
  host.write(10);
  host.truncate_copied();
  host.write(10);
  host.run(kStored);
}

void compresses(Host& host) {
  host.write(30);
  host.run(kStored);
  for (int i = 0; i < 3; ++i) {
    host.write(10);
    host.rename_away();
    host.compress_older();
    host.write(20);
    host.run(kOne);
  }
  host.kill();
  for (int i = 0; i < 2; ++i) {
    host.write(10);
    host.rename_away();
    host.compress_older();
    host.write(20);
  }
  host.run(kStored);
}

const std::vector<Scenario> kScenarios = {
    {"append", "train.log", appends, false},
    {"append, all names watched", "train.log*", appends, false},
    {"rename", "train.log", renames_while_it_runs},
    {"rename, all names watched", "train.log*", renames_while_it_runs},
    {"rename while it is down", "train.log", renames_while_it_is_down},
    {"rename while it is down, all names watched", "train.log*", renames_while_it_is_down},
    {"rename before it stores", "train.log", renames_before_it_stores},
    {"rename before it stores, all names watched", "train.log*", renames_before_it_stores},
    {"slow rename", "train.log", renames_slowly},
    {"copytruncate", "train.log", truncates_copied},
    {"copytruncate, all names watched", "train.log*", truncates_copied},
    {"compressed rotation", "train.log", compresses},
    {"compressed rotation, all names watched", "train.log*", compresses},
};

struct Failure {
  const char* name;
  Plan plan;                            // without nth
  Host::Turn turn = Host::Turn::kNone;  // before the calls: they do not fail
};

const std::vector<Failure> kFailures = {
    {"EIO", {.error = EIO}},
    {"EIO six times", {.count = 6, .error = EIO}},
    {"ENOSPC", {.calls = Calls::kWrites, .error = ENOSPC}},
    {"ENOSPC on each second write", {.calls = Calls::kWrites, .count = 0, .each = 2, .error = ENOSPC}},
    {"ENOSPC from there on", {.calls = Calls::kWrites, .count = 0, .error = ENOSPC}},
    {"EINTR", {.calls = Calls::kInterruptible, .error = EINTR}},
    {"half of the bytes", {.calls = Calls::kTransfers, .error = 0}},
    {"kill -9", {.count = 0, .error = EIO, .ends = true}},
    {"a rename before it", {}, Host::Turn::kRename},
    {"renames before it and 3 later ones", {.count = 13, .each = 4}, Host::Turn::kRename},
    {"renames before it and 3 later ones, apart", {.count = 46, .each = 15}, Host::Turn::kRename},
    {"compressed rotation from there on", {.count = 8}, Host::Turn::kCompress},
    {"compressed rotation from there on, apart", {.count = 60, .each = 7}, Host::Turn::kCompress},
    {"copytruncate before it", {}, Host::Turn::kCopy},
    {"copytruncate before it and 2 later ones", {.count = 31, .each = 15}, Host::Turn::kCopy},
};

// Shared with the processes that play.
struct Board {
  std::atomic<uint64_t> played, lost_runs, failed;
  std::atomic<uint64_t> last[64];  // call of each process
  char first[512];                 // the first failure
};

// Returns whether the call was reached.
bool play(const Scenario& scenario, const Failure& failure, uint64_t nth, Account& account) {
  Host host(scenario.pattern);
  Plan plan = failure.plan;
  plan.nth = nth;
  if (failure.turn != Host::Turn::kNone) plan.before = [&] { host.turn(failure.turn); };
  arm(plan);
  scenario.steps(host);
  const bool reached = nth == 0 || plan.ends || fired();
  arm({});
  host.kill();
  host.settle();
  account = host.account();
  if (host.refused() && account.fault.empty()) account.fault = "the spool refused a batch";
  return reached;
}

void play_share(const Scenario& scenario, const Failure& failure, Board& board, uint64_t from,
                uint64_t step) {
  // An `ends` plan is disarmed at its kill: the calls of a run without it are the limit.
  uint64_t limit = UINT64_MAX;
  if (failure.plan.ends) {
    Host host(scenario.pattern);
    arm({});
    scenario.steps(host);
    limit = counted();
  }
  for (uint64_t nth = from; nth <= limit; nth += step) {
    board.last[from] = nth;
    Account account;
    const bool reached = play(scenario, failure, nth, account);
    board.played += reached;
    board.lost_runs += account.lost > 0;
    if (account.fault.empty() && !reached) return;
    if (account.fault.empty()) continue;
    if (board.failed++ == 0) {
      const std::string text = fmt::format("call {}: {}", nth, account.fault);
      std::strncpy(board.first, text.c_str(), sizeof board.first - 1);
    }
    if (!reached) return;
  }
}

bool sweep(const Scenario& scenario, const Failure& failure, unsigned workers) {
  Board& board = *static_cast<Board*>(
      ::mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  std::fflush(stdout);
  std::vector<pid_t> children;
  for (unsigned i = 1; i <= workers; ++i) {
    const pid_t child = ::fork();
    if (child == 0) {
      play_share(scenario, failure, board, i, workers);
      std::_Exit(0);
    }
    children.push_back(child);
  }
  std::string fault;
  for (unsigned i = 0; i < children.size(); ++i) {
    int status = 0;
    ::waitpid(children[i], &status, 0);
    if (status != 0)
      fault = fmt::format("call {}: the daemon ended with status {}", board.last[i + 1].load(), status);
  }
  if (fault.empty() && board.failed > 0)
    fault = fmt::format("{} calls; {}", board.failed.load(), board.first);
  const std::string name = fmt::format("{}: {}", scenario.name, failure.name);
  const std::string reported =
      board.lost_runs > 0 ? fmt::format(", {} of them with a reported gap", board.lost_runs.load()) : "";
  if (fault.empty())
    fmt::print("ok {}: {} calls failed in turn{}\n", name, board.played.load(), reported);
  else
    fmt::print("FAIL {}: {}\n", name, fault);
  ::munmap(&board, sizeof board);
  return fault.empty();
}

int run(int argc, char** argv) {
  std::string only;
  uint64_t call = 0;
  for (int i = 1; i + 1 < argc; i += 2) {
    if (std::strcmp(argv[i], "--only") == 0) only = argv[i + 1];
    if (std::strcmp(argv[i], "--call") == 0) call = std::strtoull(argv[i + 1], nullptr, 10);
  }
  const unsigned workers = std::clamp(std::thread::hardware_concurrency(), 1u, 16u);
  size_t passed = 0, failed = 0;
  for (const Scenario& scenario : kScenarios)
    for (const Failure& failure : kFailures) {
      const std::string name = fmt::format("{}: {}", scenario.name, failure.name);
      if (scenario.rotates && failure.turn != Host::Turn::kNone) continue;
      if (!only.empty() && name.find(only) == name.npos) continue;
      if (call > 0) {
        Account account;
        play(scenario, failure, call, account);
        fmt::print("{}, call {}: {}\n", name, call, account.fault.empty() ? "accounted for" : account.fault);
        continue;
      }
      ++(sweep(scenario, failure, workers) ? passed : failed);
    }
  if (call == 0) fmt::print("{} passed, {} failed\n", passed, failed);
  return failed > 0;
}

}  // namespace
}  // namespace culprit::fault

int main(int argc, char** argv) { return culprit::fault::run(argc, argv); }
