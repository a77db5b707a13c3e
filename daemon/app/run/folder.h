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
// Where other users may rename folders on the way to the root, as in a group's folder, the run gets logs
// alone, by descriptors that stay with it. Its private part is <runtime>/private, and what the command writes
// by path is <runtime>/files/<member>/ until the end. With --shared the private part is in <runtime> too.
//
// A lock on members/<host>.<n>.lock shows that a member runs; the kernel drops it with the process. So do
// locks on the folders of sockets and of rings, which are on this host also where the run is on a network.
// Nothing follows links, and a run's folder that belongs to another user or that others may write to is
// refused. Blocking; one thread.
#pragma once

#include <string>
#include <vector>

#include "app/run/held_folder.h"
#include "app/run/launch.h"
#include "base/status.h"
#include "base/time.h"

namespace culprit::app {

struct RunPlaces {
  std::string dir;     // --dir; empty: $XDG_STATE_HOME/culprit/run, else ~/.local/state/culprit/run
  std::string shared;  // --shared; empty: none
  Lookup variable;
  // With launch.shows_life: an earlier run without a sign of life for so long has ended.
  TimeNs silent_ns = 15 * kNsPerSecond;
};

class RunFolder {
 public:
  // Creates the folders, and removes this user's rings that no run has locked. If the root is not writable, a
  // root in /tmp replaces it, unless --dir or --shared named the root; `note` then has the reason. Changes
  // launch.job if an earlier run has the same name. With launch.shows_life, a run that has it is joined only
  // while it is active, which may take `silent_ns` to see.
  static Result<RunFolder> create(const RunPlaces& places, Launch& launch);
  RunFolder(RunFolder&& other) noexcept;
  RunFolder& operator=(RunFolder&&) = delete;
  // Removes the sockets and rings. The run's folder remains unless remove() is called.
  ~RunFolder();

  const std::string& path() const { return run_.path(); }
  const HeldFolder& root() const { return root_; }
  const std::string& note() const { return note_; }
  // Whether other hosts see the folder too.
  bool shared() const { return shared_; }
  // Whether other users may rename folders above the run.
  bool exposed() const { return exposed_; }
  const HeldFolder& held() const { return run_; }
  const HeldFolder& inputs() const { return inputs_; }
  const HeldFolder& logs() const { return logs_; }
  const HeldFolder& members() const { return members_; }
  // For programs that take paths. Empty: no folder is writable by this user alone.
  std::string files() const { return files_; }  // files of the command: NCCL's warnings, torchrun's logs
  std::string dumps() const { return files_.empty() ? "" : files_ + "/dumps"; }
  const std::string& private_folder() const { return private_; }
  // Folder that contains files(); if exposed(), one subfolder for each member on this host.
  std::string files_root() const { return exposed_ ? runtime_ + "/files" : files_; }
  const std::string& runtime() const { return runtime_; }  // empty: there is none
  // Why there is no runtime folder: the folders tried, and the remedy.
  const std::string& no_runtime() const { return no_runtime_; }
  const std::string& rings() const { return rings_; }  // empty: there is none
  std::string pipes() const { return runtime_.empty() ? "" : runtime_ + "/pipes"; }

  // Copies files that the command wrote outside of the run into the run, after the command's end. Returns the
  // bytes that could not be copied.
  uint64_t collect() const;
  // Removes the run; for a team without a shared folder, only this host's part.
  void remove();

 private:
  RunFolder() = default;
  Status make(const RunPlaces& places, const std::string& root, Launch& launch, bool closed);
  Status make_run(const RunPlaces& places, const Launch& launch);
  void make_runtime(const RunPlaces& places, const Launch& launch);
  Status place_files(const RunPlaces& places, const Launch& launch);

  HeldFolder root_, run_, inputs_, logs_, members_;
  HeldFolder held_runtime_, held_rings_;  // locked while the run uses them
  std::string files_, private_, runtime_, rings_, note_, no_runtime_;
  std::string job_, host_;
  bool shared_ = false, in_team_ = false, owns_runtime_ = true, exposed_ = false;
  int lock_ = -1;
};

// The default root of runs.
std::string default_run_root(const Lookup& variable);

// The inputs of the run with this name below a default root, for `culprit diagnose`. Empty: no such run.
std::string stored_run(const std::string& job, const Lookup& variable);
// The default root that contains runs; empty: none.
std::string stored_runs_root(const Lookup& variable);

// Removes ended runs below the root except the newest `keep`, and sockets of killed runs. Active runs remain.
// Returns the names of the removed runs.
std::vector<std::string> remove_old_runs(const HeldFolder& root, size_t keep, const Lookup& variable);

// Whether several machines share the folder's file system.
bool is_network_folder(const std::string& path);

}  // namespace culprit::app
