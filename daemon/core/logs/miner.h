// Template mining: Drain's fixed-depth tree over masked forms (He et al., ICWS 2017), without its known faults:
// wildcards count as equal; a template's name is a hash of its text, so that it does not depend on order or shard;
// miners merge; clusters, children and tokens are capped; what a cluster absorbed can be traced.
// One thread at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace culprit::logs {

using ClusterId = uint32_t;  // dense, from 0, for the life of a miner

class Miner {
 public:
  Miner();
  ~Miner();
  Miner(Miner&&) noexcept;
  Miner& operator=(Miner&&) noexcept;

  // Adds `count` messages of one form; gives its cluster. The same form always gives a cluster that resolves to
  // the same one.
  ClusterId add(std::string_view form, uint64_t count);

  // Joins clusters that prove to be one template now that more is known. Call before reading texts. Repeatable;
  // ids given out stay valid through resolve().
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
  // Messages that went into a catch-all since limits::kTemplates was reached.
  uint64_t folded() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace culprit::logs
