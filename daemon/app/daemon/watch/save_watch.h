// Tells which user's job saves: files in watched folders grow faster than logs do. Names, owners and sizes
// only; no link is followed below a given folder. A file whose size was reserved before its bytes were
// written is not noticed.
//
// Thread: that of its Env. Blocking: lists a folder at each report of a change.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "base/status.h"
#include "base/time.h"
#include "io/env.h"

namespace culprit::app {

class SaveWatch {
 public:
  // `quiet_ns`: a save is over when nothing grew for so long. `changed`: saving() has another answer now.
  SaveWatch(io::Env& env, TimeNs quiet_ns, std::function<void()> changed);

  // The folders to watch, existing subfolders apart, those that appear later included. An error: why some
  // are not watched.
  Status watch(const std::set<std::string>& folders);
  // What the kernel's reports call: looks at one watched folder.
  void look(const std::string& folder);
  // Whether files of this user grow, or, without a user, anyone's.
  bool saving(std::optional<uint32_t> uid) const { return uid ? until_.contains(*uid) : !until_.empty(); }

 private:
  struct Folder {
    std::map<uint32_t, uint64_t> bytes;  // of its files, by owner
    std::set<std::string> subfolders;
  };

  Status add(const std::string& folder);
  void grew(uint32_t uid);
  void end_saves();

  io::Env& env_;
  std::unique_ptr<io::Timer> quiet_;
  const TimeNs quiet_ns_;
  const std::function<void()> changed_;
  std::map<std::string, Folder> folders_;
  std::map<uint32_t, TimeNs> until_;  // by owner: when the save is over, monotonic
  Status unwatched_;
  std::unique_ptr<io::FolderWatch> watch_;  // last: its reports use the rest
};

}  // namespace culprit::app
