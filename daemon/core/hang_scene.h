// Asks the scene (core/detect/scene) what the lines of watchdogs say of a hang, and puts its answer into the
// findings and the report. Pure.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/detect/flight/flight.h"
#include "core/detect/logs/analysis.h"
#include "core/detect/logs/view.h"
#include "core/rules/ruleset.h"
#include "model/report.h"

namespace culprit::core {

struct HangContext {
  const detect::View& view;
  const rules::Ruleset& rules;
  const flight::PlaceOfRank& place;
};

// Peers refuse each other because NCCL offers them its loopback address: the settings, not the network. Such
// a line is at level info and is no fault by itself.
void blame_loopback(const HangContext& context, detect::Analysis& analysis);

// Adds the scene's answer to `analysis` and `report`. Rules that only repeat what the answer says give way to
// it. Returns what is missing for a better answer.
std::vector<std::string> add_hang_scene(const HangContext& context, detect::Analysis& analysis,
                                        Report& report);

}  // namespace culprit::core
