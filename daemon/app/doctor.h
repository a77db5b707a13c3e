// What would stop the daemon from seeing a job, and the command that mends it: a row for each check. What a
// machine is asked comes through Probes, so that a test can show both answers. Blocks; any thread. Nothing
// is changed on the machine.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "app/config.h"

namespace culprit::app {

enum class Health : uint8_t { kOk, kWarn, kFail };
std::string_view word(Health health);  // "ok", "warn", "fail"

struct DoctorRow {
  std::string check;  // "inotify": short, of a fixed set
  Health health = Health::kOk;
  std::string what;    // one sentence
  std::string remedy;  // a command or a line of configuration; empty: nothing to mend
};

// As whom the daemon runs: decides what it may read and write.
struct Account {
  std::string name;
  uint32_t uid = 0;
  std::vector<uint32_t> gids;
};

// What is at a path, links followed.
struct PathFacts {
  int error = 0;  // errno; the rest then is not known
  bool folder = false, regular = false, link = false;
  uint32_t mode = 0, uid = 0, gid = 0;
};

struct DiskFacts {
  uint64_t free_bytes = 0, free_files = 0;
};

struct Probes {
  std::function<std::optional<Account>(const std::string& name)> account;
  std::function<PathFacts(const std::string& path)> path;
  std::function<std::optional<DiskFacts>(const std::string& path)> disk;
  // A file's text without its final newline; nothing where it cannot be read.
  std::function<std::optional<std::string>(const std::string& path)> text;
  // Files and folders that a glob matches, and folders that it has to watch.
  struct Matches {
    std::vector<std::string> files, folders;
    bool cut = false;
  };
  std::function<Matches(const std::string& glob)> glob;
  std::function<std::optional<int>(void)> clock_state;  // of adjtimex: 0 synchronised, else not
  std::function<TimeNs()> now;
  std::function<uint64_t()> descriptors_max;
  std::function<bool()> has_openat2;
  std::function<Status(const std::string& address)> connect;  // "unix:PATH" or "HOST:PORT"
  // GET of an address and a path: the body of a 200.
  std::function<Result<std::string>(const std::string& address, const std::string& path)> get;
};
// This machine's; `get` is the caller's.
Probes machine_probes();

struct DoctorOptions {
  std::string config;  // --config; empty: the default
  std::string user;    // --user; empty: culprit where there is such a user, else the caller's
};

std::vector<DoctorRow> examine(const DoctorOptions& options, const Probes& probes);

}  // namespace culprit::app
