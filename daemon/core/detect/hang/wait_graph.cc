#include "core/detect/hang/wait_graph.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <utility>

#include "base/check.h"

namespace culprit::hang {
namespace {

// Waits that begin within this time of each other keep the source's order.
constexpr TimeNs kSameTime = kNsPerSecond;

using OpKey = std::pair<size_t, int64_t>;  // group, number

// An operation in which ranks wait.
struct HeldOp {
  std::set<uint32_t> held;          // ranks whose first open operation this is, or may be
  std::set<uint32_t> idle, absent;  // ranks it waits for
  std::set<OpKey> next;             // operations that hold the ranks it waits for
  std::set<uint32_t> unsaid;        // ranks that wait elsewhere, and may have entered this operation
  bool open = false;                // waits for ranks whose waits are not understood
  uint32_t mark = 0, low = 0;       // state of the circle search
  bool on_path = false;
};

class Graph {
 public:
  Graph(std::span<const WaitGroup> groups, const RankFacts& ranks) : groups_(groups), ranks_(ranks) {
    choose_first();
    link();
  }

  WaitAnswer run() {
    if (device() || idle() || circle() || apart() || absent() || all_in() || idle_anywhere())
      return std::move(out_);
    return {};
  }

 private:
  bool is_idle(uint32_t rank) const {
    return ranks_.elsewhere.contains(rank) || (ranks_.lives.contains(rank) && !ranks_.waits.contains(rank));
  }

  struct Wait {
    size_t group;
    const WaitPlace* at;
  };

  static bool earlier(const WaitPlace& a, const WaitPlace& b, bool exact) {
    if (exact && a.since_ns != b.since_ns) return a.since_ns < b.since_ns;
    if (a.since_ns != kNoTime && b.since_ns != kNoTime &&
        (a.since_ns - b.since_ns > kSameTime || b.since_ns - a.since_ns > kSameTime))
      return a.since_ns < b.since_ns;
    return a.order < b.order;
  }

  // The first open operation of each rank. Times of one rank are imprecise, so a majority of ranks decides
  // the order of two groups.
  void choose_first() {
    std::map<uint32_t, std::vector<Wait>> waits;
    for (size_t g = 0; g < groups_.size(); ++g)
      for (const WaitPlace& at : groups_[g].places)
        if (at.waits_at >= 0) waits[at.rank].push_back({g, &at});
    std::map<std::pair<size_t, size_t>, int64_t> votes;
    for (const auto& [rank, list] : waits)
      for (const Wait& a : list)
        for (const Wait& b : list)
          if (a.group < b.group) votes[{a.group, b.group}] += earlier(*a.at, *b.at, false) ? 1 : -1;
    for (const auto& [rank, list] : waits) {
      const Wait* first = &list[0];
      for (const Wait& one : list) {
        if (&one == first) continue;
        const bool swap = one.group < first->group;
        const int64_t balance = swap ? votes[{one.group, first->group}] : votes[{first->group, one.group}];
        const bool exact = groups_[one.group].exact;
        const bool before =
            exact || balance == 0 ? earlier(*one.at, *first->at, exact) : swap == (balance > 0);
        if (before) first = &one;
      }
      first_[rank] = *first;
      ops_[{first->group, first->at->waits_at}].held.insert(rank);
      // Without the exact order, each wait may be the first.
      for (const Wait& one : list)
        if (!groups_[one.group].exact) ops_[{one.group, one.at->waits_at}].held.insert(rank);
    }
  }

  void link() {
    for (auto& [key, op] : ops_) {
      const WaitGroup& group = groups_[key.first];
      if (group.pairs) {
        op.open = true;
        continue;
      }
      std::set<uint32_t> seen;
      for (const WaitPlace& at : group.places) {
        seen.insert(at.rank);
        if (!op.held.contains(at.rank)) wait_for(key, at, op);
      }
      for (const uint32_t rank : group.members)
        if (!seen.contains(rank)) wait_for_unseen(rank, group.exact, op);
    }
  }
  void wait_for(const OpKey& key, const WaitPlace& at, HeldOp& op) const {
    const auto first = first_.find(at.rank);
    const bool late = at.enqueued < key.second;
    if (late && is_idle(at.rank)) {
      op.idle.insert(at.rank);
    } else if (groups_[key.first].exact && first != first_.end() && first->second.group != key.first) {
      op.next.insert({first->second.group, first->second.at->waits_at});
    } else if (late && first != first_.end()) {
      op.next.insert({first->second.group, first->second.at->waits_at});
    } else if (late) {
      op.open = true;  // it waits, according to another source
    }
  }
  void wait_for_unseen(uint32_t rank, bool exact, HeldOp& op) const {
    const auto first = first_.find(rank);
    if (is_idle(rank))
      op.idle.insert(rank);
    else if (first != first_.end() && !exact)
      op.unsaid.insert(rank);
    else if (first != first_.end())
      op.next.insert({first->second.group, first->second.at->waits_at});
    else if (ranks_.waits.contains(rank))
      op.open = true;
    else
      op.absent.insert(rank);
  }

