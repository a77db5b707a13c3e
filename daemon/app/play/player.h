// Plays a job's logs to a collector like agents on the job's hosts. Each host has its own connection; lines
// are condensed in memory (PlayAgent) at the pace of their times. For load tests and for trying a collector.
//
// A host with too many unacknowledged bytes pauses together with its part of the job. So the collector is not
// overloaded, and memory is bounded by the number of hosts.
//
// Thread: the loop's. Owns the agents, their connections and the worker that condenses. Reads the job's files
// during the play and changes nothing.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "app/offline/job_slices.h"
#include "app/play/play_agent.h"
#include "forward/forwarder.h"
#include "io/env.h"
#include "io/tls.h"

namespace culprit::app {

// Job time whose lines are ingested together; a real agent reports a fault at once.
constexpr TimeNs kPlayStep = 10 * kNsPerSecond;

struct PlayOptions {
  std::string to;          // "HOST:PORT"
  std::string job, root;   // id of the job; folder of its files
  std::string tls_folder;  // HOST.pem, HOST.key and ca.pem; empty: no TLS, loopback only
  double speed = 1;        // seconds of job time per second; 0: as fast as possible
  bool evidence = false;
  std::shared_ptr<rules::Ruleset> rules;
};

struct PlayCounters {
  size_t hosts = 0, connected = 0, finished = 0;  // finished: hosts whose lines are all condensed
  uint64_t frames = 0, acknowledged = 0;          // frames of both logs; frames: made so far
  uint64_t bytes = 0, log_bytes = 0, lines = 0;   // bytes of frames; bytes and lines of the played logs
  TimeNs job_ns = 0, job_all_ns = 0;              // played; total
  TimeNs begun_ns = kNoTime;                      // monotonic, like the next two fields: the first line was
                                                  // due
  TimeNs given_ns = kNoTime;                      // last frame sent
  TimeNs done_ns = kNoTime;                       // last frame acknowledged
  std::string trouble;                            // error of a failed connection
};

class Player {
 public:
  // Fails if a host's certificate is missing.
  static Result<std::unique_ptr<Player>> start(io::Env& env, PlayOptions options, SlicedJob job);
  ~Player();

  PlayCounters counters() const;
  std::function<void()> on_given, on_done;            // once each
  std::function<void(const Error& error)> on_failed;  // a file is unreadable: the play stops

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
  const std::shared_ptr<const SlicedJob> job_;  // also read by the worker
  std::vector<std::unique_ptr<Host>> hosts_;
  PlayCounters counters_;
  size_t cursor_ = 0;  // index of the next host to check
  TimeNs started_ns_ = kNoTime, looked_ns_ = kNoTime;
  bool busy_ = false, failed_ = false;
  std::unique_ptr<io::Timer> timer_;
  std::unique_ptr<io::Worker> worker_;  // destroyed first
};

}  // namespace culprit::app
