// Asks the hang state (core/detect/hang) why a job stands, with what all sources say of it: watchdogs' lines,
// dumps of the Flight Recorder, records, NCCL RAS, stacks, and the faults that rules found. One answer, one
// finding. Pure.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/detect/flight/flight.h"
#include "core/detect/logs/analysis.h"
#include "core/detect/logs/view.h"
#include "core/detect/ras/ras_states.h"
#include "core/detect/stacks/observations.h"
#include "core/detect/stacks/stacks.h"
#include "core/diagnose/signs.h"
#include "core/rules/ruleset.h"
#include "model/rank_place.h"
#include "model/report.h"

namespace culprit::core::fuse {

struct HangContext {
  const detect::View& view;
  const rules::Ruleset* rules;  // null: the lines of watchdogs are not known
  const PlaceOfRank& place;
};

// What the detectors of the other sources say. Each may be empty.
struct HangSources {
  std::optional<flight::FlightAnswer> flight;
  std::optional<ras::RasStates::RasJudgement> ras;
  std::optional<stacks::StackAnswer> stacks;
  stacks::StackObservations stack_observations;
  std::vector<diagnose::UnprovenSign> unproven;  // lines that prove nothing by themselves
};

// Peers refuse each other because NCCL offers them its loopback address: the settings, not the network. Such
// a line is at level info and is no fault by itself.
void blame_loopback(const HangContext& context, detect::Analysis& analysis);

// Whether a watchdog gave up waiting after the last progress: such a job did not end well, whatever it says.
bool timed_out_at_end(const detect::View& view, const rules::Ruleset& rules, const detect::RunEnd& outcome);

// Adds the hang state's answer to `analysis` and `report`, whose hang is what the records say of it. Findings
// that only repeat what the answer says give way to it. Returns what is missing for a better answer.
std::vector<std::string> add_hang_state(const HangContext& context, HangSources sources,
                                        detect::Analysis& analysis, Report& report);

}  // namespace culprit::core::fuse