  void take(WaitEnd end, std::set<uint32_t> ranks, const OpKey& op) {
    CULPRIT_CHECK(out_.end == WaitEnd::kNothing);  // the first answer is the only one
    CULPRIT_CHECK(op.first < groups_.size());
    out_.end = end;
    out_.ranks.assign(ranks.begin(), ranks.end());
    const std::set<uint32_t>& held = ops_[op].held;
    for (const uint32_t rank : held)
      if (!ranks.contains(rank)) out_.waiting.push_back(rank);
    out_.group = op.first;
    out_.seq = op.second;
  }

  bool device() {
    std::set<uint32_t> stuck;
    OpKey where{0, -1};
    for (size_t g = 0; g < groups_.size(); ++g) {
      const WaitGroup& group = groups_[g];
      if (group.pairs) continue;
      int64_t most = -1;
      for (const WaitPlace& at : group.places) most = std::max(most, at.completed);
      std::set<uint32_t> behind;
      for (const WaitPlace& at : group.places) {
        if (at.waits_at < 0 || at.waits_at > most || !at.synchronises || at.enqueued < at.waits_at) continue;
        behind.insert(at.rank);
        if (where.second < 0) where = {g, at.waits_at};
      }
      if (2 * behind.size() <= group.places.size()) stuck.insert(behind.begin(), behind.end());
    }
    if (stuck.empty() || 4 * stuck.size() > std::max<size_t>(4, first_.size())) return false;
    take(WaitEnd::kDevice, std::move(stuck), where);
    return true;
  }

  // The operation that holds the most ranks represents all operations that wait for these ranks.
  bool idle() {
    std::set<uint32_t> roots;
    const OpKey* most = nullptr;
    for (const auto& [key, op] : ops_) {
      if (op.idle.empty()) continue;
      roots.insert(op.idle.begin(), op.idle.end());
      if (!most || op.held.size() > ops_[*most].held.size()) most = &key;
    }
    if (!most || 2 * roots.size() > std::max<size_t>(2, first_.size())) return false;
    take(WaitEnd::kIdle, std::move(roots), *most);
    return true;
  }

  // Tarjan's search, iterative: the chain of operations may be long.
  void find_component(const OpKey& start) {
    struct Step {
      OpKey at;
      std::set<OpKey>::const_iterator next;
    };
    std::vector<Step> path;
    std::vector<OpKey> open;
    const auto enter = [&](const OpKey& key) {
      HeldOp& op = ops_[key];
      op.mark = op.low = ++marks_;
      op.on_path = true;
      open.push_back(key);
      path.push_back({key, op.next.begin()});
    };
    enter(start);
    while (!path.empty()) {
      HeldOp& op = ops_[path.back().at];
      if (path.back().next != op.next.end()) {
        const OpKey to = *path.back().next++;
        const auto known = ops_.find(to);
        if (known == ops_.end()) continue;
        if (known->second.mark == 0)
          enter(to);
        else if (known->second.on_path)
          op.low = std::min(op.low, known->second.mark);
        continue;
      }
      const OpKey done = path.back().at;
      path.pop_back();
      if (!path.empty()) ops_[path.back().at].low = std::min(ops_[path.back().at].low, op.low);
      if (op.low != op.mark) continue;
      std::vector<OpKey> component;
      do {
        CULPRIT_CHECK(!open.empty());
        component.push_back(open.back());
        ops_[open.back()].on_path = false;
        open.pop_back();
      } while (component.back() != done);
      if (component.size() > circle_.size()) circle_ = std::move(component);
    }
  }

