// A job that continues at a much slower pace, by its progress times alone. The finding has no host, because
// all ranks slow down together. Pure.
#pragma once

#include <optional>

#include "core/detect/logs/analysis.h"
#include "core/detect/logs/view.h"
#include "model/report.h"

namespace culprit::diagnose {

// Empty if the pace is not much slower, or if lines at that time announce other work: an evaluation, a
// checkpoint, another batch size or stage.
std::optional<Diagnosis> slowdown_of(const detect::View& view, const detect::RunEnd& outcome);

}  // namespace culprit::diagnose
