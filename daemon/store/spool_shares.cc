#include "store/spool_shares.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace culprit::store {

namespace {

// Share of a segment below which rewriting it frees too little for its cost.
constexpr double kWorthwhile = 1.0 / 8;

template <class Key>
std::vector<Key> largest_first(const std::map<Key, double>& sizes) {
  std::vector<std::pair<double, Key>> sorted;
  for (const auto& [key, size] : sizes) sorted.emplace_back(-size, key);
  std::sort(sorted.begin(), sorted.end());
  std::vector<Key> keys;
  for (auto& [size, key] : sorted) keys.push_back(std::move(key));
  return keys;
}

double share_of(const std::map<Owner, uint64_t>& owners, const Victim& victim) {
  double all = 0, taken = 0;
  for (const auto& [owner, bytes] : owners) {
    all += static_cast<double>(bytes);
    if (victim.takes(owner)) taken += static_cast<double>(bytes);
  }
  return all > 0 ? taken / all : 0;
}

}  // namespace

std::string to_string(const std::optional<Principal>& uid) {
  return uid ? culprit::to_string(*uid) : "the host";
}

void SpoolShares::add(uint64_t segment, const Owner& owner, uint64_t bytes) {
  if (bytes > 0) bytes_[segment][owner] += bytes;
}

void SpoolShares::evict(uint64_t segment, const Victim& victim) {
  const auto found = bytes_.find(segment);
  if (found == bytes_.end()) return;
  std::erase_if(found->second, [&](const auto& entry) { return victim.takes(entry.first); });
  if (found->second.empty()) bytes_.erase(found);
}

void SpoolShares::join(uint64_t from, uint64_t into) {
  const auto found = bytes_.find(from);
  if (found == bytes_.end()) return;
  for (const auto& [owner, bytes] : found->second) add(into, owner, bytes);
  bytes_.erase(from);
}

bool SpoolShares::has(uint64_t segment, const Victim& victim) const {
  const auto found = bytes_.find(segment);
  return found != bytes_.end() && share_of(found->second, victim) > 0;
}

bool SpoolShares::is_only_of(uint64_t segment, const Victim& victim) const {
  const auto found = bytes_.find(segment);
  if (found == bytes_.end()) return false;
  return std::all_of(found->second.begin(), found->second.end(),
                     [&](const auto& entry) { return victim.takes(entry.first); });
}

std::optional<uint64_t> SpoolShares::first_with(const Owner& owner) const {
  for (const auto& [segment, owners] : bytes_)
    if (owners.contains(owner)) return segment;
  return std::nullopt;
}

std::optional<Victim> SpoolShares::choose(const Segments& segments,
                                          const std::vector<size_t>& candidates) const {
  std::map<std::optional<Principal>, double> of_uid;
  std::map<Owner, double> of_owner;
  for (const auto& segment : segments) {
    const auto found = bytes_.find(segment.number);
    if (found == bytes_.end()) continue;
    double raw = 0;
    for (const auto& [owner, bytes] : found->second) raw += static_cast<double>(bytes);
    for (const auto& [owner, bytes] : found->second) {
      const double stored = static_cast<double>(bytes) / raw * static_cast<double>(segment.size);
      of_uid[owner.uid] += stored;
      of_owner[owner] += stored;
    }
  }
  if (of_owner.size() < 2) return std::nullopt;
  const auto oldest = [&](Victim victim) -> std::optional<Victim> {
    for (const size_t which : candidates) {
      const auto found = bytes_.find(segments[which].number);
      if (found == bytes_.end() || share_of(found->second, victim) < kWorthwhile) continue;
      victim.segment = which;
      return victim;
    }
    return std::nullopt;
  };
  const std::optional<Principal> uid = largest_first(of_uid).front();
  for (const Owner& owner : largest_first(of_owner))
    if (owner.uid == uid)
      if (auto victim = oldest({.uid = uid, .job = owner.job})) return victim;
  return oldest({.uid = uid});
}

}  // namespace culprit::store
