// Findings and diagnoses as records of OTLP. Pure; any thread.
#pragma once

#include <string>

#include "app/jobs/live_event.h"

namespace culprit::app {

// The record of a finding or of an announced diagnosis; empty for another event.
std::string otlp_record(const LiveEvent& event);

}  // namespace culprit::app
