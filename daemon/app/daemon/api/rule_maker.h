// Makes a rule of a confirmed diagnosis for the API, as `culprit confirm` does, and writes it to the site's
// folder of rules. The work runs on a separate thread, which requests stored data from the loop in parts. One
// order at a time, bounded in bytes and time.
//
// Thread: the loop's, also for callbacks. Borrows the source, which outlives it.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "app/config/rule_files.h"
#include "app/confirm/rule.h"
#include "base/status.h"
#include "io/env.h"
#include "serve/api.h"

namespace culprit::app {

struct RuleOrder {
  serve::JobRun of;
  std::string id;  // id of the diagnosis
  RuleWords words;
  RuleOptions rules;                 // rules in use
  std::vector<std::string> folders;  // configured paths of rules
  std::string scratch;               // a folder for fetched evidence, emptied before each order
};

struct MadeRule {
  ConfirmedRule rule;
  std::vector<std::string> notes;  // what the rule leaves out, where it was tried, and what was unreadable
  std::string file;                // target file of the rule; empty: no folder is writable
};

class RuleMaker {
 public:
  static constexpr TimeNs kWithinNs = 120 * kNsPerSecond;

  RuleMaker(io::Env& env, serve::ApiSource& source) : env_(env), source_(source) {}
  ~RuleMaker();

  // Errors: kBusy during another order; no such diagnosis; a rule already covers it; no sound rule.
  void make(RuleOrder order, std::function<void(Result<MadeRule>)> done);
  // Writes a new file, completely or not at all. Errors: the file exists; errors of the disk.
  void write(const MadeRule& made, std::function<void(Status)> done);
  // After a refused reload.
  void take_away(const MadeRule& made, std::function<void()> done);

  struct Link;  // shared by the loop and the thread

 private:
  void run(std::function<void(const std::shared_ptr<Link>&)> work, std::function<void(Status)> done);
  void end(const Status& status);

  io::Env& env_;
  serve::ApiSource& source_;
  std::shared_ptr<Link> link_;  // link of the last work
  std::unique_ptr<io::Worker> worker_;
  std::unique_ptr<io::Timer> deadline_;
  std::function<void(Status)> done_;
};

// The last path that is a folder writable for this process; empty: none.
std::string folder_for_rules(const std::vector<std::string>& paths);
// Writes a file that must not exist yet; readers never see a part of it.
Status write_new_file(const std::string& path, const std::string& text);

}  // namespace culprit::app
