// Rows of a loop that runs, in the order of their steps however they come: each rank has a connection of its
// own, and a host's agent tells a minute at a time. What a rank told of a step goes on when all have told
// it; what somebody is missing from, when no more of that time can come. Until the first such time nobody
// knows which ranks there are, and all waits.
//
// Pure; one thread. Holds rows up to a bound that grows with the ranks; beyond it the first go on as they
// are, which is counted and told.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <variant>
#include <vector>

#include "model/loop_batch.h"

namespace culprit::core {

// Bytes of rows that wait: of each rank forty rows of a hundred metrics, the minute that agents tell.
constexpr size_t kLoopHeldBytes = 16 << 20, kLoopHeldBytesOfRank = 32 << 10;

class LoopOrder {
 public:
  // Who takes them; what they point to is good for the call.
  struct Sink {
    std::function<void(const MetricRow&)> row;
    std::function<void(const LoopEvent&)> event;
  };
  explicit LoopOrder(Sink sink) : sink_(std::move(sink)) {}

  // `now`: when they were told. `afar`: by a host that tells later than others; else all is told as it comes.
  void add(std::span<const MetricRow> rows, TimeNs now, bool afar);
  void add(const LoopEvent& event, TimeNs now, bool afar);
  // All that was told up to then has come. Whether something went on.
  bool settle(TimeNs until);
  bool empty() const { return held_.empty(); }
  std::vector<std::string> problems() const;

 private:
  struct Rank {
    int64_t step = -1;
    int64_t place = 0;  // steps, but a jump back is one ahead, since all ranks make it
  };
  // Names of a row's values and digests, which most rows have in common with one of the last.
  struct Shape {
    std::vector<std::string> values, digests;
    size_t bytes = 0;
    bool is_of(const MetricRow& row) const;
  };
  struct Row {
    MetricRow row;  // without its host and its spans
    std::shared_ptr<const Shape> shape;
    const std::string* host = nullptr;
    std::vector<double> values;
    std::vector<uint64_t> digests;
    size_t bytes() const { return sizeof(Row) + 8 * (values.size() + digests.size()); }
  };
  struct Held {
    std::vector<std::variant<Row, LoopBatch>> items;
    TimeNs told_ns = kNoTime;  // the last of them
    size_t bytes = 0;
  };

  int64_t place_of(const MetricRow& row);
  std::shared_ptr<const Shape> shape_of(const MetricRow& row);
  Row keep(const MetricRow& row);
  void give(const Row& kept);
  void give_first();
  bool give_known();
  void advance(TimeNs now, bool afar);

  Sink sink_;
  std::unordered_map<uint32_t, Rank> ranks_;
  std::set<std::pair<int64_t, uint32_t>> behind_;  // by place
  std::map<int64_t, Held> held_;                   // by place
  std::unordered_set<std::string> hosts_;
  std::vector<std::shared_ptr<const Shape>> shapes_;                   // the last ones, the newest first
  std::shared_ptr<size_t> shape_bytes_ = std::make_shared<size_t>(0);  // of all that are alive
  std::vector<MetricValue> values_;                                    // scratch
  std::vector<MetricDigest> digests_;
  int64_t given_ = -1, last_place_ = 0, last_step_ = 0;
  size_t bytes_ = 0;
  TimeNs first_ns_ = kNoTime, settled_ns_ = kNoTime;
  bool afar_ = false;
  uint64_t hurried_ = 0;
};

}  // namespace culprit::core
