// The newest Flight Recorder dump of each rank. The operations of all dumps stay within limits::kFlightOps.
// Owned by the engine; one thread; pure.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "model/flight.h"
#include "model/report.h"

namespace culprit::flight {

class FlightDumps {
 public:
  // Adds a problem for a dump that is not kept.
  void add(FlightDump dump, std::vector<Problem>& problems);
  std::span<const FlightDump> all() const { return dumps_; }
  const FlightDump* of(uint32_t rank) const;  // null: none
  // When the last operation of any dump was created; kNoTime: unknown.
  TimeNs last_ns() const;

 private:
  std::vector<FlightDump> dumps_;
  std::map<uint32_t, size_t> of_rank_;  // index into dumps_
  size_t ops_ = 0;                      // of all dumps
};

}  // namespace culprit::flight
