#include "core/detect/comm/steps.h"

#include <algorithm>
#include <map>
#include <unordered_map>

#include "base/flat_map.h"

namespace culprit::comm {
namespace {

constexpr int64_t kNoStep = -1;
// Of live records: a step of a hundred blocks and forty steps, as hosts are not that far apart.
constexpr size_t kVotesKept = 4096;
constexpr size_t kMarkersKept = 1 << 16;
// Blocks of a step, where it has several: more of them would not fit into what is kept of live records.
constexpr size_t kBlocksOfStep = kVotesKept;

// What a rank entered since the operation of its marker before, with the one that ends it.
struct Block {
  uint64_t seq = 0;                        // of that one
  uint64_t kinds = 0;                      // the sum of its operations' signatures
  uint32_t size = 0, first = 0, last = 0;  // operations; by place in the line, of this batch
};

// The operations of a rank, by start, and the communicator whose operations end its blocks.
struct Line {
  std::vector<uint32_t> records;
  uint64_t marker = 0;
  bool marked = false;
  std::vector<Block> blocks;
  uint32_t usual = 0;  // the size of its blocks, but for the few and small
  std::vector<int64_t> labels;
};

// Of a marker, in order.
struct Begins {
  std::vector<uint64_t> seqs;  // whose blocks begin steps
  int64_t before = 0;
  uint64_t seen = 0, distance = 1;  // the last seq; as often as not, between those that begin

  int64_t label(uint64_t seq) const {
    const auto at = std::upper_bound(seqs.begin(), seqs.end(), seq);
    int64_t out = before + (at - seqs.begin());
    // Nobody has come so far: it begins a step where one is due.
    if (seq > seen && !seqs.empty() && seq - seqs.back() >= distance) ++out;
    return out;
  }
};

uint64_t signature(const CommRecord& r) { return mix64(r.comm, static_cast<uint64_t>(r.op) << 32 | r.peer); }

class Numbering {
 public:
  Numbering(std::vector<CommRecord>& records, StepCount& count) : records_(records), count_(count) {}

  uint64_t run() {
    for (uint32_t i = 0; i < records_.size(); ++i) lines_[records_[i].rank].records.push_back(i);
    for (auto& [rank, line] : lines_) {
      std::sort(line.records.begin(), line.records.end(),
                [this](uint32_t a, uint32_t b) { return records_[a].start_ns < records_[b].start_ns; });
      choose_marker(line);
      if (!line.marked) continue;
      cut(rank, line);
      vote(line);
    }
    if (periods_.empty()) {  // nothing repeats: it is one step
      for (CommRecord& r : records_) r.step = 0;
      return 0;
    }
    decide();
    for (const auto& [rank, line] : lines_)
      if (line.marked) vote_begins(line);
    order_begins();
    for (auto& [rank, line] : lines_)
      if (line.marked) label(line);
    join_markers();
    return write();
  }

 private:
  // The largest group that the rank is in again and again; of equals, the one it is in least often: what all
  // do together comes at the end of a step.
  void choose_marker(Line& line) {
    struct Seen {
      uint32_t size = 0, count = 0;
    };
    std::map<uint64_t, Seen> seen;
    for (const uint32_t i : line.records) {
      const CommRecord& r = records_[i];
      if (is_p2p(r.op)) continue;
      Seen& s = seen[r.comm];
      s.size = std::max(s.size, r.comm_size);
      ++s.count;
    }
    Seen best;
    for (const auto& [comm, s] : seen) {
      if (s.count < 3) continue;
      if (line.marked && (s.size < best.size || (s.size == best.size && s.count >= best.count))) continue;
      best = s;
      line.marker = comm;
      line.marked = true;
    }
  }

  void cut(uint32_t rank, Line& line) {
    Block block;
    block.size = count_.open[rank];
    for (uint32_t i = 0; i < line.records.size(); ++i) {
      const CommRecord& r = records_[line.records[i]];
      block.kinds += mix64(signature(r), 0);
      ++block.size;
      if (r.comm != line.marker || is_p2p(r.op)) continue;
      block.seq = r.seq;
      block.last = i;
      line.blocks.push_back(block);
      block = Block();
      block.first = i + 1;
    }
    count_.open[rank] = block.size;
  }

