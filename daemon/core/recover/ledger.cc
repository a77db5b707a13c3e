#include "core/recover/ledger.h"

#include <algorithm>
#include <utility>

namespace culprit::recover {
namespace {

constexpr size_t kEnds = 256;  // more than a day's attempts

}  // namespace

std::string place_of(const Failure& f) {
  std::string out;
  for (const auto* names : {&f.advice.hosts, &f.advice.devices})
    for (const std::string& name : *names) out += (out.empty() ? "" : " ") + name;
  return out.empty() ? f.first_to_fail : out;
}

Restart turned(const Failure& failure, std::optional<int64_t> failed_at_before) {
  const bool same_step = failure.iteration && failed_at_before && *failure.iteration == *failed_at_before;
  return failure.advice.kind == Restart::kSame && same_step ? Restart::kNever : failure.advice.kind;
}

void Ledger::add(const Failure& failure) {
  if (failure.progress == Progress::kMade) {
    roots_.clear();
    fruitless_ = 0;
  }
  before_ = roots_;
  if (failure.preempted) return add_end(failure.end_ns);
  if (failure.advice.kind != Restart::kLater) ++fruitless_;  // the service failed, not the attempt
  add_end(failure.end_ns);
  Entry& entry = roots_[failure.root];
  // Unknown progress counts only against the number of attempts.
  if (failure.progress != Progress::kUnknown) ++entry.times;
  if (std::string place = place_of(failure); !place.empty()) ++entry.places[std::move(place)];
  entry.iteration = failure.iteration;
  entry.ran_on = failure.ran_on;
  entry.first_to_fail = failure.first_to_fail;
  if (entry.first_ns == kNoTime) entry.first_ns = failure.end_ns;
}

void Ledger::add_end(TimeNs end_ns) {
  ends_.push_back(end_ns);
  if (ends_.size() > kEnds) ends_.pop_front();
}

const Ledger::Entry* Ledger::before(const std::string& root) const {
  const auto at = before_.find(root);
  return at == before_.end() ? nullptr : &at->second;
}

const Ledger::Entry& Ledger::now(const std::string& root) const {
  static const Entry kNone;
  const auto at = roots_.find(root);
  return at == roots_.end() ? kNone : at->second;
}

size_t Ledger::ended_within(TimeNs span, TimeNs until) const {
  return static_cast<size_t>(std::ranges::count_if(ends_, [&](TimeNs end) {
    return end != kNoTime && until != kNoTime && end <= until && until - end < span;
  }));
}

}  // namespace culprit::recover
