// Writes advice for the processes of a job on this host, as the collector or a person asks. Off
// unless `[act] advise` is set. Only users who have processes of the job here get a record, each an own one.
//
// Thread: the loop's, also for callbacks. Owns its worker.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "app/config/config.h"
#include "app/daemon/intake/process_watch.h"
#include "io/env.h"
#include "model/peer.h"

namespace culprit::app {

struct AdviceServiceOptions {
  const Config* config = nullptr;                               // borrowed
  ProcessWatch* processes = nullptr;                            // borrowed
  std::function<std::string(const std::string& job)> known_as;  // this host's id of the collector's job
  std::function<void(LogLevel, const std::string&)> log;
};

class AdviceService {
 public:
  AdviceService(io::Env& env, AdviceServiceOptions options) : env_(env), options_(std::move(options)) {}
  // Does not wait for a running request.
  ~AdviceService();

  // Users whose processes can read it now; not empty. An error: nothing was written, with the reason.
  using Answer = std::function<void(Result<std::vector<uint32_t>>)>;
  void advise(peer::Advise request, Answer answer = {});

  struct Counters {
    uint64_t written = 0;  // records
    uint64_t refused = 0;  // requests: not allowed, no such processes, too many waited
  };
  const Counters& counters() const { return counters_; }

 private:
  void answer(const peer::Advise& request, const Result<std::vector<uint32_t>>& done, const Answer& answer);

  io::Env& env_;
  const AdviceServiceOptions options_;
  std::unique_ptr<io::Worker> worker_;  // created for the first request
  size_t waiting_ = 0;
  const std::shared_ptr<std::atomic<bool>> stopping_ = std::make_shared<std::atomic<bool>>(false);
  Counters counters_;
};

}  // namespace culprit::app
