#include "core/detect/comm/hang.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

namespace culprit::comm {
namespace {

// Limit of stored open operations: a few per rank of the largest jobs.
constexpr size_t kOpen = 1 << 18;

struct Wait {
  uint32_t rank = 0;  // index
  const Slot* slot = nullptr;
  const CommRecord* record = nullptr;
};

const Slot* slot_of(const Cluster& cluster, uint32_t rank, uint32_t channel, uint32_t peer) {
  for (const Slot& slot : cluster.ranks()[rank].slots)
    if (slot.channel == channel && slot.peer == peer) return &slot;
  return nullptr;
}

class Search {
 public:
  explicit Search(const Cluster& cluster) : cluster_(cluster) {}

  void add(const CommRecord& record) {
    const uint32_t rank = cluster_.find_rank(record.rank);
    if (rank == kNone) return;
    const bool p2p = is_p2p(record.op);
    for (const Slot& slot : cluster_.ranks()[rank].slots) {
      if (slot.comm != record.comm || slot.peer != (p2p ? record.peer : kNone)) continue;
      if (p2p && slot.sends != (record.op == CommOp::kSend)) continue;
      // The record is outdated if the rank entered the next operation, or if the exit arrived before the
      // entry.
      if (slot.entered > record.seq + 1 || slot.left > record.seq) return;
      waits_.push_back({rank, &slot, &record});
      waiting_.insert(rank);
      return;
    }
  }

  // `snapshot`: no operation of the trace was recorded at both entry and exit, so an open one is rare and
  // significant.
  std::optional<Stuck> run(bool snapshot) {
    if (waits_.empty()) return std::nullopt;
    accuse();
    const size_t missing = host_.size();
    leave_out_explained();
    Stuck out;
    out.waiting = waiting_.size();
    out.since_ns = INT64_MAX;
    for (const Wait& w : waits_)
      out.since_ns = std::min(out.since_ns, static_cast<int64_t>(w.record->start_ns));
    const auto& accused = device_.empty() ? host_ : device_;
    out.on_device = !device_.empty();
    // A running job also has ranks inside operations. The job is stuck if every rank is inside an operation
    // or awaited by others, apart from lost records. It is also stuck if devices did not leave the last
    // operation.
    size_t present = 0;
    for (const RankInfo& r : cluster_.ranks()) present += !r.slots.empty();
    const size_t stuck = waiting_.size() + missing;
    const bool enough = snapshot ? 2 * stuck >= present : 64 * stuck >= 63 * present;
    if (!enough && !(snapshot && !device_.empty())) return std::nullopt;
    const CommRecord* in = waits_.front().record;
    // If many ranks are missing at once, their records are missing or the trace was cut off; none is a
    // culprit.
    if (accused.size() <= std::max<size_t>(1, cluster_.ranks().size() / 4) || one_host(accused)) {
      uint32_t most = 0;
      for (const auto& [rank, how] : accused) {
        out.ranks.push_back(rank);
        if (how.first > most) most = how.first, in = how.second;
        out.absent = out.absent || cluster_.ranks()[rank].slots.empty();
      }
    }
    out.comm = in->comm;
    out.seq = in->seq;
    out.op = in->op;
    for (const Wait& w : waits_)
      if (w.record->comm == out.comm && w.record->seq == out.seq && w.record->op == out.op &&
          !accused.contains(w.rank))
        out.in.push_back(w.rank);
    return out;
  }

 private:
  using Accused = std::map<uint32_t, std::pair<uint32_t, const CommRecord*>>;

  bool one_host(const Accused& accused) const {
    const uint32_t host = accused.empty() ? kNone : cluster_.ranks()[accused.begin()->first].host;
    return host != kNone && std::all_of(accused.begin(), accused.end(), [&](const auto& a) {
             return cluster_.ranks()[a.first].host == host;
           });
  }

  static void add_to(Accused& accused, uint32_t rank, const CommRecord* record, uint32_t by) {
    auto& [count, in] = accused[rank];
    if (count == 0) in = record;
    count += by;
  }

