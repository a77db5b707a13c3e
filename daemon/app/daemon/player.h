// Plays a job's logs to a collector, as agents on its hosts would send them: an own connection for each host,
// condensed in memory (PlayAgent), at the pace of the lines' times. For load and for trying a collector.
//
// A host that has more on its way than it should waits, and so does its part of the job: the collector is
// never flooded with what it cannot take, and memory is bounded by the hosts.
//
// Thread: the loop's. Owns the agents, their connections and the worker that condenses. It reads the job's
// files while it plays, and changes nothing.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "app/daemon/play_agent.h"
#include "app/job_slices.h"
#include "forward/forwarder.h"
#include "io/env.h"
#include "io/tls.h"

namespace culprit::app {

// Of job time: lines that were written within it are taken together. A real agent tells at once of a fault.
constexpr TimeNs kPlayStep = 10 * kNsPerSecond;

struct PlayOptions {
  std::string to;          // "HOST:PORT"
  std::string job, root;   // its id; the folder of its files
  std::string tls_folder;  // HOST.pem, HOST.key and ca.pem; empty: plain, to loopback only
  double speed = 1;        // seconds of the job in one of ours; 0: as fast as it goes
  bool evidence = false;
  std::shared_ptr<rules::Ruleset> rules;
};

struct PlayFigures {
  size_t hosts = 0, connected = 0, finished = 0;  // finished: all of it is condensed
  uint64_t frames = 0, acknowledged = 0;          // of both logs; made so far
  uint64_t bytes = 0, log_bytes = 0, lines = 0;   // of frames; of the logs that they tell of
  TimeNs job_ns = 0, job_all_ns = 0;              // played, and how long it lasted
  TimeNs begun_ns = kNoTime;                      // monotonic, like these: the first line was due
  TimeNs given_ns = kNoTime;                      // the last frame was sent
  TimeNs done_ns = kNoTime;                       // and acknowledged
  std::string trouble;                            // of a connection that is not there
};

class Player {
 public:
  // Where a host cannot be played: its certificate is not there.
  static Result<std::unique_ptr<Player>> start(io::Env& env, PlayOptions options, SlicedJob job);
  ~Player();

  PlayFigures figures() const;
  std::function<void()> on_given, on_done;            // once each
  std::function<void(const Error& error)> on_failed;  // a file cannot be read: it goes no further

 private:
  struct Host;
  struct Work;
  Player(io::Env& env, PlayOptions options, SlicedJob job);
  Status add_hosts();
  void tick();
  bool all_connected();
  void pump();
  bool is_due(const Host& host) const;
  void worked(Work& work);
  void look_for_end();
  TimeNs job_now() const;

  io::Env& env_;
  const PlayOptions options_;
  const std::shared_ptr<const SlicedJob> job_;  // read by the worker too
  std::vector<std::unique_ptr<Host>> hosts_;
  PlayFigures figures_;
  size_t cursor_ = 0;  // the next host to be looked at
  TimeNs started_ns_ = kNoTime, looked_ns_ = kNoTime;
  bool busy_ = false, failed_ = false;
  std::unique_ptr<io::Timer> timer_;
  std::unique_ptr<io::Worker> worker_;  // goes first
};

}  // namespace culprit::app
