// Which verdict of each run stands, for alerts and a controller. A run is read from the records when its
// diagnoses may have changed. Subscribers get the state and not the change: a kill at any moment loses and
// doubles none.
//
// Thread: the loop's, also for callbacks. Borrows its parts, which outlive it.
#pragma once

#include <functional>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "app/daemon/alerts/run_verdict.h"
#include "app/daemon/engine/engine_worker.h"
#include "app/daemon/keep/recorder.h"
#include "app/jobs/live_event.h"

namespace culprit::app {

class VerdictFeed {
 public:
  // `engine` may be null: then no owner of a job is known.
  VerdictFeed(Recorder& recorder, EngineWorker* engine) : recorder_(recorder), engine_(engine) {}

  using Subscriber = std::function<void(std::span<const RunVerdict>)>;
  void subscribe(Subscriber subscriber) { subscribers_.push_back(std::move(subscriber)); }

  // After the events are in the records.
  void on_events(const std::vector<LiveEvent>& events);
  // The verdict of a run may have changed.
  void look_at(const std::string& job, uint32_t run);
  // The engine has all that was before the start. Until then subscribers get nothing. `since_ns`: also
  // runs with diagnoses from then on; kNoTime: none of them.
  void restored(TimeNs since_ns);
  // Each second: reads again where the records failed.
  void beat();
  // Subscribers get nothing more. What was not published is read at the next start: see restored().
  void stop() { stopped_ = true; }
  // Subscribers have everything up to now.
  bool is_idle() const { return restored_ && since_ns_ == kNoTime && !reading_ && waiting_.empty(); }

 private:
  void read();
  void add_owners(std::shared_ptr<std::vector<RunVerdict>> verdicts);
  void publish(const std::vector<RunVerdict>& verdicts);
  void catch_up();

  Recorder& recorder_;
  EngineWorker* engine_;
  std::vector<Subscriber> subscribers_;
  std::set<records::JobRunId> waiting_;
  bool reading_ = false, catching_up_ = false, restored_ = false, stopped_ = false;
  TimeNs since_ns_ = kNoTime;  // what happened from then on is not read yet
};

}  // namespace culprit::app
