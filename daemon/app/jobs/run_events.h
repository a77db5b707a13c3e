// The events of one run: its findings and its diagnoses. Records what was emitted, so that each change is
// emitted once and repetitions are counted.
//
// Owner: LiveJob. One thread: the engine's worker. Time is an argument.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "app/jobs/announcer.h"
#include "app/jobs/job_agents.h"
#include "app/jobs/live_event.h"
#include "core/engine.h"
#include "model/finding.h"
#include "model/report.h"

namespace culprit::app {

class RunEvents {
 public:
  // Borrowed: the current state of the run, and its agents.
  RunEvents(const LiveJobSummary& job, const JobAgents& agents) : job_(job), agents_(agents) {}

  // An event of the run without content.
  LiveEvent event(LiveEventKind kind, TimeNs now) const;
  // Appends findings as events. Returns whether one of them was new.
  bool add_findings(const std::vector<Finding>& findings, TimeNs now, std::vector<LiveEvent>& out);
  // Appends diagnoses that changed since the last call. `engine` provides device names; null: no names.
  void add_diagnoses(const Report& report, const core::Engine* engine, Announcer::At at,
                     std::vector<LiveEvent>& out);
  // A diagnosis of the run that an earlier process stored: see Announcer::load.
  void load(Verdict before);
  const Announcer& announcer() const { return announcer_; }

 private:
  struct Repeat {
    TimeNs known_until_ns = kNoTime, last_ns = kNoTime;
    uint64_t more = 0;
  };

  struct LastDiagnosis {
    Diagnosis diagnosis;
    AccusedTimes accused_ns;
  };

  LiveEvent diagnosis_event(const Announcement& announcement, const Diagnosis* diagnosis,
                            const AccusedTimes& accused, TimeNs now);
  TimeNs accused_ns(const Diagnosis& diagnosis, const std::string& host);
  AccusedTimes accused_times(const Diagnosis& diagnosis);

  const LiveJobSummary& job_;
  const JobAgents& agents_;
  std::map<std::string, TimeNs> accused_;  // by diagnosis and host: start of the accusation, for evidence
                                           // without a time
  std::map<std::string, LastDiagnosis> reported_;  // as last emitted, by id
  std::map<std::string, Repeat> repeats_;          // findings, by rule and host
  Announcer announcer_;
};

}  // namespace culprit::app
