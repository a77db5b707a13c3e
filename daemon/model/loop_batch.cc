#include "model/loop_batch.h"

namespace culprit {

std::string_view LoopBatch::keep(std::string_view text) {
  return text.empty() ? std::string_view() : std::string_view(*texts_.emplace(text).first);
}

void LoopBatch::add(const MetricRow& row) {
  MetricRow& retained = rows_.emplace_back(row);
  retained.host = keep(row.host);
  for (const MetricValue& v : row.values) values_.push_back({keep(v.name), v.value});
  for (const MetricDigest& d : row.digests) digests_.push_back({keep(d.name), d.value});
  counts_.push_back({row.values.size(), row.digests.size()});
}

void LoopBatch::add(const LoopEvent& event) {
  PlacedEvent& retained = events_.emplace_back(PlacedEvent{event, rows_.size(), event.fields.size()});
  retained.event.host = keep(event.host);
  retained.event.name = keep(event.name);
  for (const EventField& f : event.fields) fields_.push_back({keep(f.name), keep(f.json)});
}

void LoopBatch::clear() {
  rows_.clear();
  counts_.clear();
  events_.clear();
  values_.clear();
  digests_.clear();
  fields_.clear();
  texts_.clear();
}

void LoopBatch::set_host(std::string_view host) {
  const std::string_view retained = keep(host);
  for (MetricRow& row : rows_)
    if (row.host.empty()) row.host = retained;
  for (PlacedEvent& e : events_)
    if (e.event.host.empty()) e.event.host = retained;
}

void LoopBatch::join() {
  const MetricValue* value = values_.data();
  const MetricDigest* digest = digests_.data();
  for (size_t i = 0; i < rows_.size(); ++i) {
    rows_[i].values = {value, counts_[i].values};
    rows_[i].digests = {digest, counts_[i].digests};
    value += counts_[i].values;
    digest += counts_[i].digests;
  }
  const EventField* field = fields_.data();
  for (PlacedEvent& e : events_) {
    e.event.fields = {field, e.fields};
    field += e.fields;
  }
}

}  // namespace culprit
