// What part of a machine lines speak of, by their words alone: where no known sign tells. Pure.
#pragma once

#include <span>
#include <string>

#include "model/report.h"

namespace culprit::diagnose {

// The component that most of the texts (templates) name; kUnknown where none does.
Component component_by_words(std::span<const std::string> texts);

}  // namespace culprit::diagnose
