// Findings and diagnoses as records of OTLP. Pure; any thread.
#pragma once

#include <string>

#include "app/jobs/live_event.h"

namespace culprit::app {

// Of a finding, or of a diagnosis that was announced; empty: the event is no such thing.
std::string otlp_record(const LiveEvent& event);

}  // namespace culprit::app
