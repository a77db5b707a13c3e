// The plugins of this host within the daemon. A separate thread runs them, passes data of the sources to
// them, and returns findings. Findings become evidence and input of the engine like lines of the kernel.
// Without a plugin in the folders there is no thread. A slow plugin loses its own events; the loop never
// waits for one.
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
  Recorder* recorder = nullptr;    // borrowed: known streams and new stream numbers
  std::function<void(PieceBatch&&)> take;
  std::function<void(LogLevel, const std::string&)> log;
  // Called on any thread before a plugin runs in this process, and with "" afterwards. May be empty.
  std::function<void(std::string_view plugin)> entering;
  std::vector<std::string> crashed;  // plugins that crashed the daemon: each runs in a separate process
};

class PluginService {
 public:
  PluginService(io::Env& env, PluginServiceOptions options);
  ~PluginService();

  // Passes on a batch of the sources, in order.
  void append(const SharedBatch& batch);
  // Applies changed folders and tables of the configuration. Calls `done` when they are in effect, or after
  // two seconds. `done` gets a sentence for each plugin that still has its earlier table. One call at a time.
  void reload(std::function<void(std::vector<std::string>)> done);
  // Lets plugins save their state and end, for at most two seconds; then calls `done`.
  void stop(std::function<void()> done);

  // As of the last second.
  std::vector<plughost::PluginRow> rows() const;
  uint64_t dropped_batches() const;  // batches dropped because plugins were too slow

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
  std::function<void(std::vector<std::string>)> reload_done_;  // empty: no reload is running
  uint64_t reloads_ = 0;
  struct Stream {
    StreamId id = kNoStream;
    uint64_t offset = 0;
    bool open = false;  // declared in this run
  };
  std::map<std::string, Stream> streams_;  // streams of findings, by plugin
  bool stopping_ = false;
};

}  // namespace culprit::app