  // In a circle, some ranks wait in one group and the rest in others. The smaller side left the common order.
  bool circle() {
    circle_.clear();
    for (auto& [key, op] : ops_)
      if (op.mark == 0) find_component(key);
    if (circle_.size() < 2) return false;
    const auto width = [&](const OpKey& key) {
      return std::max(groups_[key.first].members.size(), groups_[key.first].places.size());
    };
    const OpKey widest = *std::ranges::max_element(circle_, {}, width);
    std::set<uint32_t> wide, rest;
    for (const OpKey& key : circle_) {
      std::set<uint32_t>& side = key.first == widest.first ? wide : rest;
      side.insert(ops_[key].held.begin(), ops_[key].held.end());
    }
    OpKey where = widest;
    if (wide.size() < rest.size())
      where = *std::ranges::max_element(circle_, {}, [&](const OpKey& key) {
        return key.first == widest.first ? size_t{0} : ops_[key].held.size();
      });
    std::set<uint32_t> odd = wide.size() < rest.size() ? wide : rest;
    if (wide.size() == rest.size()) odd.clear();
    take(WaitEnd::kCircle, std::move(odd), where);
    for (const OpKey& key : circle_) {
      const std::set<uint32_t>& held = ops_[key].held;
      out_.circle.push_back({key.first, key.second, {held.begin(), held.end()}});
    }
    std::ranges::stable_sort(out_.circle, [&](const WaitAnswer::Held& a, const WaitAnswer::Held& b) {
      return width({a.group, a.seq}) > width({b.group, b.seq});
    });
    return true;
  }

  // The watchdog of an ending process prints only one of several waits. Some ranks print a wait in a wider
  // group, and none in their own groups. They left the common order only if they have equal group ranks in
  // all their groups.
  bool apart() {
    std::set<size_t> places;
    std::set<uint32_t> odd;
    std::map<size_t, std::set<uint32_t>> of_group;
    OpKey wide{0, -1}, narrow{0, -1};
    for (const auto& [key, op] : ops_)
      for (const uint32_t rank : op.unsaid) {
        const Wait& first = first_.at(rank);
        if (groups_[first.group].members.size() <= groups_[key.first].members.size()) continue;
        if (wide.second >= 0 && wide.first != first.group) return false;
        wide = {first.group, first.at->waits_at};
        if (narrow.second < 0 || op.held.size() > ops_[narrow].held.size()) narrow = key;
        odd.insert(rank);
        of_group[key.first].insert(rank);
        places.insert(place_of(key.first, rank));
      }
    if (odd.empty() || of_group.size() < 2 || 2 * odd.size() >= first_.size()) return false;
    for (const auto& [key, op] : ops_) {
      if (groups_[key.first].pairs ||
          groups_[key.first].members.size() != groups_[narrow.first].members.size())
        continue;
      for (const uint32_t rank : op.held)
        if (places.contains(place_of(key.first, rank))) return false;
    }
    const std::vector<uint32_t> apart(odd.begin(), odd.end());
    take(WaitEnd::kCircle, std::move(odd), narrow);
    out_.circle = {{wide.first, wide.second, apart}, {narrow.first, narrow.second, out_.waiting}};
    return true;
  }
  size_t place_of(size_t group, uint32_t rank) const {
    const std::vector<uint32_t>& members = groups_[group].members;
    return static_cast<size_t>(std::ranges::lower_bound(members, rank) - members.begin());
  }

  bool ends(const HeldOp& op) const { return op.next.empty() && op.idle.empty() && !op.open; }

  bool all_in() {
    const OpKey* most = nullptr;
    std::set<uint32_t> behind;
    for (const auto& [key, op] : ops_) {
      const bool whole = !groups_[key.first].members.empty() && op.absent.empty() && op.held.size() > 1;
      if (!ends(op) || !whole) continue;
      std::set<uint32_t> few = not_begun(key);
      // An operation that most devices have begun is stronger evidence than a larger operation without such a
      // split.
      const bool better =
          !most || (few.empty() == behind.empty() ? op.held.size() > ops_[*most].held.size() : !few.empty());
      if (!better) continue;
      most = &key;
      behind = std::move(few);
    }
    if (!most) return false;
    if (behind.empty()) {
      OpKey narrow{0, -1};
      std::set<uint32_t> stuck = stuck_before(*most, narrow);
      if (!stuck.empty()) {
        take(WaitEnd::kDevice, std::move(stuck), narrow);
        out_.by_members = false;
        return true;
      }
    }
    // The ranks without a report may hold these waits too.
    if (behind.empty() && lacks_) return false;
    take(WaitEnd::kAllIn, std::move(behind), *most);
    return true;
  }

