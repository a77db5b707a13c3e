// Computes why a job stands still (core/detect/hang), from all sources: watchdog lines, Flight Recorder
// dumps, records, NCCL RAS, stacks, and faults found by rules. One answer, one finding. Pure.
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
  const rules::Ruleset* rules;  // null: watchdog lines are unknown
  const PlaceOfRank& place;
};

// Results of the detectors of the other sources. Each may be empty.
struct HangSources {
  std::optional<flight::FlightAnswer> flight;
  std::optional<ras::RasStates::RasJudgement> ras;
  std::optional<stacks::StackAnswer> stacks;
  stacks::StackObservations stack_observations;
  std::vector<diagnose::UnprovenSign> unproven;  // lines that prove nothing by themselves
};

// Peers refuse connections because NCCL offers its loopback address: a fault of the settings, not the
// network. Such a line has level info and is no fault by itself.
void blame_loopback(const HangContext& context, detect::Analysis& analysis);

// Whether a watchdog timed out after the last progress: then the job did not end well, whatever its logs
// state.
bool timed_out_at_end(const detect::View& view, const rules::Ruleset& rules, const detect::RunEnd& outcome);

// Adds the hang state's answer to `analysis` and `report`; on entry, the report's hang is that of the
// records. Findings that only repeat the answer are dropped. Returns what is missing for a better answer.
std::vector<std::string> add_hang_state(const HangContext& context, HangSources sources,
                                        detect::Analysis& analysis, Report& report);

}  // namespace culprit::core::fuse
