// Template mining by shape and column. Forms are kept as they are until settle(), which joins two kinds:
// forms of one punctuation whose words differ in columns that vary enough, and forms of equal words with
// other names, holes and brackets between. So neither names nor groups depend on order or shard, as they do
// where a tree of first tokens is grown online (Drain: He et al., ICWS 2017). Wildcards count as equal; a
// template's name is a hash of its text; templates, ids, words and text are capped; what a cluster absorbed
// can be traced. Words of state, outcome or error never vanish in a hole. One thread at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/logs/miner_thresholds.h"

namespace culprit::logs {

using ClusterId = uint32_t;  // dense, from 0, for the life of a miner

class Miner {
 public:
  Miner();
  explicit Miner(const MinerThresholds& thresholds);
  ~Miner();
  Miner(Miner&&) noexcept;
  Miner& operator=(Miner&&) noexcept;

  // Adds `count` messages of one form; gives its cluster. The same form always gives a cluster that resolves
  // to the same one.
  ClusterId add(std::string_view form, uint64_t count);

  // Joins clusters that prove to be one template now that more is known. Call before reading texts.
  // Repeatable; ids given out stay valid through resolve().
  void settle();

  // The cluster that `id` belongs to now (itself, or the one that absorbed it).
  ClusterId resolve(ClusterId id) const;
  // Of a resolved cluster: its template with "<*>" holes, the hash of that text, the messages it holds.
  const std::string& text(ClusterId id) const;
  uint64_t name(ClusterId id) const;
  uint64_t count(ClusterId id) const;
  // All resolved clusters, in order of their first message.
  std::vector<ClusterId> clusters() const;
  // Ids ever given out; valid ids are below.
  size_t size() const;
  // Messages that went into a catch-all, one per number of words, since limits::kTemplates (or the bound on
  // text) was reached.
  uint64_t folded() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace culprit::logs
