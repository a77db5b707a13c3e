#include "app/jobs/normal_pools.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "app/jobs/pool_owner.h"

namespace culprit::app {
namespace {

size_t bytes_of(const detect::Pool& pool) {
  size_t out = sizeof(TaughtJob);
  for (const detect::PoolForm& form : pool.forms) out += sizeof form + form.text.size();
  return out;
}

detect::Pool empty_pool() {
  detect::Pool out;
  out.learned = true;
  return out;
}

}  // namespace

// The job's kind is the first one that it resembles.
void NormalPools::learn(Owner& owner, const TaughtJob& taught) {
  auto kind = std::ranges::find_if(owner.kinds, [&](const Kind& k) { return k.pool.resembles(taught.pool); });
  if (kind == owner.kinds.end()) {
    owner.kinds.push_back({next_kind_++, empty_pool()});
    kind = std::prev(owner.kinds.end());
  }
  kind->pool.merge(taught.pool);
}

void NormalPools::rebuild(Owner& owner) {
  owner.kinds.clear();
  for (const TaughtJob& taught : owner.taught) learn(owner, taught);
}

void NormalPools::drop_oldest(std::map<std::string, Owner>::iterator owner, std::vector<Run>& removed) {
  Owner& of = owner->second;
  const size_t bytes = bytes_of(of.taught.front().pool);
  removed.push_back({of.taught.front().job, of.taught.front().run});
  of.taught.erase(of.taught.begin());
  of.bytes -= bytes;
  bytes_ -= bytes;
  --jobs_;
  if (of.taught.empty())
    owners_.erase(owner);
  else
    rebuild(of);
}

std::vector<NormalPools::Run> NormalPools::add(TaughtJob taught) {
  std::vector<Run> removed;
  taught.pool.learned = true;
  Owner& owner = owners_[taught.owner];
  owner.turn = ++turns_;
  const auto again = std::ranges::find_if(
      owner.taught, [&](const TaughtJob& t) { return t.job == taught.job && t.run == taught.run; });
  const size_t bytes = bytes_of(taught.pool);
  owner.bytes += bytes;
  bytes_ += bytes;
  if (again != owner.taught.end()) {
    const size_t before = bytes_of(again->pool);
    owner.bytes -= before;
    bytes_ -= before;
    *again = std::move(taught);
    rebuild(owner);
  } else {
    ++jobs_;
    const std::string name = taught.owner;
    learn(owner, taught);
    const auto after = std::ranges::upper_bound(owner.taught, taught.time_ns, {}, &TaughtJob::time_ns);
    owner.taught.insert(after, std::move(taught));
    if (owner.taught.size() > kOfOwner) drop_oldest(owners_.find(name), removed);
  }
  hold_bounds(removed);
  return removed;
}

void NormalPools::hold_bounds(std::vector<Run>& removed) {
  while (bytes_ > kBytes)
    drop_oldest(std::ranges::max_element(owners_, {}, [](const auto& entry) { return entry.second.bytes; }),
                removed);
  if (owners_.size() <= kOwners) return;
  const auto idle = std::ranges::min_element(owners_, {}, [](const auto& entry) {
    return std::pair(entry.first == kTrustedOwner, entry.second.turn);
  });
  for (size_t left = idle->second.taught.size(); left > 0; --left) drop_oldest(idle, removed);
}

size_t NormalPools::forget(const std::string& job, std::optional<uint32_t> run) {
  size_t out = 0;
  const auto is_meant = [&](const TaughtJob& t) { return t.job == job && run.value_or(t.run) == t.run; };
  for (auto owner = owners_.begin(); owner != owners_.end();) {
    Owner& of = owner->second;
    const size_t before = of.taught.size();
    for (const TaughtJob& taught : of.taught)
      if (is_meant(taught)) of.bytes -= bytes_of(taught.pool), bytes_ -= bytes_of(taught.pool);
    std::erase_if(of.taught, is_meant);
    const size_t taken = before - of.taught.size();
    out += taken;
    if (taken > 0) rebuild(of);
    owner = of.taught.empty() ? owners_.erase(owner) : std::next(owner);
  }
  jobs_ -= out;
  version_ += out > 0;
  return out;
}

std::vector<uint64_t> NormalPools::kinds(const std::string& owner, const logs::JobLog* log) const {
  std::vector<uint64_t> out;
  const auto add = [&](const std::string& name) {
    const auto at = owners_.find(name);
    if (at == owners_.end()) return;
    for (const Kind& kind : at->second.kinds)
      if (!log || kind.pool.resembles(*log)) out.push_back(kind.id);
  };
  add(std::string(kTrustedOwner));
  if (owner != kTrustedOwner) add(owner);
  return out;
}

detect::Pool NormalPools::merged(const std::vector<uint64_t>& kinds) const {
  detect::Pool out = empty_pool();
  for (const auto& [name, owner] : owners_)
    for (const Kind& kind : owner.kinds)
      if (std::ranges::find(kinds, kind.id) != kinds.end()) out.merge(kind.pool);
  return out;
}

std::vector<TaughtJob> NormalPools::taught() const {
  std::vector<TaughtJob> out;
  for (const auto& [name, owner] : owners_) out.insert(out.end(), owner.taught.begin(), owner.taught.end());
  return out;
}

detect::Pool NormalPools::all() const {
  detect::Pool out = empty_pool();
  for (const auto& [name, owner] : owners_)
    for (const Kind& kind : owner.kinds) out.merge(kind.pool);
  return out;
}

}  // namespace culprit::app