  // The few ranks whose devices have not begun an operation that the other devices have begun.
  std::set<uint32_t> not_begun(const OpKey& key) const {
    std::set<uint32_t> out;
    for (const WaitPlace& at : groups_[key.first].places)
      if (at.waits_at == key.second && at.started == false) out.insert(at.rank);
    if (4 * out.size() > ops_.at(key).held.size()) out.clear();
    return out;
  }

  // Few ranks print a wait in groups whose other members wait only in `all`: the other members have finished
  // that operation. If most members print such a wait, each process printed the wait that it saw first, and
  // no rank is named.
  std::set<uint32_t> stuck_before(const OpKey& all, OpKey& where) {
    constexpr size_t kShare = 8;  // at most one in this many of the ranks in `all`
    const HeldOp& whole = ops_[all];
    std::set<uint32_t> out;
    for (const auto& [key, op] : ops_) {
      const WaitGroup& group = groups_[key.first];
      if (key.first == all.first || op.held.empty()) continue;
      if (group.exact || group.pairs || group.members.empty()) return {};
      size_t beyond = 0;
      for (const uint32_t rank : group.members)
        beyond += !op.held.contains(rank) && whole.held.contains(rank);
      if (beyond + op.held.size() < group.members.size() || beyond < op.held.size()) return {};
      out.insert(op.held.begin(), op.held.end());
      if (where.second < 0 || group.members.size() < groups_[where.first].members.size()) where = key;
    }
    return kShare * out.size() <= whole.held.size() ? out : std::set<uint32_t>();
  }

  // The one rank that all of several ends of the waits lack; else all ranks that report nothing, if
  // may_name().
  bool absent() {
    std::optional<std::set<uint32_t>> common;
    std::set<uint32_t> any;
    const OpKey* most = nullptr;
    size_t sinks = 0;
    for (const auto& [key, op] : ops_) {
      any.insert(op.absent.begin(), op.absent.end());
      if (!ends(op) || op.absent.empty()) continue;
      ++sinks;
      if (!most || op.held.size() > ops_[*most].held.size()) most = &key;
      if (!common) {
        common = op.absent;
        continue;
      }
      std::set<uint32_t> both;
      std::ranges::set_intersection(*common, op.absent, std::inserter(both, both.end()));
      common = std::move(both);
    }
    lacks_ = !any.empty();
    if (!most || ops_[*most].held.size() < 2 || 3 * any.size() > any.size() + first_.size()) return false;
    const bool one = sinks > 1 && common->size() == 1;
    if (!one && !ranks_.may_name(any)) return false;
    take(WaitEnd::kAbsent, one ? std::move(*common) : std::move(any), *most);
    return true;
  }

  // The groups' members are unknown: few of the living ranks do not wait.
  bool idle_anywhere() {
    std::set<uint32_t> few;
    for (const uint32_t rank : ranks_.lives)
      if (is_idle(rank)) few.insert(rank);
    const OpKey* most = nullptr;
    for (const auto& [key, op] : ops_) {
      if (ends(op) && !groups_[key.first].members.empty() && op.absent.empty()) return false;
      if (!most || op.held.size() > ops_[*most].held.size()) most = &key;
    }
    if (few.empty() || !most || 8 * few.size() > std::max<size_t>(8, ranks_.waits.size())) return false;
    take(WaitEnd::kIdle, std::move(few), *most);
    out_.by_members = false;
    return true;
  }

  std::span<const WaitGroup> groups_;
  const RankFacts& ranks_;
  std::map<uint32_t, Wait> first_;
  std::map<OpKey, HeldOp> ops_;
  std::vector<OpKey> circle_;
  uint32_t marks_ = 0;
  bool lacks_ = false;  // some members report nothing
  WaitAnswer out_;
};

}  // namespace

WaitAnswer follow_waits(std::span<const WaitGroup> groups, const RankFacts& ranks) {
  return Graph(groups, ranks).run();
}

}  // namespace culprit::hang
