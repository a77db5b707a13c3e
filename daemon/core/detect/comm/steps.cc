#include "core/detect/comm/steps.h"

#include <algorithm>
#include <map>
#include <unordered_map>

#include "base/flat_map.h"

namespace culprit::comm {
namespace {

constexpr int64_t kNoStep = -1;

// The operations of a rank, by start, and the communicator whose operations end its steps.
struct Line {
  std::vector<uint32_t> records;
  uint64_t marker = 0;
  bool marked = false;
  std::vector<int64_t> labels;
};

uint64_t signature(const CommRecord& r) { return mix64(r.comm, static_cast<uint64_t>(r.op) << 32 | r.peer); }

class Numbering {
 public:
  Numbering(std::vector<CommRecord>& records, std::optional<int64_t>& origin)
      : records_(records), origin_(origin) {}

  uint64_t run() {
    for (uint32_t i = 0; i < records_.size(); ++i) lines_[records_[i].rank].records.push_back(i);
    for (auto& [rank, line] : lines_) {
      std::sort(line.records.begin(), line.records.end(),
                [this](uint32_t a, uint32_t b) { return records_[a].start_ns < records_[b].start_ns; });
      choose_marker(line);
      if (line.marked) vote(line);
    }
    if (periods_.empty()) {  // nothing repeats: it is one step
      for (CommRecord& r : records_) r.step = 0;
      return 0;
    }
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

  // How many of the marker's operations a step has: the least number at which what lies between them repeats.
  void vote(const Line& line) {
    std::vector<uint64_t> blocks;
    uint64_t block = 0;
    for (const uint32_t i : line.records) {
      const CommRecord& r = records_[i];
      block += mix64(signature(r), 0);
      if (r.comm != line.marker || is_p2p(r.op)) continue;
      blocks.push_back(block);
      block = 0;
    }
    for (size_t k = 1; 2 * k <= blocks.size(); ++k) {
      size_t same = 0, of = 0;
      for (size_t i = 1; i + k < blocks.size(); ++i, ++of) same += blocks[i] == blocks[i + k];
      if (of == 0 || 10 * same < 8 * of)
        continue;  // one record in a thousand may be lost, in steps of hundreds
      ++periods_[line.marker][static_cast<uint32_t>(k)];
      return;
    }
    ++periods_[line.marker][static_cast<uint32_t>(1)];
  }

  uint32_t period(uint64_t marker) const {
    uint32_t best = 1, most = 0;
    for (const auto& [k, n] : periods_.at(marker))
      if (n > most) best = k, most = n;
    return best;
  }

  void label(Line& line) {
    const uint32_t k = period(line.marker);
    line.labels.assign(line.records.size(), kNoStep);
    int64_t next = kNoStep;
    for (size_t i = 0; i < line.records.size(); ++i) {
      const CommRecord& r = records_[line.records[i]];
      if (r.comm == line.marker && !is_p2p(r.op)) {
        if (next == kNoStep)
          for (size_t b = 0; b < i; ++b) line.labels[b] = static_cast<int64_t>(r.seq / k);
        line.labels[i] = static_cast<int64_t>(r.seq / k);
        next = static_cast<int64_t>((r.seq + 1) / k);
      } else if (next != kNoStep) {
        line.labels[i] = next;
      }
    }
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
    if (!origin_) origin_ = least;
    least = *origin_;
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
  std::optional<int64_t>& origin_;
  std::map<uint32_t, Line> lines_;
  std::map<uint64_t, std::map<uint32_t, uint32_t>> periods_;  // by marker: votes for each
  std::map<uint64_t, int64_t> offset_;                        // by marker
};

}  // namespace

uint64_t find_steps(std::vector<CommRecord>& records, std::optional<int64_t>& origin) {
  return Numbering(records, origin).run();
}

}  // namespace culprit::comm
