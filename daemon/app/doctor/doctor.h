// Finds problems that would prevent the daemon from observing a job, with the command that fixes each: one
// row per check. Facts about the machine come through Probes, so tests can replace them. Blocks; any thread.
// Does not change the machine.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "app/config/config.h"
#include "app/jobs/process_view.h"

namespace culprit::app {

enum class Health : uint8_t { kOk, kWarn, kFail };
std::string_view to_string(Health health);  // "ok", "warn", "fail"

struct DoctorRow {
  std::string check;  // short name from a fixed set, such as "inotify"
  Health health = Health::kOk;
  std::string what;    // one sentence
  std::string remedy;  // a shell command for root; empty: no problem
};

// The daemon's user, which determines the readable and writable files.
struct Account {
  std::string name;
  uint32_t uid = 0;
  std::vector<uint32_t> gids;
};

// Facts about a path after following links.
struct PathFacts {
  int error = 0;  // errno; if set, the other fields are unknown
  bool folder = false, regular = false, link = false;
  uint32_t mode = 0, uid = 0, gid = 0;
  // Additional permissions of an ACL after its mask, by id (4 read, 2 write, 1 search).
  std::map<uint32_t, uint32_t> users = {}, groups = {};
};

// The file system of a path that may not exist yet.
struct DiskFacts {
  uint64_t free_bytes = 0, free_files = 0;
  uint64_t own_bytes = 0;  // size of the files below the path
};

struct DoctorRequest {
  std::string address;  // "unix:PATH" or "HOST:PORT"
  std::string path;
  std::string token = {};  // empty: none
  std::string cert = {};   // file with the server's certificate, for HTTPS; empty: HTTP
};

struct Probes {
  // The account by name; "": the caller's account.
  std::function<std::optional<Account>(const std::string& name)> account;
  std::function<PathFacts(const std::string& path)> path;
  std::function<std::optional<DiskFacts>(const std::string& path)> disk;
  // A file's text without trailing white space; nothing if unreadable.
  std::function<std::optional<std::string>(const std::string& path)> text;
  struct Matches {
    std::vector<std::string> files;    // files that match the glob, including links
    std::vector<std::string> folders;  // folders to list and watch
    bool cut = false;                  // the lists are incomplete
  };
  std::function<Matches(const std::string& glob)> glob;
  // Whether the kernel reports a synchronised clock; nothing if unknown.
  std::function<std::optional<bool>()> clock_synchronised;
  std::function<TimeNs()> now;
  std::function<uint64_t()> descriptors_max;
  std::function<bool()> has_openat2;
  // Path of an installed helper program that only the daemon starts; nothing: not installed.
  std::function<std::optional<std::string>(const std::string& name)> helper;
  std::function<ProcessView()> processes;  // as visible to the caller
  // See network_namespace(); "self": the caller's namespace, taken as the daemon's.
  std::function<std::optional<uint64_t>(const std::string& pid)> network;
  std::function<Status(const std::string& address)> connect;  // "unix:PATH"
  // The body of an HTTP GET.
  std::function<Result<std::string>(const DoctorRequest& request)> get;
};
Probes machine_probes();  // of this machine

struct DoctorOptions {
  std::string config;  // --config; empty: the default
  std::string user;    // --user; empty: the user culprit if it exists, else the caller
};

std::vector<DoctorRow> examine(const DoctorOptions& options, const Probes& probes);

}  // namespace culprit::app
