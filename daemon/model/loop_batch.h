// Copies of rows and events (model/metric.h) for the transfer from a reader to an engine, in order of
// arrival. Owns all names and values; each text is stored once. Returned views are valid until the next
// change. One thread; never interprets its content.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "model/metric.h"

namespace culprit {

class LoopBatch {
 public:
  LoopBatch() = default;
  LoopBatch(LoopBatch&&) = default;
  LoopBatch& operator=(LoopBatch&&) = default;

  void add(const MetricRow& row);
  void add(const LoopEvent& event);
  void clear();
  bool empty() const { return rows_.empty() && events_.empty(); }
  size_t rows() const { return rows_.size(); }
  // Sets the host of rows and events without one.
  void set_host(std::string_view host);

  // Calls rows(std::span<const MetricRow>) for consecutive rows and event(const LoopEvent&) for each event,
  // in order of arrival.
  template <class Rows, class Event>
  void each(const Rows& rows, const Event& event) {
    join();
    const std::span<const MetricRow> all(rows_);
    size_t reported = 0;
    for (const PlacedEvent& e : events_) {
      if (e.behind > reported) rows(all.subspan(reported, e.behind - reported));
      reported = e.behind;
      event(e.event);
    }
    if (reported < all.size()) rows(all.subspan(reported));
  }

 private:
  struct Counts {
    size_t values = 0, digests = 0;
  };
  struct PlacedEvent {
    LoopEvent event;
    size_t behind = 0;  // number of rows before the event
    size_t fields = 0;
  };
  std::string_view keep(std::string_view text);
  void join();

  std::unordered_set<std::string> texts_;
  std::vector<MetricRow> rows_;
  // sizes of the rows' spans; join() sets the spans, as arrays move when they grow
  std::vector<Counts> counts_;
  std::vector<PlacedEvent> events_;
  std::vector<MetricValue> values_;
  std::vector<MetricDigest> digests_;
  std::vector<EventField> fields_;
};

}  // namespace culprit
