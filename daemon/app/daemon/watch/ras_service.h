// Queries NCCL's RAS service of the jobs on this host, and emits each job's state as a line of evidence.
// Works in the daemon's network namespace directly, in those of pods through culprit-capture. A separate
// thread queries, so the loop never waits. Without a listener a query costs a refused connection.
//
// An answer belongs to the job of the process that owns the socket. Otherwise it belongs to the job of the
// processes on this host that the answer names, which must be the answering user's. One host of a job queries
// at the full rate, the others less often: each answer covers the whole job.
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
#include "app/daemon/watch/own_source.h"
#include "io/env.h"
#include "model/piece.h"

namespace culprit::app {

struct RasServiceOptions {
  const Config* config = nullptr;     // borrowed
  Recorder* recorder = nullptr;       // borrowed: known streams and new stream numbers
  ProcessWatch* processes = nullptr;  // borrowed; outlives the service
  std::function<void(PieceBatch&&)> take;
  std::function<void(const std::string&)> inform;
  HelperWay way = capture_way();  // access to network namespaces of pods
  // Called on the thread with the name of the input before it is parsed ("RAS of user 1001"), and with ""
  // afterwards.
  std::function<void(std::string_view input)> reading;
  // Whether to skip the input because memory ran out in it before; on the thread.
  std::function<bool(std::string_view input)> left_out;
};

class RasService {
 public:
  RasService(io::Env& env, RasServiceOptions options);
  // Waits for the thread, which stops at once.
  ~RasService();

  void reload();
  void stop();
  // A job hangs: queries now, except within a few seconds after the last query.
  void hurry();

  struct Counters {
    uint64_t answers = 0;   // answers that were parsed and belong to a job on this host
    uint64_t failures = 0;  // cut off, late, or no RAS
    uint64_t foreign = 0;   // answers about no job on this host, or about processes of another user
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
  const std::shared_ptr<Shared> shared_;  // shared with the thread
  std::unique_ptr<io::Worker> worker_;
  std::unique_ptr<io::Timer> timer_;
  Counters counters_;
  std::string trouble_;  // the last logged problem
  OwnSource source_;
  TimeNs asked_ns_ = kNoTime;  // the last question
  uint32_t fast_rounds_ = 0;   // consecutive rounds without a change
  bool asking_ = false, stopping_ = false;
  bool again_ = false;  // query again soon after the answer requested by hurry()
};

}  // namespace culprit::app
