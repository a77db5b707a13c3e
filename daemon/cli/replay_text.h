// What `culprit replay` prints, as text and as JSON (formats.md section 8). Pure; any thread.
#pragma once

#include <string>
#include <vector>

#include "core/replay/judge.h"
#include "core/replay/plan.h"

namespace culprit::cli {

struct ReplayView {
  replay::Plan plan;
  std::string command;  // template of a run; empty: none
  replay::Odds odds;
};

// The template with {hosts} (by commas), {nhosts}, {phase} and {group} filled in.
std::string replay_command(const ReplayView& view, const replay::GroupRun& run);

std::string plan_text(const ReplayView& view);
std::string plan_json(const ReplayView& view);
std::string judgement_text(const ReplayView& view, const std::vector<replay::GroupRun>& runs,
                           const replay::Judgement& judged);
std::string judgement_json(const ReplayView& view, const std::vector<replay::GroupRun>& runs,
                           const replay::Judgement& judged);

}  // namespace culprit::cli
