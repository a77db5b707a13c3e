// Asks NCCL's RAS service of the jobs on this host, and hands what it says of each job on as a line of
// evidence: in the daemon's network namespace itself, in those of pods through culprit-capture. A thread of
// its own asks, so the loop never waits. Without a listener a question costs a refused connection.
//
// An answer is about the job of the process whose socket gave it, or else of the processes on this host that
// it names; these belong to the user who answered. One host of a job asks at the full rate, the others less
// often: each answer has the whole job.
//
// Thread: the loop's. Owns its worker.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "app/config/config.h"
#include "app/daemon/intake/process_watch.h"
#include "app/daemon/keep/recorder.h"
#include "app/daemon/watch/capture_link.h"
#include "io/env.h"
#include "model/piece.h"

namespace culprit::app {

struct RasServiceOptions {
  const Config* config = nullptr;     // borrowed
  Recorder* recorder = nullptr;       // borrowed: streams that are known, and new numbers
  ProcessWatch* processes = nullptr;  // borrowed; outlives the service
  std::function<void(PieceBatch&&)> take;
  std::function<void(const std::string&)> inform;
  CaptureWay way = {};  // into network namespaces of pods
  // Called with the input that is parsed next ("RAS of user 1001"), and with "" after it; on the thread.
  std::function<void(std::string_view input)> reading;
  // Whether the input is not read, since memory ran out in it before; on the thread.
  std::function<bool(std::string_view input)> left_out;
};

class RasService {
 public:
  RasService(io::Env& env, RasServiceOptions options);
  // Waits for the thread, which gives up at once.
  ~RasService();

  void reload();
  void stop();
  // A job does not go on: asks now, unless it asked a few seconds ago.
  void hurry();

  struct Counters {
    uint64_t answers = 0;   // understood, and of a job on this host
    uint64_t failures = 0;  // cut off, late, or no RAS
    uint64_t foreign = 0;   // of no job on this host, or about processes of another user
  };
  const Counters& counters() const { return counters_; }

 private:
  struct Shared;
  struct Round;
  void start();
  void ask();
  void answered(Round&& round);
  void give(std::string line);

  io::Env& env_;
  const RasServiceOptions options_;
  const std::shared_ptr<Shared> shared_;  // with the thread
  std::unique_ptr<io::Worker> worker_;
  std::unique_ptr<io::Timer> timer_;
  Counters counters_;
  std::string trouble_;  // the last one that was logged
  StreamId stream_ = kNoStream;
  uint64_t offset_ = 0;
  TimeNs asked_ns_ = kNoTime;  // the last question
  uint32_t fast_rounds_ = 0;   // in a row, without news
  bool asking_ = false, stopping_ = false, open_ = false;
  bool again_ = false;  // after the answer that somebody hurried for
};

}  // namespace culprit::app
