// What the rules of flight.cc look at: all dumps of a job, what each rank has under way, its groups, and
// which dumps were written at another time than the others. Borrows them. Pure; they may be anything.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/detect/flight_teams.h"
#include "model/report.h"

namespace culprit::detect {

// What a rank has under way.
struct FlightUnder {
  bool collective = false, receive = false, send = false;
  bool none() const { return !collective && !receive && !send; }
  uint32_t first = UINT32_MAX;  // index of the operation in which it waits
};

class FlightScene {
 public:
  // `problems` are added to.
  FlightScene(std::span<const FlightDump> dumps, std::vector<Problem>& problems);

  std::span<const FlightDump> dumps() const { return dumps_; }
  const std::vector<FlightTeam>& teams() const { return teams_; }  // without those of pipelines
  const FlightUnder& under(uint32_t dump) const { return under_[dump]; }
  // Written at another time than the others: it says nothing.
  bool older(uint32_t dump) const { return older_[dump]; }
  bool anything() const { return anything_; }  // is under way
  bool snapshot_of_work() const;
  size_t told() const;  // dumps that say something
  // One of many is the culprit; most of them are not.
  bool too_many(size_t accused) const { return told() > 2 && 2 * accused > told(); }
  // Of the operations (after, to] of which the dump has entries; true where it has none.
  bool any_synchronises(const Standing& at, int64_t after, int64_t to) const;

 private:
  void look_over();
  void find_older(std::vector<Problem>& problems);

  std::span<const FlightDump> dumps_;
  std::vector<FlightUnder> under_;  // by dump
  std::vector<bool> older_;         // by dump
  std::vector<FlightTeam> teams_;
  bool anything_ = false;
};

}  // namespace culprit::detect
