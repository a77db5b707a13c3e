// Option --code of `culprit run --retries`: reads the file's revisions when an attempt begins, fails or runs
// for long. A file that cannot be read changes nothing; the reason is printed once. One thread.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "app/run/code.h"
#include "base/time.h"

namespace culprit::cli {

class CodeUpdate {
 public:
  // `path` empty: no option. `within`: as --code-within; 0: a running attempt is never ended.
  CodeUpdate(std::string path, TimeNs within) : path_(std::move(path)), within_(within) {}

  // The revision of the next attempt; `attempts`: all before it.
  std::string next_revision(const std::vector<app::Attempt>& attempts);
  // What may follow the last one of `attempts`, which failed.
  recover::CodeChoice choice(const std::vector<app::Attempt>& attempts);
  // Whether the running attempt, the last of `attempts`, ends for a pending revision: it waits for longer
  // than `within`, and a checkpoint was written since. `saved_ns`: as in RunAgain; may be empty.
  bool is_due(const std::vector<app::Attempt>& attempts, const std::function<TimeNs()>& saved_ns);
  // Whether is_due() was true for the attempt of this number.
  bool ended(uint32_t attempt) const { return ended_ == attempt; }

 private:
  app::CodeFile read();
  void say(const std::string& line);

  const std::string path_;
  const TimeNs within_;
  std::string told_;
  uint32_t ended_ = 0;
};

}  // namespace culprit::cli
