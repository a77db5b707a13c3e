// Captures the processes of a job on this host, above all of one that does not go on: by the program
// culprit-capture, on a thread of its own. What it prints becomes evidence and input of the engine, like a
// plugin's findings, and so do findings of states (capture_findings.h). One capture at a time.
//
// Thread: the loop's, also for callbacks. Owns its worker.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "app/config/config.h"
#include "app/daemon/intake/process_watch.h"
#include "app/daemon/keep/recorder.h"
#include "app/daemon/watch/capture_link.h"
#include "io/env.h"
#include "model/peer.h"
#include "model/piece.h"

namespace culprit::app {

struct CaptureServiceOptions {
  const Config* config = nullptr;     // borrowed
  Recorder* recorder = nullptr;       // borrowed: streams that are known, and new numbers
  ProcessWatch* processes = nullptr;  // borrowed
  std::function<void(PieceBatch&&)> take;
  std::function<void(LogLevel, const std::string&)> log;
  CaptureWay way = {};
};

class CaptureService {
 public:
  CaptureService(io::Env& env, CaptureServiceOptions options);
  // Does not wait for a capture.
  ~CaptureService();

  // Does nothing where `[capture] enabled` is false.
  void capture(const peer::StacksWanted& wanted);
  void stop() { stopping_ = true; }

  struct Counters {
    uint64_t captures = 0, processes = 0, with_stacks = 0;
    uint64_t failed = 0;   // captures that gave nothing
    uint64_t refused = 0;  // requests while too many waited
    uint64_t dropped = 0;  // lines that are no stacks, or beyond the limits
  };
  const Counters& counters() const { return counters_; }
  // Why the last capture of the job gave no stack, as a sentence; empty: it gave some, or there was none.
  std::string trouble_of(const std::string& job) const;

 private:
  using Asked = peer::StacksWanted;
  struct Done;
  void begin();
  void ended(const Asked& asked, Done& done);
  void add_line(const Asked& asked, const std::string& line, std::string& bytes);
  void store(std::string bytes, TimeNs now);
  void keep_trouble(const std::string& job, const std::string& why);

  io::Env& env_;
  const CaptureServiceOptions options_;
  std::unique_ptr<io::Worker> worker_;  // made for the first capture
  std::deque<Asked> waiting_;
  bool busy_ = false, stopping_ = false;
  StreamId stream_ = kNoStream;
  uint64_t offset_ = 0;
  bool open_ = false;  // declared in this run
  std::set<std::string> errors_reported_;
  std::map<std::string, std::string> troubles_;  // by job
  Counters counters_;
};

}  // namespace culprit::app
