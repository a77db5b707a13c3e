// Delivers the engine's events to the index of the store, to subscribers and to the log. Sends requests for
// evidence and records to the agents of the hosts.
//
// Thread: the loop's. Owner: Daemon. Borrows its parts, which outlive it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "app/daemon/collector/collector_service.h"
#include "app/daemon/engine/engine_worker.h"
#include "app/daemon/keep/recorder.h"
#include "app/daemon/self/log.h"
#include "serve/api.h"

namespace culprit::app {

struct EventDeliveryParts {
  Recorder* recorder = nullptr;
  EngineWorker* engine = nullptr;
  CollectorService* collector = nullptr;  // null: no agents
  Log* log = nullptr;
  // Captures the processes of a job on this host; may be empty.
  std::function<void(const peer::StacksWanted& wanted)> capture = {};
  // Called when the events are recorded, or will be before any later query; may be empty.
  std::function<void(const std::vector<LiveEvent>&)> recorded = {};
};

class EventDelivery {
 public:
  explicit EventDelivery(EventDeliveryParts parts) : parts_(std::move(parts)) {}

  // Publishes later events to the API's subscribers too.
  void publish_to(serve::Api& api) { api_ = &api; }
  void deliver(const std::vector<LiveEvent>& events);

 private:
  void publish(const LiveEvent& event);
  void publish_if_new(const LiveEvent& event);
  void want_evidence(const LiveEvent& event);
  void record(const LiveEvent& event);
  void record_findings(std::vector<LiveEvent> findings);
  void record_pool(const std::shared_ptr<const PoolChange>& change);

  EventDeliveryParts parts_;
  serve::Api* api_ = nullptr;
};

// The row of a job in the index.
records::JobRow job_row(const LiveJobSummary& job);

}  // namespace culprit::app
