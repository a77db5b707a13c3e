#include "core/detect/hang/numbered_calls.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <set>

#include "core/detect/hang/watchdog_lines.h"

namespace culprit::hang {

// A faulty program yields few distinct sizes; as many sizes as ranks mean misread numbers.
bool proves(const Group& group, const NumberedCalls& calls) {
  constexpr size_t kFewCalls = 3;
  if (!group.of.key.empty() && calls.size() <= kFewCalls) return true;
  size_t all = 0, most = 0;
  std::set<std::string> ops;
  for (const auto& [key, rank_states] : calls) {
    all += rank_states.size();
    most = std::max(most, rank_states.size());
    ops.insert(plain_op(rank_states[0]->call->op));
  }
  return ops.size() > 1 || 2 * most > all;
}

bool one_data(const NumberedCalls& calls) {
  constexpr size_t kMost = 8;  // ranks in the common call per other rank
  const auto most =
      std::ranges::max_element(calls, {}, [](const auto& entry) { return entry.second.size(); });
  const std::optional<uint64_t> in = most->second[0]->call->in;
  size_t others = 0;
  for (const auto& [key, rank_states] : calls) {
    if (key == most->first) continue;
    others += rank_states.size();
    if (!in || *in < kMost || rank_states[0]->call->in != in) return false;
  }
  return most->second.size() >= kMost * others;
}

}  // namespace culprit::hang
