#include "core/loop_order.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/limits.h"
#include "base/text.h"

namespace culprit::core {
namespace {

// Rounds in which a host's sockets are read: what was told at one time comes within some of them.
constexpr TimeNs kRounds = 2 * kNsPerSecond;

// Agents tell a minute at a time: until each had its turn nobody knows which hosts there are.
constexpr TimeNs kFirstTurns = 75 * kNsPerSecond;

// Shapes looked among: steps with and without digests, of ranks that tell more and less, in two or three
// kinds each.
constexpr size_t kShapes = 8;

template <class Named>
bool same_names(const std::vector<std::string>& names, std::span<const Named> of) {
  return std::equal(names.begin(), names.end(), of.begin(), of.end(),
                    [](const std::string& name, const Named& one) { return name == one.name; });
}

// As a LoopBatch holds it, each text in a node of its own.
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
  // Where whoever is furthest has this step, if it is in the same run already.
  const int64_t beside = ranks_.size() == 1 && fresh ? row.step : last_place_ + row.step - last_step_;
  if (fresh)
    rank.place = beside;
  else if (row.step < rank.step)
    rank.place = std::max(rank.place + 1, beside);
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
  // Rows that wait keep it alive, however many others came since.
  const auto forget = [all = shape_bytes_](const Shape* shape) {
    *all -= shape->bytes;
    delete shape;
  };
  const std::shared_ptr<const Shape> shape(made.release(), forget);
  shapes_.insert(shapes_.begin(), shape);
  return shape;
}

LoopOrder::Row LoopOrder::keep(const MetricRow& row) {
  Row kept{row, shape_of(row), nullptr, {}, {}};
  kept.row.host = {};
  kept.row.values = {};
  kept.row.digests = {};
  if (hosts_.size() < limits::kWriters || hosts_.contains(std::string(row.host)))
    kept.host = &*hosts_.emplace(row.host).first;
  for (const MetricValue& v : row.values) kept.values.push_back(v.value);
  for (const MetricDigest& d : row.digests) kept.digests.push_back(d.value);
  return kept;
}

void LoopOrder::give(const Row& kept) {
  values_.clear();
  digests_.clear();
  for (size_t i = 0; i < kept.values.size(); ++i) values_.push_back({kept.shape->values[i], kept.values[i]});
  for (size_t i = 0; i < kept.digests.size(); ++i)
    digests_.push_back({kept.shape->digests[i], kept.digests[i]});
  MetricRow row = kept.row;
  if (kept.host) row.host = *kept.host;
  row.values = values_;
  row.digests = digests_;
  sink_.row(row);
}

void LoopOrder::give_first() {
  auto first = held_.extract(held_.begin());
  given_ = std::max(given_, first.key());
  bytes_ -= first.mapped().bytes;
  for (auto& item : first.mapped().items) {
    if (const Row* row = std::get_if<Row>(&item))
      give(*row);
    else
      std::get<LoopBatch>(item).each([](std::span<const MetricRow>) {}, sink_.event);
  }
}

// What all ranks have told, once it is known who they are.
bool LoopOrder::give_known() {
  bool gave = false;
  const bool known = first_ns_ != kNoTime && settled_ns_ != kNoTime && settled_ns_ >= first_ns_;
  while (!held_.empty()) {
    const auto& [place, first] = *held_.begin();
    const bool all_told = known && !behind_.empty() && behind_.begin()->first > place;
    const bool no_more_comes = settled_ns_ != kNoTime && first.told_ns <= settled_ns_;
    const bool full = bytes_ + *shape_bytes_ > kLoopHeldBytes + ranks_.size() * kLoopHeldBytesOfRank;
    if (!all_told && !no_more_comes && !full) break;
    hurried_ += !all_told && !no_more_comes ? first.items.size() : 0;
    give_first();
    gave = true;
  }
  return gave;
}

void LoopOrder::advance(TimeNs now, bool afar) {
  afar_ = afar_ || afar;
  if (first_ns_ == kNoTime) first_ns_ = now;
  if (!afar_ && now != kNoTime) settled_ns_ = std::max(settled_ns_, now - kRounds);
}

void LoopOrder::add(std::span<const MetricRow> rows, TimeNs now, bool afar) {
  for (const MetricRow& row : rows) {
    if (!ranks_.contains(row.rank) && ranks_.size() >= limits::kCommRanks) {
      sink_.row(row);
      continue;
    }
    const int64_t place = place_of(row);
    if (place <= given_) {
      sink_.row(row);  // late
      continue;
    }
    Held& held = held_[place];
    Row kept = keep(row);
    held.bytes += kept.bytes();
    bytes_ += kept.bytes();
    held.told_ns = std::max(held.told_ns, now);
    held.items.emplace_back(std::move(kept));
  }
  advance(now, afar);
  give_known();
}

// After what its rank told last.
void LoopOrder::add(const LoopEvent& event, TimeNs now, bool afar) {
  const auto rank = event.rank ? ranks_.find(*event.rank) : ranks_.end();
  const int64_t place = rank == ranks_.end() ? last_place_ : rank->second.place;
  if (place <= given_ || held_.empty()) return sink_.event(event);
  Held& held = held_[place];
  LoopBatch kept;
  kept.add(event);
  held.items.emplace_back(std::move(kept));
  const size_t bytes = bytes_of(event);
  held.bytes += bytes;
  bytes_ += bytes;
  held.told_ns = std::max(held.told_ns, now);
  advance(now, afar);
  give_known();
}

bool LoopOrder::settle(TimeNs until) {
  if (afar_ && until - kFirstTurns < first_ns_) return false;
  settled_ns_ = std::max(settled_ns_, until - kRounds);
  return give_known();
}

std::vector<std::string> LoopOrder::problems() const {
  if (hurried_ == 0) return {};
  return {fmt::format("{} of metrics did not wait for those of other ranks: too many wait",
                      counted(hurried_, "record"))};
}

}  // namespace culprit::core
