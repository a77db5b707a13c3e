// Undefined words of a plugin's finding (formats.md section 7), each with the word that was probably meant.
// Pure.
#pragma once

#include <string>
#include <vector>

#include "model/plugin_finding.h"

namespace culprit::app {

// "finding fan.stopped: component 'fann' is not defined in plugin.h; did you mean 'fan'?"
std::vector<std::string> faults_of_words(const PluginFinding& finding);

}  // namespace culprit::app