  // Waiting ranks of one operation share their evidence, so each operation is evaluated once.
  struct WaitGroup {
    const Wait* first = nullptr;
    std::vector<uint32_t> ranks;  // indices of the ranks in it
  };

  void accuse() {
    // By channel, rank of one side, and number.
    std::map<std::tuple<uint32_t, uint32_t, uint64_t>, WaitGroup> held;
    std::vector<const WaitGroup*> order;  // longest wait first
    for (const Wait& w : waits_) {
      const uint32_t side = w.slot->peer == kNone ? kNone : w.rank;
      WaitGroup& one = held[{w.slot->channel, side, w.record->seq}];
      if (!one.first) one.first = &w, order.push_back(&one);
      one.ranks.push_back(w.rank);
    }
    for (const WaitGroup* one : order)
      one->first->slot->peer == kNone ? accuse_members(*one) : accuse_peer(*one);
  }

  void accuse_peer(const WaitGroup& held) {
    const Wait& w = *held.first;
    const uint32_t peer = cluster_.find_rank(w.slot->peer);
    const Slot* other = slot_of(cluster_, peer, w.slot->channel, cluster_.ranks()[w.rank].rank);
    if ((!other || other->entered <= w.record->seq) && !waiting_.contains(peer))
      add_to(host_, peer, w.record, 1);
  }

  void accuse_members(const WaitGroup& held) {
    const CommRecord& in = *held.first->record;
    const uint32_t channel = held.first->slot->channel;
    bool others_left = false, all_in = true, went_on = false;
    for (const uint32_t m : cluster_.comms()[cluster_.channels()[channel].comm].members) {
      const Slot* slot = slot_of(cluster_, m, channel, kNone);
      if (!slot || slot->entered <= in.seq) {
        all_in = false;
        if (!waiting_.contains(m)) add_to(host_, m, &in, static_cast<uint32_t>(held.ranks.size()));
      } else if (slot->left > in.seq) {
        others_left = true;
        // The member also left a later operation. So the waiting ranks left this one too; their exits were
        // not recorded.
        went_on = went_on || slot->left > in.seq + 1;
      }
    }
    if (others_left && all_in && !went_on && is_synchronising(in.op))
      for (const uint32_t rank : held.ranks) add_to(device_, rank, &in, 1);
  }

  // Progress of a rank: operation counts per kind of stream, independent of the order of its slots. Ranks of
  // one program with equal progress are at the same place. `before`: slot whose last entry is not counted;
  // `kind` is its kind.
  struct Place {
    uint64_t state = 0, kind = 0;
  };
  Place place_of(uint32_t rank, const Slot* before) const {
    const RankInfo& info = cluster_.ranks()[rank];
    Place place{mix64(cluster_.stage(rank), 0), 0};
    std::vector<std::pair<uint64_t, uint64_t>> done;
    for (const Slot& slot : info.slots) {
      done.emplace_back(cluster_.kind_of(info, slot), slot.entered - (&slot == before ? 1 : 0));
      if (&slot == before) place.kind = done.back().first;
    }
    std::sort(done.begin(), done.end());
    for (const auto& [kind, entered] : done) place.state = mix64(place.state, mix64(kind, entered));
    return place;
  }

  // Whether the rank's next operation on a slot would also wait for another absent rank.
  bool waits_for_others(uint32_t rank, const Slot& next) const {
    const auto absent = [&](uint32_t m, uint32_t peer) {
      const Slot* slot = m == kNone ? nullptr : slot_of(cluster_, m, next.channel, peer);
      return !slot || slot->entered <= next.entered;
    };
    if (next.peer != kNone) return absent(cluster_.find_rank(next.peer), cluster_.ranks()[rank].rank);
    const CommInfo& comm = cluster_.comms()[cluster_.channels()[next.channel].comm];
    return std::any_of(comm.members.begin(), comm.members.end(),
                       [&](uint32_t m) { return m != rank && absent(m, kNone); });
  }

