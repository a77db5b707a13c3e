#include "respond/slurm/spare_pool.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

namespace culprit::respond::slurm {
namespace {

constexpr std::chrono::milliseconds kLockWithin{200};  // commands of another thread may take 15 s

}  // namespace

std::optional<uint32_t> SparePool::nodes() const {
  const int64_t nodes = nodes_;
  if (wanted_ == 0 || nodes < 0) return std::nullopt;
  return static_cast<uint32_t>(nodes);
}

SlurmResult<uint32_t> SparePool::count(const Commands& commands) const {
  const auto seen = commands.reservation(kName, partition_);
  if (!seen) return tl::unexpected(seen.error());
  return seen->nodes;
}

SlurmResult<SparePool::Spares> SparePool::read(const Commands& commands) const {
  const auto seen = commands.reservation(kName, partition_);
  if (!seen) return tl::unexpected(seen.error());
  auto hosts = commands.expand(seen->node_list);
  if (!hosts) return tl::unexpected(hosts.error());
  return Spares{std::move(*hosts), seen->partition};
}

std::vector<std::string> SparePool::hosts() const {
  const std::lock_guard lock(hosts_mutex_);
  return hosts_;
}

// Slurm replaces a spare that is drained, so the names are read again and again.
void SparePool::read_hosts(const Commands& commands) {
  auto spares = nodes_ > 0 ? read(commands) : Spares{};
  if (!spares) return;
  const std::lock_guard lock(hosts_mutex_);
  hosts_ = std::move(spares->hosts);
}

// Slurm has no reservation of no nodes.
SlurmResult<uint32_t> SparePool::resize(const Commands& commands, uint32_t from, uint32_t to) const {
  SlurmResult<void> written;
  const std::string name = fmt::format("ReservationName={}", kName);
  if (to == 0) {
    written = commands.write({"delete", name});
  } else if (from > 0) {
    written = commands.write({"update", name, fmt::format("NodeCnt={}", to)});
  } else {
    std::vector<std::string> words{"create",
                                   "reservation",
                                   name,
                                   "Users=root",
                                   "StartTime=now",
                                   "Duration=UNLIMITED",
                                   "Flags=REPLACE_DOWN",
                                   fmt::format("NodeCnt={}", to)};
    if (!partition_.empty()) words.push_back("PartitionName=" + partition_);
    written = commands.write(std::move(words));
  }
  if (!written) return tl::unexpected(written.error());
  return count(commands);  // read back: Slurm may give fewer
}

// Slurm refuses a number beyond its idle nodes, so it is asked for fewer then.
SlurmResult<uint32_t> SparePool::grow(const Commands& commands, uint32_t from, uint32_t to) const {
  SlurmResult<uint32_t> out = from;
  for (uint32_t more = to - from; more > 0; more /= 2) {
    out = resize(commands, from, from + more);
    if (out || out.error().kind != SlurmError::Kind::kRefused) return out;
  }
  return out;
}

SlurmResult<uint32_t> SparePool::hand_over(const Commands& commands, uint32_t nodes, TimeNs now) {
  const std::unique_lock lock(mutex_, kLockWithin);
  if (!lock || wanted_ == 0) return 0u;
  const auto seen = count(commands);
  if (!seen) return 0u;
  const uint32_t left = *seen - std::min(*seen, nodes);
  nodes_ = *seen;
  if (left == *seen) return 0u;
  handed_over_ns_ = now;
  const auto is_now = resize(commands, *seen, left);
  if (!is_now) return is_now;
  nodes_ = *is_now;
  return *seen - std::min(*seen, *is_now);
}

std::optional<std::string> SparePool::fill(const Commands& commands, TimeNs now, bool job_waits) {
  const std::unique_lock lock(mutex_, kLockWithin);
  const uint32_t wanted = wanted_;
  if (!lock || wanted == 0) return std::nullopt;
  const bool early =
      (filled_ns_ != kNoTime && now - filled_ns_ < kFillEvery) || now - handed_over_ns_ < kAfterHandOver;
  if (early) return std::nullopt;
  filled_ns_ = now;
  const auto seen = count(commands);
  if (seen) nodes_ = *seen;
  auto is_now = seen;
  if (seen && *seen < wanted && !job_waits) is_now = grow(commands, *seen, wanted);
  if (seen && *seen > wanted) is_now = resize(commands, *seen, wanted);
  if (is_now) nodes_ = *is_now;
  read_hosts(commands);
  const std::string trouble = is_now ? "" : is_now.error().text;
  const bool is_new = trouble != trouble_;
  trouble_ = trouble;
  if (!trouble.empty()) {
    if (!is_new) return std::nullopt;
    return fmt::format("the pool {} has {} of {} nodes: {}", kName, std::max<int64_t>(nodes_, 0), wanted,
                       trouble);
  }
  if (*is_now == *seen) return std::nullopt;
  return fmt::format("the pool {} has {} of {} nodes, {} before", kName, *is_now, wanted, *seen);
}

}  // namespace culprit::respond::slurm
