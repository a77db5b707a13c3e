// The current verdict of each run, for alerts and a controller. A run is read from the records when its
// diagnoses may have changed. Subscribers get the state instead of the change, so a kill at any moment loses
// and doubles nothing.
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
  // `engine` may be null: then the owners of jobs are unknown.
  VerdictFeed(Recorder& recorder, EngineWorker* engine) : recorder_(recorder), engine_(engine) {}

  using Subscriber = std::function<void(std::span<const RunVerdict>)>;
  void subscribe(Subscriber subscriber) { subscribers_.push_back(std::move(subscriber)); }
  // Also gets verdicts that wait for their announcement: RunVerdict::settled is false.
  void subscribe_early(Subscriber subscriber) { early_.push_back(std::move(subscriber)); }

  // Call after the events are in the records.
  void on_events(const std::vector<LiveEvent>& events);
  // The verdict of a run may have changed.
  void look_at(const std::string& job, uint32_t run);
  // The engine has ingested all data from before the start; earlier, subscribers get nothing. `since_ns`:
  // also publishes runs with diagnoses since then; kNoTime: no such runs.
  void restored(TimeNs since_ns);
  // Called each second: repeats failed reads of the records.
  void beat();
  // Ends publishing. Unpublished verdicts are read at the next start: see restored().
  void stop() { stopped_ = true; }
  // Subscribers have everything up to now.
  bool is_idle() const {
    return restored_ && since_ns_ == kNoTime && !reading_ && waiting_.empty() && unread_.empty();
  }

 private:
  void read();
  void add_owners(std::shared_ptr<std::vector<RunVerdict>> verdicts);
  void publish(const std::vector<RunVerdict>& verdicts);
  void catch_up();

  Recorder& recorder_;
  EngineWorker* engine_;
  std::vector<Subscriber> subscribers_, early_;
  std::set<records::JobRunId> waiting_;
  std::set<records::JobRunId> unread_;  // could not be read; they wait again from the next beat on
  bool reading_ = false, catching_up_ = false, restored_ = false, stopped_ = false;
  TimeNs since_ns_ = kNoTime;  // verdicts since this time are not read yet
};

}  // namespace culprit::app
