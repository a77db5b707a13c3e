// Ends the processes of a job on this host at the collector's request, so that the job can run again
// elsewhere. Off unless `[act] end_tasks` is set. The program culprit-end-tasks does it; one request at a
// time.
//
// Thread: the loop's, also for callbacks. Owns its worker.
#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <string>

#include "app/config/config.h"
#include "app/daemon/intake/process_watch.h"
#include "app/daemon/watch/helper_link.h"
#include "io/env.h"
#include "model/peer.h"

namespace culprit::app {

inline HelperWay end_way() { return {"culprit-end-tasks", "/run/culprit-end-tasks/socket", ""}; }

struct EndServiceOptions {
  const Config* config = nullptr;                               // borrowed
  ProcessWatch* processes = nullptr;                            // borrowed
  std::function<std::string(const std::string& job)> known_as;  // this host's id of the collector's job
  std::function<void(LogLevel, const std::string&)> log;
  HelperWay way = end_way();
};

class EndService {
 public:
  EndService(io::Env& env, EndServiceOptions options) : env_(env), options_(std::move(options)) {}
  // Does not wait for a running request.
  ~EndService();

  void end(peer::EndTasks request);
  void stop() { *stopping_ = true; }

  struct Counters {
    uint64_t requests = 0, processes = 0;  // carried out; processes that were ended
    uint64_t refused = 0;                  // requests: not allowed, or too many waited
    uint64_t failed = 0;                   // requests after which processes were left, or without an answer
  };
  const Counters& counters() const { return counters_; }

 private:
  struct Done;
  // On the worker.
  struct Asked {
    peer::EndTasks request;
    uint64_t before_ticks = 0;  // since boot: processes of the next attempt start later, and live
  };
  static Done end_in_rounds(io::Env& env, const HelperWay& way, ProcessWatch& processes, const Asked& asked,
                            const std::atomic<bool>& stop);
  void begin();
  void ended(const peer::EndTasks& request, const Done& done);

  io::Env& env_;
  const EndServiceOptions options_;
  std::unique_ptr<io::Worker> worker_;  // created for the first request
  std::deque<Asked> waiting_;
  bool busy_ = false;
  const std::shared_ptr<std::atomic<bool>> stopping_ = std::make_shared<std::atomic<bool>>(false);
  Counters counters_;
};

}  // namespace culprit::app
