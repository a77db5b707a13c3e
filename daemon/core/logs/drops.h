// What a job's logs lost to the bounds of what is kept: counted by kind, reported in a sentence. Pure.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace culprit::logs {

enum class Drop : uint8_t {
  kForms,         // lines whose form is one more than are kept
  kTemplates,     // lines for which there is no template left
  kSamples,       // first lines of templates not kept as text
  kPlaces,        // lines whose place is not kept, below the bound for one template
  kGroups,        // lines not counted by who wrote them
  kWriters,       // lines of writers beyond the limit
  kRules,         // lines of rules not kept as text
  kTracks,        // lines that count in one more track than are followed
  kTrackWriters,  // the same, by writer
  kLoops,         // writers whose iterations are not compared any more
  kOdd,           // odd iterations not kept
  kQuotedTexts,   // quoted samples whose lines are not remembered
  kCount
};

class Drops {
 public:
  void add(Drop kind, uint64_t n = 1) { counts_[static_cast<size_t>(kind)] += n; }
  uint64_t operator[](Drop kind) const { return counts_[static_cast<size_t>(kind)]; }
  Drops& operator+=(const Drops& other);
  // One for each kind that dropped anything, in the order above.
  std::vector<std::string> sentences() const;

 private:
  std::array<uint64_t, static_cast<size_t>(Drop::kCount)> counts_{};
};

}  // namespace culprit::logs
