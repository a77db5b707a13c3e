// The plugins of this host within the daemon. A thread of their own runs them, gets what the sources give,
// and returns findings, which become evidence and input of the engine like lines of the kernel. Without a
// plugin in the folders there is no thread. A slow plugin costs its own events; the loop never waits for one.
//
// Thread: the loop's, also for callbacks. Owns its worker.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "app/config/config.h"
#include "app/daemon/keep/recorder.h"
#include "io/env.h"
#include "model/piece.h"
#include "plughost/plugins.h"

namespace culprit::app {

struct PluginServiceOptions {
  const Config* config = nullptr;  // borrowed
  Recorder* recorder = nullptr;    // borrowed: streams that are known, and new numbers
  std::function<void(PieceBatch&&)> take;
  std::function<void(LogLevel, const std::string&)> log;
  // Any thread: a plugin within this process is entered, and left (""). May be empty.
  std::function<void(std::string_view plugin)> entering;
  std::vector<std::string> crashed;  // plugins that ended the daemon: they get a process of their own
};

class PluginService {
 public:
  PluginService(io::Env& env, PluginServiceOptions options);
  ~PluginService();

  // What the sources gave, in order.
  void append(const SharedBatch& batch);
  // Folders and tables of the configuration may have changed. Calls `done` when they are in effect, or after
  // two seconds, with a sentence for each plugin whose earlier table is. One at a time.
  void reload(std::function<void(std::vector<std::string>)> done);
  // Plugins save their state and end, for at most two seconds; then calls `done`.
  void stop(std::function<void()> done);

  // As of the last second.
  std::vector<plughost::PluginRow> rows() const;
  uint64_t dropped_batches() const;  // plugins were too slow to take them

 private:
  struct Thread;
  void start();
  void look();
  void forget_absent();
  std::string state_folder() const;
  void answer(std::vector<std::string> stored);
  void found(PluginFinding&& finding);
  std::vector<plughost::PluginTable> tables() const;

  io::Env& env_;
  const PluginServiceOptions options_;
  std::shared_ptr<Thread> thread_;  // null: no plugin
  std::unique_ptr<io::Worker> worker_;
  std::unique_ptr<io::Timer> look_timer_, reload_timer_;
  std::function<void(std::vector<std::string>)> reload_done_;  // empty: no reload is under way
  uint64_t reloads_ = 0;
  struct Stream {
    StreamId id = kNoStream;
    uint64_t offset = 0;
    bool open = false;  // declared in this run
  };
  std::map<std::string, Stream> streams_;  // of findings, by plugin
  bool stopping_ = false;
};

}  // namespace culprit::app
