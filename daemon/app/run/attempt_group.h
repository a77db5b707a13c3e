// A control group of version 2 for the processes of one `culprit run --retries`, inside the group of this
// process. It holds what neither a mark in the environment nor descent shows, and cgroup.kill ends all of it
// at once, also while it forks. Exists only where this user may write the own group: one that is delegated,
// as by `systemd-run --user --scope -p Delegate=yes`, or root's. This process itself never enters it.
// Blocking; any thread.
#pragma once

#include <sys/types.h>

#include <optional>
#include <set>
#include <string>
#include <string_view>

namespace culprit::app {

// Folder of the group of this process; empty: none of version 2. The texts are those of /proc/self/cgroup and
// /proc/self/mountinfo.
std::string own_group(std::string_view cgroup, std::string_view mountinfo);
std::string own_group();

class AttemptGroup {
 public:
  // Makes the group of the run with this mark below the folder `own`. Nothing: this user may not, or the
  // kernel has no cgroup.kill.
  static std::optional<AttemptGroup> create(const std::string& own, const std::string& mark);
  // A group that a run left; its mark.
  static std::set<std::string> marks_in(const std::string& own);
  static AttemptGroup left_by(const std::string& own, const std::string& mark);

  // Moves the calling process into the group; false: it stays where it is. Between fork and exec.
  bool enter() const;
  // Its processes and those of groups below it.
  std::set<pid_t> processes() const;
  // Sends SIGKILL to all of them.
  bool kill() const;
  // Removes the group, which must be empty, and the groups below it.
  bool remove() const;
  const std::string& folder() const { return folder_; }

 private:
  explicit AttemptGroup(std::string folder) : folder_(std::move(folder)) {}
  std::string folder_;
};

}  // namespace culprit::app
