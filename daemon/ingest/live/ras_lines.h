// Reads {"kind":"ras",…} (formats.md section 4) from the object of a trace line. Strict: a wrong type, a list
// beyond the limits of a state or a process without an entry is an error. Pure; any thread.
#pragma once

#include <simdjson.h>

#include "base/status.h"
#include "model/ras.h"

namespace culprit::ingest {

// All but the host and the time of the line.
Result<RasState> read_ras_line(simdjson::dom::object object);

}  // namespace culprit::ingest
