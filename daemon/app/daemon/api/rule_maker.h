// Makes a rule of a confirmed diagnosis for the API, as `culprit confirm` does, and writes it to the site's
// folder of rules. The work runs on a thread of its own; what the daemon keeps is asked for on the loop,
// a part at a time. One order at a time, bounded in bytes and time.
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
  std::string id;  // of the diagnosis
  RuleWords words;
  RuleOptions rules;                 // in use
  std::vector<std::string> folders;  // configured paths of rules
  std::string scratch;               // a folder for fetched evidence, emptied before each order
};

struct MadeRule {
  ConfirmedRule rule;
  std::vector<std::string> notes;  // what it leaves out, where it was tried, what could not be read
  std::string file;                // where it belongs; empty: no folder can be written to
};

class RuleMaker {
 public:
  static constexpr TimeNs kWithinNs = 120 * kNsPerSecond;

  RuleMaker(io::Env& env, serve::ApiSource& source) : env_(env), source_(source) {}
  ~RuleMaker();

  // Errors: kBusy while another order is under way; no such diagnosis; a rule knows it; no sound rule.
  void make(RuleOrder order, std::function<void(Result<MadeRule>)> done);
  // A new file, whole or not at all. Errors: there is one already; the disk's.
  void write(const MadeRule& made, std::function<void(Status)> done);
  // After a refused reload.
  void take_away(const MadeRule& made, std::function<void()> done);

  struct Link;  // between the loop and the thread

 private:
  void run(std::function<void(const std::shared_ptr<Link>&)> work, std::function<void(Status)> done);
  void end(const Status& status);

  io::Env& env_;
  serve::ApiSource& source_;
  std::shared_ptr<Link> link_;  // of the last work
  std::unique_ptr<io::Worker> worker_;
  std::unique_ptr<io::Timer> deadline_;
  std::function<void(Status)> done_;
};

// The last of the paths that is a folder this process may write to; empty: none.
std::string folder_for_rules(const std::vector<std::string>& paths);
// Writes a file that must not exist yet; readers see all of it or none.
Status write_new_file(const std::string& path, const std::string& text);

}  // namespace culprit::app