  // The size at which half of all operations are in blocks that are as large or larger: small ones in between
  // do not matter, however many they are, nor a few large ones.
  static const Block& usual_block(const Line& line) {
    std::vector<const Block*> by_size;
    uint64_t all = 0, larger = 0;
    for (const Block& b : line.blocks) by_size.push_back(&b), all += b.size;
    std::sort(by_size.begin(), by_size.end(),
              [](const Block* a, const Block* b) { return a->size > b->size; });
    for (const Block* b : by_size)
      if ((larger += b->size) * 2 >= all) return *b;
    return line.blocks.front();
  }

  // Whether what it does in that block is all that it does, but for one operation in twenty: of a kind that
  // only evaluations and checkpoints have, or that comes to rest before the block's end.
  bool is_whole(const Line& line, const Block& block) const {
    std::unordered_map<uint64_t, uint32_t> kinds;
    for (const uint32_t i : line.records) ++kinds[signature(records_[i])];
    uint64_t held = 0;
    for (uint32_t i = block.first; i <= block.last; ++i) {
      uint32_t& left = kinds[signature(records_[line.records[i]])];
      held += left;
      left = 0;
    }
    return 20 * held >= 19 * line.records.size();
  }

  // How many blocks a step has: the least number at which they repeat; 0 where one is a whole step, and
  // others only come between.
  void vote(Line& line) {
    const std::vector<Block>& blocks = line.blocks;
    auto& votes = periods_[line.marker];
    const Block& usual = usual_block(line);
    line.usual = usual.size;
    if (usual.size > 1 && is_whole(line, usual)) {
      ++votes[0];
      return;
    }
    for (size_t k = 1; 2 * k <= blocks.size() && k <= kBlocksOfStep; ++k) {
      const size_t of = blocks.size() - k - 1;
      // One record in a thousand may be lost, in steps of hundreds.
      size_t other = 0;
      for (size_t i = 1; i + k < blocks.size() && 10 * other <= 2 * of; ++i)
        other += blocks[i].kinds != blocks[i + k].kinds;
      if (of == 0 || 10 * other > 2 * of) continue;
      ++votes[static_cast<uint32_t>(k)];
      return;
    }
    ++votes[1];
  }

  // What was decided once stays, or numbers would not go on.
  void decide() {
    if (count_.markers.size() > kMarkersKept)
      std::erase_if(count_.markers, [this](const auto& one) { return !periods_.contains(one.first); });
    for (const auto& [marker, votes] : periods_) {
      const auto [at, fresh] = count_.markers.try_emplace(marker);
      if (!fresh) continue;
      at->second.period = std::max_element(votes.begin(), votes.end(), [](const auto& a, const auto& b) {
                            return a.second < b.second;
                          })->first;
    }
  }

  void vote_begins(const Line& line) {
    StepCount::Marker& marker = count_.markers[line.marker];
    if (marker.period != 0) return;
    for (const Block& b : line.blocks) {
      if (b.seq < marker.from) continue;
      StepCount::Votes& votes = marker.votes[b.seq];
      ++votes.of;
      // Forward passes alone, as an evaluation makes them, are half of a step's or less.
      votes.begins += 4 * b.size >= 3 * line.usual;
    }
  }

  // A record that was lost makes one rank see the wrong block: most ranks tell.
  void order_begins() {
    for (const auto& [key, votes] : periods_) {
      StepCount::Marker& marker = count_.markers[key];
      Begins& out = begins_[key];
      out.before = marker.before;
      std::map<uint64_t, uint32_t> distances;
      for (const auto& [seq, v] : marker.votes) {
        out.seen = seq;
        if (2 * v.begins < v.of) continue;
        if (!out.seqs.empty()) ++distances[seq - out.seqs.back()];
        out.seqs.push_back(seq);
      }
      uint32_t most = 0;
      for (const auto& [d, n] : distances)
        if (n > most) out.distance = d, most = n;
      while (marker.votes.size() > kVotesKept) {
        const StepCount::Votes& oldest = marker.votes.begin()->second;
        marker.before += 2 * oldest.begins >= oldest.of;
        marker.from = marker.votes.begin()->first + 1;
        marker.votes.erase(marker.votes.begin());
      }
    }
  }

