// The folders of a `culprit run`, closed to others:
//
//   <root>/<job>/           the run, with .culprit-run; kept when the job failed
//     job/job.toml          what `culprit diagnose <root>/<job>/job` reads
//     job/<host>/           output, NCCL's warnings, dumps, torchrun's logs
//     members/              how each `culprit run` of the job ended
//     private/<host>/       state, configuration and log of the host's daemon
//   <runtime>/              sockets and pipes, on this host
//   /dev/shm/culprit-…      rings
//
// A lock on members/<host>.<n>.lock shows that a member runs; the kernel drops it with the process. Nothing
// follows links, and a run's folder that belongs to another user or that others may write to is refused.
// Blocking; one thread.
#pragma once

#include <string>
#include <vector>

#include "app/run/launch.h"
#include "base/status.h"

namespace culprit::app {

struct RunPlaces {
  std::string dir;     // --dir; empty: $XDG_STATE_HOME/culprit/run, else ~/.local/state/culprit/run
  std::string shared;  // --shared; empty: none
  Lookup variable;
};

class RunFolder {
 public:
  // Makes the folders. A root that cannot be written to gives way to one in /tmp, unless --dir or --shared
  // named it; `note` then says why. Changes launch.job where an earlier run has the name.
  static Result<RunFolder> create(const RunPlaces& places, Launch& launch);
  RunFolder(RunFolder&& other) noexcept;
  RunFolder& operator=(RunFolder&&) = delete;
  // Removes the sockets and rings. The run itself stays unless remove() is called.
  ~RunFolder();

  const std::string& path() const { return path_; }
  const std::string& root() const { return root_; }
  const std::string& note() const { return note_; }
  // Whether other hosts see the folder too.
  bool shared() const { return shared_; }
  std::string inputs() const { return path_ + "/job"; }
  std::string logs() const { return host_folder_; }
  std::string dumps() const { return host_folder_ + "/dumps"; }
  std::string members() const { return path_ + "/members"; }
  std::string private_folder() const { return private_; }
  const std::string& runtime() const { return runtime_; }  // empty: there is none
  // Why there is none: the folders tried, and what helps.
  const std::string& no_runtime() const { return no_runtime_; }
  const std::string& rings() const { return rings_; }  // empty: there is none
  std::string pipes() const { return runtime_.empty() ? "" : runtime_ + "/pipes"; }

  // Removes the run; of a team whose hosts do not share the folder, what this host has of it.
  void remove();

 private:
  RunFolder() = default;
  Status make(const std::string& root, Launch& launch, bool closed);
  Status make_run(const Launch& launch);
  void make_runtime(const RunPlaces& places, const Launch& launch);

  std::string root_, path_, host_folder_, private_, runtime_, rings_, note_, no_runtime_;
  std::string host_;
  bool shared_ = false, in_team_ = false, owns_runtime_ = true;
  int lock_ = -1;
};

// The default root of runs.
std::string default_run_root(const Lookup& variable);

// The inputs of the run of this name below a default root, for `culprit diagnose`. Empty: there are none.
std::string kept_run(const std::string& job, const Lookup& variable);
// The default root that holds runs; empty: none does.
std::string kept_runs_root(const Lookup& variable);

// Removes ended runs below the root beyond the newest `keep`, and the sockets of those that were killed. What
// still runs stays. Returns the names of the removed runs.
std::vector<std::string> remove_old_runs(const std::string& root, size_t keep, const Lookup& variable);

// Whether the file system of the folder is one of several machines.
bool is_network_folder(const std::string& path);

// Writes a file and renames it into its place.
Status write_run_file(const std::string& path, std::string_view text);

}  // namespace culprit::app
