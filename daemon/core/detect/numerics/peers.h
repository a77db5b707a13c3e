// Which ranks hold the same model and see other samples: data-parallel peers. From the layout where it is
// known, else from what is equal: ranks that tell of the same layers and hold the same parameters. Stages
// of a pipeline and parts of a tensor so become groups of their own; shards of parameters, of which no two
// are equal, stay together by their layers. Owned by one detector; one thread.
#pragma once

#include <vector>

#include "core/detect/numerics/detector.h"
#include "core/detect/numerics/window.h"

namespace culprit::core::numerics {

class Peers {
 public:
  explicit Peers(Layout layout) : layout_(std::move(layout)) {}

  struct Group {
    std::vector<uint32_t> slots;  // ascending; empty: taken apart
    uint64_t key = 0;             // of the layers that its ranks tell of
    bool settled = false;         // its parameters were seen, or the layout says it
  };
  // Puts ranks that are seen for the first time into groups. Groups stay where they are; new ones come last.
  void take(const Frame& frame, const Window& window);
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
  std::map<uint32_t, size_t> by_number_;  // of the layout
  std::vector<Group> groups_;
  std::vector<uint32_t> group_of_;  // by slot
  std::vector<Keys> fronts_;        // by group, of the frame under way
};

}  // namespace culprit::core::numerics
