// Input of the rules in rules.h: all dumps of a job, each rank's open operations, the groups, and outdated
// dumps. Borrows the dumps. Pure; accepts any dumps.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/detect/flight/teams.h"
#include "model/report.h"

namespace culprit::flight {

// Open operations of a rank.
struct FlightUnder {
  bool collective = false, receive = false, send = false;
  bool none() const { return !collective && !receive && !send; }
  uint32_t first = UINT32_MAX;  // index of the operation in which it waits
};

class FlightView {
 public:
  // Appends to `problems`.
  FlightView(std::span<const FlightDump> dumps, std::vector<Problem>& problems);

  std::span<const FlightDump> dumps() const { return dumps_; }
  const std::vector<FlightTeam>& teams() const { return teams_; }  // without pipeline groups
  const FlightUnder& under(uint32_t dump) const { return under_[dump]; }
  // Whether the dump is older than the others, so the rules ignore it.
  bool older(uint32_t dump) const { return older_[dump]; }
  bool anything() const { return anything_; }  // whether any operation is open
  bool snapshot_of_work() const;
  size_t informative_dumps() const;  // dumps that the rules can use
  // Whether `accused` is more than half of the ranks; a fault affects few of many ranks.
  bool too_many(size_t accused) const { return informative_dumps() > 2 && 2 * accused > informative_dumps(); }
  // Whether any operation in (after, to] synchronises, by the dump's entries; true if the dump has none.
  bool any_synchronises(const GroupProgress& at, int64_t after, int64_t to) const;

 private:
  void look_over();
  void find_older(std::vector<Problem>& problems);

  std::span<const FlightDump> dumps_;
  std::vector<FlightUnder> under_;  // by dump
  std::vector<bool> older_;         // by dump
  std::vector<FlightTeam> teams_;
  bool anything_ = false;
};

}  // namespace culprit::flight
