#include "core/loop_ranks.h"

#include <algorithm>

#include "base/limits.h"

namespace culprit::core {
namespace {

constexpr uint32_t kNone = 0xffffffff;

}  // namespace

void LoopRanks::add(const MetricRow& row) {
  if (row.time_ns != kNoTime) {
    if (first_ns_ == kNoTime || row.time_ns < first_ns_) first_ns_ = row.time_ns;
    last_ns_ = std::max(last_ns_, row.time_ns);
  }
  uint32_t host = kNone;
  if (!row.host.empty()) {
    if (last_host_ >= names_.size() || *names_[last_host_] != row.host) {
      const auto known = hosts_.find(std::string(row.host));
      if (known != hosts_.end()) {
        last_host_ = known->second;
      } else if (names_.size() < limits::kWriters) {
        last_host_ = static_cast<uint32_t>(names_.size());
        names_.push_back(&hosts_.emplace(row.host, last_host_).first->first);
      } else {
        last_host_ = kNone;
      }
    }
    host = last_host_;
  }
  const auto rank = host_of_.find(row.rank);
  if (rank == host_of_.end()) {
    if (host_of_.size() < limits::kCommRanks) host_of_.emplace(row.rank, host);
  } else if (host != kNone) {
    rank->second = host;
  }
}

void LoopRanks::add(const LoopEvent& event) {
  if (event.name != "device" || !event.rank) return;
  for (const EventField& field : event.fields) {
    if (field.name != "uuid" && field.name != "serial") continue;
    std::string_view name = field.json;
    if (name.starts_with('"')) name = name.substr(1, name.size() - std::min<size_t>(name.size(), 2));
    if (name.empty() || name == "null" || name.size() > limits::kNameBytes) continue;
    if (device_of_.size() < limits::kCommRanks || device_of_.contains(*event.rank))
      device_of_[*event.rank] = name;
    return;
  }
}

std::optional<std::string> LoopRanks::device_of(uint32_t rank) const {
  const auto known = device_of_.find(rank);
  return known == device_of_.end() ? std::nullopt : std::optional(known->second);
}

std::optional<std::string> LoopRanks::host_of(uint32_t rank) const {
  const auto known = host_of_.find(rank);
  if (known == host_of_.end() || known->second == kNone) return std::nullopt;
  return *names_[known->second];
}

void LoopRanks::add_summary(JobSummary& job) const {
  if (host_of_.empty()) return;
  job.hosts = std::max<uint64_t>(job.hosts, hosts_.size());
  job.ranks = std::max<uint64_t>(job.ranks, host_of_.size());
  if (first_ns_ == kNoTime) return;
  if (job.first_ns == kNoTime || first_ns_ < job.first_ns) job.first_ns = first_ns_;
  job.last_ns = std::max(job.last_ns, last_ns_);
}

// Ranks of one tensor and pipeline place hold the same parameters; ranks of an expert group, those of the
// same share.
numerics::Layout layout_of(const JobFile& job) {
  numerics::Layout layout;
  if (!job.parallel) return layout;
  const Parallel& p = *job.parallel;
  const uint64_t copies = uint64_t{std::max(p.dp, 1u)} * std::max(p.cp, 1u);
  const uint64_t world = uint64_t{std::max(p.tp, 1u)} * std::max(p.pp, 1u) * copies;
  if (world > limits::kCommRanks) return layout;
  const uint32_t tp = std::max(p.tp, 1u), ep = std::max(p.ep, 1u);
  for (uint32_t rank = 0; rank < world; ++rank) {
    const auto copy = static_cast<uint32_t>(rank / tp % copies);
    const auto stage = static_cast<uint32_t>(rank / tp / copies);
    layout.peers[rank] = rank % tp + tp * (copy % ep + ep * stage);
  }
  return layout;
}

}  // namespace culprit::core
