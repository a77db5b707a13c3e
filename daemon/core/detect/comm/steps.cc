#include "core/detect/comm/steps.h"

#include <algorithm>
#include <map>
#include <unordered_map>

#include "base/flat_map.h"

namespace culprit::comm {
namespace {

constexpr int64_t kNoStep = -1;
// For live records: forty steps of a hundred blocks, more than hosts ever differ.
constexpr size_t kVotesMax = 4096;
constexpr size_t kMarkersMax = 1 << 16;
// Maximum number of blocks per step: live records store only this many votes.
constexpr size_t kBlocksOfStep = kVotesMax;

// Operations of a rank after one marker operation, up to and including the next.
struct Block {
  uint64_t seq = 0;                        // of the marker operation that ends it
  uint64_t kinds = 0;                      // sum of its operations' signatures
  uint32_t size = 0, first = 0, last = 0;  // number of operations; range in the line, within this batch
};

// Operations of one rank by start, and the communicator whose operations end its blocks.
struct Line {
  std::vector<uint32_t> records;
  uint64_t marker = 0;
  bool marked = false;
  std::vector<Block> blocks;
  uint32_t usual = 0;  // usual size of its blocks, without small ones
  std::vector<int64_t> labels;
};

// Step boundaries of one marker, ascending.
struct Begins {
  std::vector<uint64_t> seqs;  // of blocks that begin steps
  int64_t before = 0;
  uint64_t seen = 0, distance = 1;  // last seq; most frequent distance between seqs that begin steps

  int64_t label(uint64_t seq) const {
    const auto at = std::upper_bound(seqs.begin(), seqs.end(), seq);
    int64_t out = before + (at - seqs.begin());
    // No rank has reached this number yet, so the usual distance determines the next step.
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
    if (periods_.empty()) {  // no operation repeats, so all records are one step
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
  // Chooses the largest group with repeated operations of the rank; on a tie, the one with the fewest. A
  // group of all ranks usually operates at the end of a step.
  void choose_marker(Line& line) {
    struct MarkerCounts {
      uint32_t size = 0, count = 0;
    };
    std::map<uint64_t, MarkerCounts> seen;
    for (const uint32_t i : line.records) {
      const CommRecord& r = records_[i];
      if (is_p2p(r.op)) continue;
      MarkerCounts& s = seen[r.comm];
      s.size = std::max(s.size, r.comm_size);
      ++s.count;
    }
    MarkerCounts best;
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

  // The block size such that blocks of at least this size hold half of all operations. Small blocks, or a few
  // large ones, do not change it.
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

  // Whether a block has all kinds of operations of the rank. Ignores kinds with at most one of twenty
  // operations: from evaluations, checkpoints or unfinished blocks.
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

  // Votes for the number of blocks per step: the smallest number at which blocks repeat. 0: one usual block
  // is a whole step, and other blocks begin no step.
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
      // Up to two of ten pairs may differ: one of a thousand records may be lost, and a step has hundreds of
      // records.
      size_t other = 0;
      for (size_t i = 1; i + k < blocks.size() && 10 * other <= 2 * of; ++i)
        other += blocks[i].kinds != blocks[i + k].kinds;
      if (of == 0 || 10 * other > 2 * of) continue;
      ++votes[static_cast<uint32_t>(k)];
      return;
    }
    ++votes[1];
  }

  // Sets the period of new markers. Earlier decisions stay, because the step numbers must continue.
  void decide() {
    if (count_.markers.size() > kMarkersMax)
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
      // A forward pass alone, as in an evaluation, has at most half of a step's operations.
      votes.begins += 4 * b.size >= 3 * line.usual;
    }
  }

  // The majority of ranks decides, because a lost record makes one rank see the wrong block.
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
      while (marker.votes.size() > kVotesMax) {
        const StepCount::Votes& oldest = marker.votes.begin()->second;
        marker.before += 2 * oldest.begins >= oldest.of;
        marker.from = marker.votes.begin()->first + 1;
        marker.votes.erase(marker.votes.begin());
      }
    }
  }

  // A block belongs to the step of the operation that ends it. The last block has no such operation yet.
  void label(Line& line) {
    const uint32_t k = count_.markers[line.marker].period;
    const Begins& begins = begins_[line.marker];
    const auto of = [&](uint64_t seq) { return k != 0 ? static_cast<int64_t>(seq / k) : begins.label(seq); };
    line.labels.assign(line.records.size(), of(line.blocks.back().seq + 1));
    for (const Block& b : line.blocks)
      std::fill(line.labels.begin() + b.first, line.labels.begin() + b.last + 1, of(b.seq));
  }

  // Groups count from different origins; operations common to their ranks give the offset.
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
  std::map<uint64_t, std::map<uint32_t, uint32_t>> periods_;  // by marker: votes for each period
  std::map<uint64_t, Begins> begins_;                         // by marker
  std::map<uint64_t, int64_t> offset_;                        // by marker
};

}  // namespace

uint64_t find_steps(std::vector<CommRecord>& records, StepCount& count) {
  return Numbering(records, count).run();
}

}  // namespace culprit::comm
