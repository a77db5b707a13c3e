// Captures the stacks of a job's processes on this host, above all of a hung job. Runs the program
// culprit-capture on a separate thread. Its output becomes evidence and input of the engine, like a plugin's
// findings; so do findings of states (capture_findings.h). One capture at a time.
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
#include "app/daemon/watch/own_source.h"
#include "io/env.h"
#include "model/peer.h"
#include "model/piece.h"

namespace culprit::app {

struct CaptureServiceOptions {
  const Config* config = nullptr;     // borrowed
  Recorder* recorder = nullptr;       // borrowed: known streams and new stream numbers
  ProcessWatch* processes = nullptr;  // borrowed
  std::function<void(PieceBatch&&)> take;
  std::function<void(LogLevel, const std::string&)> log;
  HelperWay way = capture_way();
};

class CaptureService {
 public:
  CaptureService(io::Env& env, CaptureServiceOptions options);
  // Does not wait for a running capture.
  ~CaptureService();

  // Does nothing if `[capture] enabled` is false.
  void capture(const peer::StacksWanted& wanted);
  void stop() { stopping_ = true; }

  struct Counters {
    uint64_t captures = 0, processes = 0, with_stacks = 0;
    uint64_t failed = 0;   // captures without a result
    uint64_t refused = 0;  // requests refused because too many waited
    uint64_t dropped = 0;  // lines that are no stacks, or beyond the limits
  };
  const Counters& counters() const { return counters_; }
  // Why the last capture of the job gave no stack, as a sentence; empty: it gave stacks, or no capture ran.
  std::string trouble_of(const std::string& job) const;

 private:
  using Asked = peer::StacksWanted;
  struct Done;
  void begin();
  void ended(const Asked& asked, Done& done);
  void add_line(const Asked& asked, const std::string& line, std::string& bytes);
  void keep_trouble(const std::string& job, const std::string& why);

  io::Env& env_;
  const CaptureServiceOptions options_;
  std::unique_ptr<io::Worker> worker_;  // created for the first capture
  std::deque<Asked> waiting_;
  bool busy_ = false, stopping_ = false;
  OwnSource source_;
  std::set<std::string> errors_reported_;
  std::map<std::string, std::string> troubles_;  // by job
  Counters counters_;
};

}  // namespace culprit::app