  // A block is of the step of the operation that ends it: that of the last is still to come.
  void label(Line& line) {
    const uint32_t k = count_.markers[line.marker].period;
    const Begins& begins = begins_[line.marker];
    const auto of = [&](uint64_t seq) { return k != 0 ? static_cast<int64_t>(seq / k) : begins.label(seq); };
    line.labels.assign(line.records.size(), of(line.blocks.back().seq + 1));
    for (const Block& b : line.blocks)
      std::fill(line.labels.begin() + b.first, line.labels.begin() + b.last + 1, of(b.seq));
  }

  // Groups count from different beginnings: operations that their ranks share tell by how much.
  void join_markers() {
    struct First {
      uint64_t marker;
      int64_t label;
    };
    FlatMap<First> first(records_.size());
    std::map<std::pair<uint64_t, uint64_t>, std::map<int64_t, uint32_t>> votes;
    for (const auto& [rank, line] : lines_) {
      for (size_t i = 0; i < line.labels.size(); ++i) {
        const CommRecord& r = records_[line.records[i]];
        if (is_p2p(r.op) || line.labels[i] == kNoStep) continue;
        const auto [at, fresh] = first.try_emplace(mix64(r.comm, r.seq), {line.marker, line.labels[i]});
        if (!fresh && at->marker != line.marker)
          ++votes[{at->marker, line.marker}][line.labels[i] - at->label];
      }
    }
    std::map<uint64_t, std::vector<std::pair<uint64_t, int64_t>>> edges;
    for (const auto& [pair, list] : votes) {
      const auto best = std::max_element(list.begin(), list.end(),
                                         [](const auto& a, const auto& b) { return a.second < b.second; });
      edges[pair.first].emplace_back(pair.second, best->first);
      edges[pair.second].emplace_back(pair.first, -best->first);
    }
    for (const auto& [marker, votes_of] : periods_) {
      if (offset_.contains(marker)) continue;
      std::vector<uint64_t> queue{marker};
      offset_[marker] = 0;
      for (size_t i = 0; i < queue.size(); ++i)
        for (const auto& [to, d] : edges[queue[i]])
          if (offset_.try_emplace(to, offset_[queue[i]] - d).second) queue.push_back(to);
    }
  }

  uint64_t write() {
    uint64_t unplaced = 0;
    int64_t least = INT64_MAX;
    for (const auto& [rank, line] : lines_)
      for (const int64_t label : line.labels)
        if (label != kNoStep) least = std::min(least, label + offset_[line.marker]);
    if (!count_.origin) count_.origin = least;
    least = *count_.origin;
    for (const auto& [rank, line] : lines_)
      for (size_t i = 0; i < line.records.size(); ++i) {
        const bool known = line.marked && line.labels[i] != kNoStep;
        const int64_t step = known ? line.labels[i] + offset_[line.marker] - least : kNoStep;
        if (step >= 0 && step < kCommUnknown)
          records_[line.records[i]].step = static_cast<uint32_t>(step);
        else
          ++unplaced;
      }
    return unplaced;
  }

  std::vector<CommRecord>& records_;
  StepCount& count_;
  std::map<uint32_t, Line> lines_;
  std::map<uint64_t, std::map<uint32_t, uint32_t>> periods_;  // by marker: votes for each
  std::map<uint64_t, Begins> begins_;                         // by marker
  std::map<uint64_t, int64_t> offset_;                        // by marker
};

}  // namespace

uint64_t find_steps(std::vector<CommRecord>& records, StepCount& count) {
  return Numbering(records, count).run();
}

}  // namespace culprit::comm
