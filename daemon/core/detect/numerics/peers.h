// Groups of data-parallel peers: ranks with the same model and different samples. The layout defines them if
// known. Else ranks with the same layers and equal parameters form a group. So pipeline stages and
// tensor-parallel parts become separate groups. Parameter shards all differ; their ranks are grouped by
// layers alone. Owned by one detector; one thread.
#pragma once

#include <vector>

#include "core/detect/numerics/detector.h"
#include "core/detect/numerics/window.h"

namespace culprit::numerics {

class Peers {
 public:
  explicit Peers(Layout layout) : layout_(std::move(layout)) {}

  struct Group {
    std::vector<uint32_t> slots;  // ascending; empty: the group was split
    uint64_t key = 0;             // hash of the layers that its ranks report
    bool settled = false;         // its parameters were seen, or the layout defines it
  };
  // Assigns new ranks to groups. Groups keep their index; new groups come last.
  void add(const Frame& frame, const Window& window);
  const std::vector<Group>& groups() const { return groups_; }

 private:
  struct Keys {
    uint64_t layers = 0, held = 0;
    bool is_held = false;
    uint32_t slot = 0;
  };
  Keys keys(const Frame& frame, const Window& window, uint32_t slot) const;
  void by_layout(const std::vector<Keys>& fresh, const Window& window);
  void see_fronts(const Frame& frame, const Window& window);
  void join(const Keys& keys, const Frame& frame, const Window& window);
  void divide(std::vector<Keys>::const_iterator begin, std::vector<Keys>::const_iterator end);
  void add(Group group);

  Layout layout_;
  std::map<uint32_t, size_t> by_number_;  // by number in the layout
  std::vector<Group> groups_;
  std::vector<uint32_t> group_of_;  // by slot
  std::vector<Keys> fronts_;        // by group, of the current frame
};

}  // namespace culprit::numerics
