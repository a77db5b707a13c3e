// A person's advice to a job over the API: POST /v1/jobs/JOB/advice. A collector gives it to the agents of
// all hosts of the job; an agent to the processes of its own host, from where the ranks agree on it.
//
// Root, the daemon's user and tokens that operate may advise any job. Another user may advise the own
// processes of a job, if all data of the job is that user's.
//
// Thread: the loop's. Borrows its parts, which outlive it.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "app/config/config.h"
#include "app/daemon/collector/collector_service.h"
#include "app/daemon/engine/engine_worker.h"
#include "app/daemon/watch/advice_service.h"
#include "io/env.h"
#include "serve/api.h"

namespace culprit::app {

class AdviceApi final : public serve::AdviceSource {
 public:
  struct Parts {
    const Config* config = nullptr;
    EngineWorker* engine = nullptr;             // null: an agent
    CollectorService* collector = nullptr;      // null: no other host has an agent
    std::function<AdviceService*()> here = {};  // may return null
  };
  AdviceApi(io::Env& env, Parts parts) : env_(env), parts_(std::move(parts)) {}

  Status allowed() const override;
  void advise(const serve::AdviceRequest& request, const serve::Actor& by, Answer answer) override;
  // To the agents of these hosts, this one too; the number of others that are connected.
  size_t give(const peer::Advise& request, const std::vector<std::string>& hosts);

 private:
  void send(const peer::Advise& request, const std::vector<std::string>& hosts, Answer answer);

  io::Env& env_;
  const Parts parts_;
};

}  // namespace culprit::app
