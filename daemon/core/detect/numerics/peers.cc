#include "core/detect/numerics/peers.h"

#include <algorithm>
#include <limits>
#include <tuple>

#include "base/hash.h"

namespace culprit::numerics {

namespace {

constexpr uint32_t kNoGroup = std::numeric_limits<uint32_t>::max();

bool tells_held(const Frame& frame, const Window& window) {
  for (uint32_t column = 0; column < frame.values.size(); ++column) {
    const auto& cells = frame.values[column];
    if (window.names()[column].role == Role::kParamNorm &&
        std::any_of(cells.begin(), cells.end(), is_reported)) {
      return true;
    }
  }
  for (uint32_t number = 0; number < frame.digest_reported.size(); ++number) {
    const auto& reported = frame.digest_reported[number];
    if (window.digest_names()[number].text.starts_with("param") &&
        std::find(reported.begin(), reported.end(), true) != reported.end()) {
      return true;
    }
  }
  return false;
}

}  // namespace

void Peers::add(Group group) {
  std::sort(group.slots.begin(), group.slots.end());
  for (const uint32_t slot : group.slots) group_of_[slot] = static_cast<uint32_t>(groups_.size());
  groups_.push_back(std::move(group));
}

Peers::Keys Peers::keys(const Frame& frame, const Window& window, uint32_t slot) const {
  Keys keys{.slot = slot};
  const Names& names = window.names();
  for (uint32_t column = 0; column < frame.values.size(); ++column) {
    const double value = frame.value(column, slot);
    if (!is_reported(value)) continue;
    // Only names with a layer: one rank often reports more job metrics than its peers.
    if (names[column].layer) keys.layers += hash64(names[column].text);
    if (names[column].role != Role::kParamNorm || keys.is_held) continue;
    keys.is_held = true;
    keys.held = std::bit_cast<uint64_t>(value);
  }
  for (uint32_t number = 0; number < frame.digests.size(); ++number) {
    if (!window.digest_names()[number].text.starts_with("param")) continue;
    if (slot >= frame.digest_reported[number].size() || !frame.digest_reported[number][slot]) continue;
    keys.is_held = true;
    keys.held = frame.digests[number][slot];
    break;
  }
  return keys;
}

void Peers::by_layout(const std::vector<Keys>& fresh, const Window& window) {
  for (const Keys& keys : fresh) {
    const auto number = layout_.peers.find(window.rank(keys.slot));
    if (number == layout_.peers.end()) {
      add({.slots = {keys.slot}, .key = keys.layers, .settled = true});
      continue;
    }
    const auto known = by_number_.find(number->second);
    if (known == by_number_.end()) {
      by_number_.emplace(number->second, groups_.size());
      add({.slots = {keys.slot}, .key = keys.layers, .settled = true});
      continue;
    }
    auto& slots = groups_[known->second].slots;
    slots.insert(std::lower_bound(slots.begin(), slots.end(), keys.slot), keys.slot);
    group_of_[keys.slot] = static_cast<uint32_t>(known->second);
  }
}

// Divides ranks with the same layers into groups by equal parameters. `begin` to `end` is sorted by
// parameters.
void Peers::divide(std::vector<Keys>::const_iterator begin, std::vector<Keys>::const_iterator end) {
  const bool settled = std::any_of(begin, end, [](const Keys& k) { return k.is_held; });
  std::vector<Group> classes;
  std::vector<uint32_t> single;
  for (auto at = begin; at != end;) {
    auto next = std::find_if(at, end, [&](const Keys& k) { return k.held != at->held; });
    if (next - at == 1) {
      single.push_back(at->slot);
    } else {
      classes.push_back({.slots = {}, .key = at->layers, .settled = settled});
      for (auto k = at; k != next; ++k) classes.back().slots.push_back(k->slot);
    }
    at = next;
  }
  if (classes.empty()) {
    add({.slots = single, .key = begin->layers, .settled = settled});
    return;
  }
  // Groups of one layout have equal sizes. If not, ranks of the smaller groups have wrong parameters and
  // belong to the largest group.
  const size_t size = classes[0].slots.size();
  const bool even =
      std::all_of(classes.begin(), classes.end(), [size](const Group& c) { return c.slots.size() == size; });
  if (!even) {
    const auto largest = std::max_element(classes.begin(), classes.end(), [](const Group& a, const Group& b) {
      return a.slots.size() < b.slots.size();
    });
    std::swap(*classes.begin(), *largest);
    for (size_t i = 1; i < classes.size(); ++i) {
      classes[0].slots.insert(classes[0].slots.end(), classes[i].slots.begin(), classes[i].slots.end());
    }
    classes.resize(1);
  }
  if (classes.size() == 1) {
    classes[0].slots.insert(classes[0].slots.end(), single.begin(), single.end());
    single.clear();
  }
  for (Group& one : classes) add(std::move(one));
  for (const uint32_t slot : single) add({.slots = {slot}, .key = begin->layers, .settled = true});
}

// Caches the keys of each group's first rank for this frame, because each new rank is compared with each
// group.
void Peers::see_fronts(const Frame& frame, const Window& window) {
  while (fronts_.size() < groups_.size()) {
    const auto& slots = groups_[fronts_.size()].slots;
    fronts_.push_back(slots.empty() ? Keys() : keys(frame, window, slots.front()));
  }
}

// Adds a later rank to the group with the same layers and equal parameters.
void Peers::join(const Keys& fresh, const Frame& frame, const Window& window) {
  see_fronts(frame, window);
  constexpr size_t kNowhere = std::numeric_limits<size_t>::max();
  size_t to = kNowhere, alike = 0;
  for (size_t i = 0; i < groups_.size(); ++i) {
    if (groups_[i].slots.empty() || groups_[i].key != fresh.layers) continue;
    const bool holds = fresh.is_held && fronts_[i].is_held && fronts_[i].held == fresh.held;
    if (to == kNowhere || holds) to = i;
    alike = holds ? 1 : alike + 1;
    if (holds) break;
  }
  if (alike != 1) {
    add({.slots = {fresh.slot}, .key = fresh.layers, .settled = true});
    return;
  }
  auto& slots = groups_[to].slots;
  slots.insert(std::lower_bound(slots.begin(), slots.end(), fresh.slot), fresh.slot);
  if (slots.front() == fresh.slot) fronts_[to] = fresh;
  group_of_[fresh.slot] = static_cast<uint32_t>(to);
}

void Peers::add(const Frame& frame, const Window& window) {
  group_of_.resize(window.slots(), kNoGroup);
  std::vector<Keys> fresh;
  for (Group& group : groups_) {
    if (group.settled || group.slots.empty() || !tells_held(frame, window)) continue;
    const bool is_held = std::any_of(group.slots.begin(), group.slots.end(),
                                     [&](uint32_t slot) { return keys(frame, window, slot).is_held; });
    if (!is_held) continue;
    for (const uint32_t slot : group.slots) group_of_[slot] = kNoGroup;
    group.slots.clear();
  }
  for (uint32_t slot = 0; slot < group_of_.size(); ++slot) {
    if (group_of_[slot] == kNoGroup && frame.is_seen(slot)) fresh.push_back(keys(frame, window, slot));
  }
  if (fresh.empty()) return;
  fronts_.clear();
  if (!layout_.peers.empty()) return by_layout(fresh, window);
  std::sort(fresh.begin(), fresh.end(), [](const Keys& a, const Keys& b) {
    return std::tie(a.layers, a.held, a.slot) < std::tie(b.layers, b.held, b.slot);
  });
  for (auto at = fresh.cbegin(); at != fresh.cend();) {
    const auto next = std::find_if(at, fresh.cend(), [&](const Keys& k) { return k.layers != at->layers; });
    const bool known = std::any_of(groups_.begin(), groups_.end(),
                                   [&](const Group& g) { return !g.slots.empty() && g.key == at->layers; });
    if (known) {
      for (auto k = at; k != next; ++k) join(*k, frame, window);
    } else {
      divide(at, next);
    }
    at = next;
  }
}

}  // namespace culprit::numerics
