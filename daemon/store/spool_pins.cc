#include "store/spool_pins.h"

#include <limits>
#include <map>

namespace culprit::store {

namespace {

// Limit of remembered pins: more than fit into the pinned share of a spool.
constexpr size_t kPins = 1024;

}  // namespace

void SpoolPins::add(std::optional<Principal> uid, TimeNs from, TimeNs to) {
  pins_.push_front({uid, from, to});
  if (pins_.size() > kPins) pins_.pop_back();
}

std::set<uint64_t> SpoolPins::segments(const std::vector<SpoolSegments::Segment>& all,
                                       uint64_t bytes_most) const {
  std::map<std::optional<Principal>, uint64_t> used;
  for (const Pin& pin : pins_) used[pin.uid] = 0;
  std::set<uint64_t> pinned;
  for (const Pin& pin : pins_) {
    uint64_t& bytes = used[pin.uid];
    for (size_t i = 0; i < all.size(); ++i) {
      const TimeNs end = i + 1 < all.size() ? all[i + 1].created_ns : std::numeric_limits<TimeNs>::max();
      if (all[i].created_ns > pin.to || end < pin.from || pinned.contains(all[i].number)) continue;
      if (bytes + all[i].size > bytes_most / used.size()) continue;
      bytes += all[i].size;
      pinned.insert(all[i].number);
    }
  }
  return pinned;
}

}  // namespace culprit::store
