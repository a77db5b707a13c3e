// The component of a machine in the text of lines, by words alone; used if no known sign names one. Pure.
#pragma once

#include <span>
#include <string>

#include "model/report.h"

namespace culprit::diagnose {

// The component that most of the texts (templates) name; kUnknown if no text names one.
Component component_by_words(std::span<const std::string> texts);

}  // namespace culprit::diagnose
