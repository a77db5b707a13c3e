// Metric rows of a running loop, sorted by step. Rows arrive in any order: each rank has its own connection,
// and a host's agent sends one minute at a time. A step is emitted when all ranks reported it, or when no
// more rows of its time can arrive. Until the first such time the set of ranks is unknown, and all rows wait.
//
// Pure; one thread. The bound on waiting rows grows with the number of ranks. Beyond it the first step is
// emitted incomplete, which is counted and reported.
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

// Bytes of waiting rows: per rank forty rows of a hundred metrics, which is the minute between two reports of
// an agent.
constexpr size_t kLoopHeldBytes = 16 << 20, kLoopHeldBytesOfRank = 32 << 10;

class LoopOrder {
 public:
  // Receiver of rows and events; their views are valid during the call.
  struct RowSink {
    std::function<void(const MetricRow&)> row;
    std::function<void(const LoopEvent&)> event;
  };
  explicit LoopOrder(RowSink sink) : sink_(std::move(sink)) {}

  // `now`: time of the report. `remote`: from a host that reports later than others; without such hosts rows
  // are emitted at once.
  void add(std::span<const MetricRow> rows, TimeNs now, bool remote);
  void add(const LoopEvent& event, TimeNs now, bool remote);
  // All rows reported until `until` have arrived. Returns whether any were emitted.
  bool settle(TimeNs until);
  bool empty() const { return held_.empty(); }
  std::vector<std::string> problems() const;

 private:
  struct Rank {
    int64_t step = -1;
    int64_t place = 0;  // in steps; a step back counts as one forward, because all ranks make it
  };
  // Names of a row's values and digests; most rows share them with a recent row.
  struct Shape {
    std::vector<std::string> values, digests;
    size_t bytes = 0;
    bool is_of(const MetricRow& row) const;
  };
  struct Row {
    MetricRow row;  // without host and spans
    std::shared_ptr<const Shape> shape;
    const std::string* host = nullptr;
    std::vector<double> values;
    std::vector<uint64_t> digests;
    size_t bytes() const { return sizeof(Row) + 8 * (values.size() + digests.size()); }
  };
  struct PendingStep {
    std::vector<std::variant<Row, LoopBatch>> items;
    TimeNs reported_ns = kNoTime;  // time of the last row
    size_t bytes = 0;
  };

  int64_t place_of(const MetricRow& row);
  std::shared_ptr<const Shape> shape_of(const MetricRow& row);
  Row keep(const MetricRow& row);
  void emit(const Row& retained);
  void emit_first();
  bool emit_known();
  void advance(TimeNs now, bool remote);

  RowSink sink_;
  std::unordered_map<uint32_t, Rank> ranks_;
  std::set<std::pair<int64_t, uint32_t>> behind_;  // by place
  std::map<int64_t, PendingStep> held_;            // by place
  std::unordered_set<std::string> hosts_;
  std::vector<std::shared_ptr<const Shape>> shapes_;                   // recent ones, newest first
  std::shared_ptr<size_t> shape_bytes_ = std::make_shared<size_t>(0);  // total of all live shapes
  std::vector<MetricValue> values_;                                    // scratch
  std::vector<MetricDigest> digests_;
  int64_t given_ = -1, last_place_ = 0, last_step_ = 0;
  size_t bytes_ = 0;
  TimeNs first_ns_ = kNoTime, settled_ns_ = kNoTime;
  bool remote_ = false;
  uint64_t hurried_ = 0;
};

}  // namespace culprit::core
