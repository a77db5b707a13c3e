// Tells when a job saves: files in watched folders grow faster than logs do. Names and sizes only; no link is
// followed below a given folder. A file whose size was reserved before its bytes were written is not noticed.
//
// Thread: that of its Env. Blocking: lists a folder at each report of a change.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>

#include "base/status.h"
#include "base/time.h"
#include "io/env.h"

namespace culprit::app {

class SaveWatch {
 public:
  // `quiet_ns`: a save is over when nothing grew for so long. `changed`: saving() has another value now.
  SaveWatch(io::Env& env, TimeNs quiet_ns, std::function<void()> changed);

  // The folders to watch, existing subfolders apart, those that appear later included. While a job saves,
  // none is removed. An error: why some are not watched.
  Status watch(const std::set<std::string>& folders);
  // What the kernel's reports call: looks at one watched folder.
  void look(const std::string& folder);
  bool saving() const { return saving_; }

 private:
  struct Folder {
    uint64_t bytes = 0;  // of its files
    std::set<std::string> subfolders;
  };

  Status add(const std::string& folder);
  void grew();

  std::unique_ptr<io::Timer> quiet_;
  const TimeNs quiet_ns_;
  const std::function<void()> changed_;
  std::map<std::string, Folder> folders_;
  bool saving_ = false;
  Status unwatched_;
  std::unique_ptr<io::FolderWatch> watch_;  // last: its reports use the rest
};

}  // namespace culprit::app
