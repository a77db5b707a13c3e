#include "core/detect/flight/flight_dumps.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "base/limits.h"

namespace culprit::flight {

namespace {

// Copied files lose their modification time, so the operations' times decide first.
std::pair<TimeNs, TimeNs> latest(const FlightDump& dump) {
  TimeNs last = kNoTime;
  for (const FlightOp& op : dump.ops) last = std::max(last, op.created_ns);
  return {last, dump.written_ns};
}

// Whether two hosts found one dump in a shared folder. Then its path does not identify the rank's host.
bool found_twice(const FlightDump& a, const FlightDump& b) {
  return a.host_guessed && b.host_guessed && a.host != b.host && a.file == b.file && latest(a) == latest(b);
}

}  // namespace

void FlightDumps::add(FlightDump dump, std::vector<Problem>& problems) {
  const uint32_t rank = dump.rank;
  const auto known = of_rank_.find(rank);
  const size_t before = known == of_rank_.end() ? 0 : dumps_[known->second].ops.size();
  const auto pass_over = [&](const FlightDump& d, std::string what) {
    problems.push_back({d.file, std::nullopt, "passed over: " + std::move(what)});
  };
  if (ops_ - before + dump.ops.size() > limits::kFlightOps)
    return pass_over(dump, "the dumps of other ranks fill the memory");
  if (known == of_rank_.end()) {
    of_rank_[rank] = dumps_.size();
    dumps_.push_back(std::move(dump));
  } else {
    FlightDump& old = dumps_[known->second];
    const bool shared = found_twice(old, dump);
    if (latest(dump) >= latest(old)) std::swap(old, dump);
    if (shared) old.host.reset();
    if (dump.file != old.file) pass_over(dump, fmt::format("rank {} left a later dump too", rank));
  }
  ops_ += dumps_[of_rank_[rank]].ops.size() - before;
}

const FlightDump* FlightDumps::of(uint32_t rank) const {
  const auto at = of_rank_.find(rank);
  return at == of_rank_.end() ? nullptr : &dumps_[at->second];
}

TimeNs FlightDumps::last_ns() const {
  TimeNs last = kNoTime;
  for (const FlightDump& dump : dumps_) last = std::max(last, latest(dump).first);
  return last;
}

}  // namespace culprit::flight
