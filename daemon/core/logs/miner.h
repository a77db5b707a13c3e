// Template mining by shape and column. Forms stay separate until settle(), which joins forms of equal
// punctuation whose words differ only in columns with many values. It also joins forms of equal words that
// differ only in names, holes and brackets between. Unlike with an online tree of first tokens (Drain: He et
// al., ICWS 2017), neither names nor groups depend on order or shard. All wildcards are equal. A template's
// name is a hash of its text. Templates, ids, words and text have limits; resolve() finds the template of
// each absorbed cluster. Words of state, outcome or error never become a hole. One thread at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/logs/miner_thresholds.h"

namespace culprit::logs {

using ClusterId = uint32_t;  // dense, from 0, valid for the life of a miner

class Miner {
 public:
  Miner();
  explicit Miner(const MinerThresholds& thresholds);
  ~Miner();
  Miner(Miner&&) noexcept;
  Miner& operator=(Miner&&) noexcept;

  // Adds `count` messages of one form; returns its cluster. Clusters of the same form resolve to the same
  // cluster.
  ClusterId add(std::string_view form, uint64_t count);

  // Joins clusters that belong to one template. Call before reading texts. Repeatable; earlier ids stay valid
  // through resolve().
  void settle();

  // The current cluster of `id`: itself, or the one that absorbed it.
  ClusterId resolve(ClusterId id) const;
  // For a resolved cluster: its template with "<*>" holes, the hash of that text, the number of messages.
  const std::string& text(ClusterId id) const;
  uint64_t name(ClusterId id) const;
  uint64_t count(ClusterId id) const;
  // All resolved clusters, in order of their first message.
  std::vector<ClusterId> clusters() const;
  // Number of assigned ids; all ids are smaller.
  size_t size() const;
  // Messages in a catch-all (one per number of words) after limits::kTemplates or the limit of text was
  // reached.
  uint64_t folded() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace culprit::logs
