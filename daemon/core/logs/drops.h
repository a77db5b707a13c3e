// Log data of a job dropped because of limits: counted by kind, reported in sentences. Pure.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace culprit::logs {

enum class Drop : uint8_t {
  kForms,         // lines whose form exceeds the limit of forms
  kTemplates,     // lines without a template: the limit of templates was reached
  kSamples,       // first lines of templates not kept as text
  kPlaces,        // lines whose place exceeds the limit of all templates, not of their own
  kGroups,        // lines not counted by writer
  kWriters,       // lines of writers beyond the limit
  kRules,         // lines of rules not kept as text
  kTracks,        // progress lines beyond the limit of tracks
  kTrackWriters,  // progress lines beyond the limit of writers per track
  kLoops,         // writers whose iterations are no longer compared
  kOdd,           // odd iterations not kept
  kQuotedTexts,   // quoted samples whose lines are not remembered
  kCount
};

class Drops {
 public:
  void add(Drop kind, uint64_t n = 1) { counts_[static_cast<size_t>(kind)] += n; }
  uint64_t operator[](Drop kind) const { return counts_[static_cast<size_t>(kind)]; }
  Drops& operator+=(const Drops& other);
  // One sentence for each kind with drops, in the order above.
  std::vector<std::string> sentences() const;

 private:
  std::array<uint64_t, static_cast<size_t>(Drop::kCount)> counts_{};
};

}  // namespace culprit::logs
