// `culprit sweep --format html`: a page of its own with what was found and the matrix of pairs.
// Pure; any thread.
#pragma once

#include <string>

#include "app/sweep/coordinator.h"

namespace culprit::cli {

std::string sweep_page(const app::sweeping::SweepResult& result);

}  // namespace culprit::cli
