#include "app/jobs/jobs_without_engine.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>
#include <utility>

#include "base/text.h"

namespace culprit::app {
namespace {

constexpr TimeNs kReportEvery = 60 * kNsPerSecond;

}  // namespace

void JobsWithoutEngine::add(const std::string& id, EngineLack lack, const std::string& why,
                            const JobClaim& claim) {
  const TimeNs at = claim.at;
  const bool known = jobs_.contains(id);
  if (!known && jobs_.size() >= kListed) return;
  Job& job = jobs_[id];
  if (!known) job.since_ns = at;
  job.lack = lack;
  job.claim = claim;
  job.note = "no engine: " + why;
  job.last_ns = job.asked_ns = at;
  if (known) return;
  if (unreported_count_++ == 0)
    unreported_ = fmt::format("job {} has no engine and is kept as evidence only: {}", id, why);
}

bool JobsWithoutEngine::may_ask(const std::string& id, TimeNs at) {
  const auto known = jobs_.find(id);
  if (known == jobs_.end()) return true;
  Job& job = known->second;
  job.last_ns = std::max(job.last_ns, at);
  if (job.lack != EngineLack::kSlot) return false;
  if (at >= job.asked_ns && at - job.asked_ns < kAskEvery) return false;
  job.asked_ns = at;
  return true;
}

void JobsWithoutEngine::count(const std::string& id, uint64_t bytes, TimeNs at) {
  const auto known = jobs_.find(id);
  if (known == jobs_.end()) return;
  known->second.bytes += bytes;
  known->second.last_ns = std::max(known->second.last_ns, at);
}

void JobsWithoutEngine::note_unread(const std::string& id) {
  if (const auto known = jobs_.find(id); known != jobs_.end()) known->second.unread = true;
}

void JobsWithoutEngine::forget(TimeNs now, TimeNs silent) {
  std::erase_if(jobs_,
                [&](const auto& job) { return !job.second.waits() && now - job.second.last_ns >= silent; });
}

std::vector<std::string> JobsWithoutEngine::waiting() const {
  std::vector<std::tuple<bool, TimeNs, std::string>> order;
  for (const auto& [id, job] : jobs_)
    if (job.waits()) order.emplace_back(job.claim.old, job.since_ns, id);
  std::ranges::sort(order);
  std::vector<std::string> out;
  for (auto& [old, since, id] : order) out.push_back(std::move(id));
  return out;
}

const JobsWithoutEngine::Job* JobsWithoutEngine::find(const std::string& id) const {
  const auto known = jobs_.find(id);
  return known == jobs_.end() ? nullptr : &known->second;
}

std::optional<std::string> JobsWithoutEngine::drain_sentence(TimeNs now) {
  const bool early = reported_ns_ != kNoTime && now >= reported_ns_ && now - reported_ns_ < kReportEvery;
  if (unreported_count_ == 0 || early) return std::nullopt;
  reported_ns_ = now;
  std::string out = std::exchange(unreported_, {});
  if (const size_t more = std::exchange(unreported_count_, 0) - 1; more > 0)
    out += fmt::format("; so {} {}: `culprit jobs` lists all", more > 1 ? "have" : "has",
                       counted(more, "other job"));
  return out;
}

}  // namespace culprit::app
