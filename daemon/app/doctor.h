// What would stop the daemon from seeing a job, and the command that mends it: a row for each check. What a
// machine is asked comes through Probes, so that a test can show both answers. Blocks; any thread. Nothing
// is changed on the machine.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "app/config.h"
#include "app/process_view.h"

namespace culprit::app {

enum class Health : uint8_t { kOk, kWarn, kFail };
std::string_view word(Health health);  // "ok", "warn", "fail"

struct DoctorRow {
  std::string check;  // "inotify": short, of a fixed set
  Health health = Health::kOk;
  std::string what;    // one sentence
  std::string remedy;  // a command for root's shell; empty: nothing to mend
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
  // What an ACL grants beside, with its mask applied: permissions (4 read, 2 write, 1 search) by id.
  std::map<uint32_t, uint32_t> users = {}, groups = {};
};

// Of the file system that a path is on, or would be.
struct DiskFacts {
  uint64_t free_bytes = 0, free_files = 0;
  uint64_t own_bytes = 0;  // of the files below the path
};

struct Probes {
  // By name; "": whoever runs this.
  std::function<std::optional<Account>(const std::string& name)> account;
  std::function<PathFacts(const std::string& path)> path;
  std::function<std::optional<DiskFacts>(const std::string& path)> disk;
  // A file's text without the white space at its end; nothing where it cannot be read.
  std::function<std::optional<std::string>(const std::string& path)> text;
  struct Matches {
    std::vector<std::string> files;    // that the glob matches, links among them
    std::vector<std::string> folders;  // that have to be looked into, and watched
    bool cut = false;                  // there are more
  };
  std::function<Matches(const std::string& glob)> glob;
  // Whether the kernel holds the clock for synchronised; nothing where it does not tell.
  std::function<std::optional<bool>()> clock_synchronised;
  std::function<TimeNs()> now;
  std::function<uint64_t()> descriptors_max;
  std::function<bool()> has_openat2;
  std::function<ProcessView()> processes;                     // as whoever runs this sees them
  std::function<Status(const std::string& address)> connect;  // "unix:PATH"
  // The body that a GET of an address ("unix:PATH" or "HOST:PORT") and a path is answered with.
  std::function<Result<std::string>(const std::string& address, const std::string& path)> get;
};
// This machine's; `get` is whoever's can speak HTTP.
Probes machine_probes(decltype(Probes::get) get);

struct DoctorOptions {
  std::string config;  // --config; empty: the default
  std::string user;    // --user; empty: culprit where there is such a user, else the caller's
};

std::vector<DoctorRow> examine(const DoctorOptions& options, const Probes& probes);

}  // namespace culprit::app
