#include "core/detect/scene/numbered_calls.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <set>

#include "core/detect/scene/watchdog_lines.h"

namespace culprit::scene {

// A program that errs gives few sizes: as many sizes as ranks are numbers that were not read well.
bool proves(const Group& group, const NumberedCalls& calls) {
  constexpr size_t kFewCalls = 3;
  if (!group.of.key.empty() && calls.size() <= kFewCalls) return true;
  size_t all = 0, most = 0;
  std::set<std::string> ops;
  for (const auto& [key, stands] : calls) {
    all += stands.size();
    most = std::max(most, stands.size());
    ops.insert(plain_op(stands[0]->call->op));
  }
  return ops.size() > 1 || 2 * most > all;
}

bool one_data(const NumberedCalls& calls) {
  constexpr size_t kMost = 8;  // to one
  const auto most =
      std::ranges::max_element(calls, {}, [](const auto& entry) { return entry.second.size(); });
  const std::optional<uint64_t> in = most->second[0]->call->in;
  size_t others = 0;
  for (const auto& [key, stands] : calls) {
    if (key == most->first) continue;
    others += stands.size();
    if (!in || *in < kMost || stands[0]->call->in != in) return false;
  }
  return most->second.size() >= kMost * others;
}

}  // namespace culprit::scene