  // Removes missing ranks that only lack a record of their last entry. Such a rank has the progress of
  // another rank of the same program just before that rank's open operation. After this entry, the rank would
  // also wait for another absent rank. The culprit's next operation waits only for the culprit.
  void leave_out_explained() {
    if (host_.size() < 2) return;
    std::multimap<uint64_t, uint64_t> next;  // by progress: kinds of the operations entered next
    for (const Wait& w : waits_) {
      if (w.slot->entered != w.record->seq + 1) continue;
      const Place place = place_of(w.rank, w.slot);
      next.emplace(place.state, place.kind);
    }
    Accused left;
    for (const auto& [rank, how] : host_) {
      const RankInfo& info = cluster_.ranks()[rank];
      bool explained = false;
      const auto [from, to] = next.equal_range(place_of(rank, nullptr).state);
      for (auto it = from; it != to && !explained; ++it)
        explained = std::any_of(info.slots.begin(), info.slots.end(), [&](const Slot& slot) {
          return cluster_.kind_of(info, slot) == it->second && waits_for_others(rank, slot);
        });
      if (!explained) left.emplace(rank, how);
    }
    if (!left.empty()) host_ = std::move(left);
  }

  const Cluster& cluster_;
  std::vector<Wait> waits_;
  std::set<uint32_t> waiting_;
  Accused host_, device_;  // by rank: number of ranks that wait for it, and their first operation
};

}  // namespace

void OpenOperations::note_alive(const CommRecord& record) {
  if (record.rank >= last_ns_.size()) last_ns_.resize(record.rank + 1, 0);
  int64_t& last = last_ns_[record.rank];
  last = std::max(last, static_cast<int64_t>(std::max(record.start_ns, record.end_ns)));
}

bool OpenOperations::add(const CommRecord& record) {
  note_alive(record);
  if (record.end_ns != 0 && open_.empty()) return true;
  const Key key{record.comm, record.seq, record.rank, record.peer, static_cast<uint16_t>(record.op)};
  if (record.end_ns != 0) {
    if (open_.erase(key) == 0) return true;
    ++closed_;
    int64_t& longest = *longest_.try_emplace(mix64(record.comm, key.op), 0).first;
    longest = std::max(longest, static_cast<int64_t>(record.end_ns - record.start_ns));
    return true;
  }
  if (open_.size() >= kOpen) return false;
  CommRecord& known = open_.try_emplace(key, record).first->second;
  if (known.start_ns < record.start_ns) known = record;  // the job restarted, and its numbers began again
  return true;
}

std::optional<Stuck> OpenOperations::find(const Cluster& cluster, Stopped stopped) const {
  std::vector<const CommRecord*> ordered;
  for (const auto& [key, record] : open_) ordered.push_back(&record);
  std::sort(ordered.begin(), ordered.end(), [](const CommRecord* a, const CommRecord* b) {
    return std::tie(a->start_ns, a->rank, a->comm, a->seq) < std::tie(b->start_ns, b->rank, b->comm, b->seq);
  });
  Search search(cluster);
  for (const CommRecord* record : ordered) search.add(*record);
  const bool overdue = stopped == Stopped::kByClock || this->overdue(cluster, ordered);
  if (closed_ > 0 && !overdue) return std::nullopt;
  return search.run(closed_ == 0);
}

// Whether any operation has been open longer than all finished ones of its kind, by the last timestamp of its
// host.
bool OpenOperations::overdue(const Cluster& cluster, const std::vector<const CommRecord*>& open) const {
  std::map<uint32_t, int64_t> last;  // by host
  for (const RankInfo& r : cluster.ranks())
    if (r.rank < last_ns_.size()) last[r.host] = std::max(last[r.host], last_ns_[r.rank]);
  return std::any_of(open.begin(), open.end(), [&](const CommRecord* record) {
    const uint32_t rank = cluster.find_rank(record->rank);
    if (rank == kNone) return false;
    const int64_t* usual = longest_.find(mix64(record->comm, static_cast<uint64_t>(record->op)));
    return last[cluster.ranks()[rank].host] - static_cast<int64_t>(record->start_ns) > (usual ? *usual : 0);
  });
}

}  // namespace culprit::comm
