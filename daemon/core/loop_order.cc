#include "core/loop_order.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"
#include "base/limits.h"
#include "base/text.h"

namespace culprit::core {
namespace {

// Time in which a round reads all sockets of a host: metrics reported at one time arrive within it.
constexpr TimeNs kRounds = 2 * kNsPerSecond;

// Agents send once a minute: before each has sent, the set of hosts is unknown.
constexpr TimeNs kFirstTurns = 75 * kNsPerSecond;

// Recent shapes to compare with: steps with and without digests, of ranks with more and fewer metrics, in two
// or three kinds each.
constexpr size_t kShapes = 8;

template <class Named>
bool same_names(const std::vector<std::string>& names, std::span<const Named> of) {
  return std::equal(names.begin(), names.end(), of.begin(), of.end(),
                    [](const std::string& name, const Named& one) { return name == one.name; });
}

// The size in a LoopBatch, which allocates each text separately.
size_t bytes_of(const LoopEvent& event) {
  constexpr size_t kText = 64;
  size_t bytes = sizeof(LoopBatch) + limits::kNameBytes + event.host.size() + event.name.size();
  for (const EventField& field : event.fields)
    bytes += sizeof(EventField) + 2 * kText + field.name.size() + field.json.size();
  return bytes;
}

}  // namespace

bool LoopOrder::Shape::is_of(const MetricRow& row) const {
  return same_names(values, row.values) && same_names(digests, row.digests);
}

int64_t LoopOrder::place_of(const MetricRow& row) {
  const auto [at, fresh] = ranks_.try_emplace(row.rank);
  Rank& rank = at->second;
  if (!fresh) behind_.erase({rank.place, row.rank});
  // The place of this step in the leading rank's count, if this rank is in the same run.
  const int64_t non_log = ranks_.size() == 1 && fresh ? row.step : last_place_ + row.step - last_step_;
  if (fresh)
    rank.place = non_log;
  else if (row.step < rank.step)
    rank.place = std::max(rank.place + 1, non_log);
  else
    rank.place += row.step - rank.step;
  rank.place = std::min(rank.place, limits::kStepSumMax);
  rank.step = row.step;
  behind_.emplace(rank.place, row.rank);
  if (rank.place >= last_place_) last_place_ = rank.place, last_step_ = row.step;
  return rank.place;
}

std::shared_ptr<const LoopOrder::Shape> LoopOrder::shape_of(const MetricRow& row) {
  const auto known =
      std::find_if(shapes_.begin(), shapes_.end(), [&](const auto& shape) { return shape->is_of(row); });
  if (known != shapes_.end()) {
    std::rotate(shapes_.begin(), known, known + 1);
    return shapes_.front();
  }
  auto made = std::make_unique<Shape>();
  for (const MetricValue& v : row.values) made->values.emplace_back(v.name);
  for (const MetricDigest& d : row.digests) made->digests.emplace_back(d.name);
  for (const auto* names : {&made->values, &made->digests})
    for (const std::string& name : *names) made->bytes += sizeof(name) + name.size();
  *shape_bytes_ += made->bytes;
  if (shapes_.size() == kShapes) shapes_.pop_back();
  // Waiting rows keep a shape alive, even after it left the recent ones.
  const auto forget = [all = shape_bytes_](const Shape* shape) {
    CULPRIT_CHECK(*all >= shape->bytes);
    *all -= shape->bytes;
    delete shape;
  };
  const std::shared_ptr<const Shape> shape(made.release(), forget);
  shapes_.insert(shapes_.begin(), shape);
  return shape;
}

LoopOrder::Row LoopOrder::keep(const MetricRow& row) {
  Row retained{row, shape_of(row), nullptr, {}, {}};
  retained.row.host = {};
  retained.row.values = {};
  retained.row.digests = {};
  if (hosts_.size() < limits::kWriters || hosts_.contains(std::string(row.host)))
    retained.host = &*hosts_.emplace(row.host).first;
  for (const MetricValue& v : row.values) retained.values.push_back(v.value);
  for (const MetricDigest& d : row.digests) retained.digests.push_back(d.value);
  return retained;
}

void LoopOrder::emit(const Row& retained) {
  CULPRIT_CHECK(retained.values.size() == retained.shape->values.size());
  CULPRIT_CHECK(retained.digests.size() == retained.shape->digests.size());
  values_.clear();
  digests_.clear();
  for (size_t i = 0; i < retained.values.size(); ++i)
    values_.push_back({retained.shape->values[i], retained.values[i]});
  for (size_t i = 0; i < retained.digests.size(); ++i)
    digests_.push_back({retained.shape->digests[i], retained.digests[i]});
  MetricRow row = retained.row;
  if (retained.host) row.host = *retained.host;
  row.values = values_;
  row.digests = digests_;
  sink_.row(row);
}

void LoopOrder::emit_first() {
  CULPRIT_CHECK(!held_.empty());
  auto first = held_.extract(held_.begin());
  CULPRIT_CHECK(bytes_ >= first.mapped().bytes);
  given_ = std::max(given_, first.key());
  bytes_ -= first.mapped().bytes;
  for (auto& item : first.mapped().items) {
    if (const Row* row = std::get_if<Row>(&item))
      emit(*row);
    else
      std::get<LoopBatch>(item).each([](std::span<const MetricRow>) {}, sink_.event);
  }
}

// Emits the steps that all ranks reported, once the set of ranks is known.
bool LoopOrder::emit_known() {
  bool gave = false;
  const bool known = first_ns_ != kNoTime && settled_ns_ != kNoTime && settled_ns_ >= first_ns_;
  while (!held_.empty()) {
    const auto& [place, first] = *held_.begin();
    const bool all_reported = known && !behind_.empty() && behind_.begin()->first > place;
    const bool no_more_comes = settled_ns_ != kNoTime && first.reported_ns <= settled_ns_;
    const bool full = bytes_ + *shape_bytes_ > kLoopHeldBytes + ranks_.size() * kLoopHeldBytesOfRank;
    if (!all_reported && !no_more_comes && !full) break;
    hurried_ += !all_reported && !no_more_comes ? first.items.size() : 0;
    emit_first();
    gave = true;
  }
  return gave;
}

void LoopOrder::advance(TimeNs now, bool remote) {
  remote_ = remote_ || remote;
  if (first_ns_ == kNoTime) first_ns_ = now;
  if (!remote_ && now != kNoTime) settled_ns_ = std::max(settled_ns_, now - kRounds);
}

void LoopOrder::add(std::span<const MetricRow> rows, TimeNs now, bool remote) {
  for (const MetricRow& row : rows) {
    if (!ranks_.contains(row.rank) && ranks_.size() >= limits::kCommRanks) {
      sink_.row(row);
      continue;
    }
    const int64_t place = place_of(row);
    if (place <= given_) {
      sink_.row(row);  // late: its step was already emitted
      continue;
    }
    PendingStep& held = held_[place];
    Row retained = keep(row);
    held.bytes += retained.bytes();
    bytes_ += retained.bytes();
    held.reported_ns = std::max(held.reported_ns, now);
    held.items.emplace_back(std::move(retained));
  }
  advance(now, remote);
  emit_known();
}

// An event keeps its place after its rank's last row.
void LoopOrder::add(const LoopEvent& event, TimeNs now, bool remote) {
  const auto rank = event.rank ? ranks_.find(*event.rank) : ranks_.end();
  const int64_t place = rank == ranks_.end() ? last_place_ : rank->second.place;
  if (place <= given_ || held_.empty()) return sink_.event(event);
  PendingStep& held = held_[place];
  LoopBatch retained;
  retained.add(event);
  held.items.emplace_back(std::move(retained));
  const size_t bytes = bytes_of(event);
  held.bytes += bytes;
  bytes_ += bytes;
  held.reported_ns = std::max(held.reported_ns, now);
  advance(now, remote);
  emit_known();
}

bool LoopOrder::settle(TimeNs until) {
  if (remote_ && until - kFirstTurns < first_ns_) return false;
  settled_ns_ = std::max(settled_ns_, until - kRounds);
  return emit_known();
}

std::vector<std::string> LoopOrder::problems() const {
  if (hurried_ == 0) return {};
  return {fmt::format("{} of metrics did not wait for those of other ranks: too many wait",
                      counted(hurried_, "record"))};
}

}  // namespace culprit::core
