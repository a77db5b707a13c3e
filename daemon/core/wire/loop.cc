#include "core/wire/loop.h"

#include <fmt/format.h>

#include <bit>
#include <utility>

#include "base/limits.h"
#include "base/text.h"

namespace culprit::wire {
namespace {

constexpr uint32_t kNoNumber = 0xffffffff;
// Ranks are u32 in all formats; the largest value means none.
constexpr uint32_t kRankMax = 0xfffffffe;
// The trace socket accepts no longer lines.
constexpr size_t kFields = limits::kLineBytes / 4;

// Packs the XOR of two doubles. Decimal values share their high bits with the previous value, floats their
// low bits. So the first byte has the number of low zero bytes and the number of bytes that follow.
void put_bits(PackedWriter& out, uint64_t bits) {
  if (bits == 0) return out.byte(0);
  const int below = std::countr_zero(bits) / 8;
  bits >>= 8 * below;
  const int bytes = (std::bit_width(bits) + 7) / 8;
  out.byte(static_cast<uint8_t>(1 + 8 * below + bytes - 1));
  for (int i = 0; i < bytes; ++i) out.byte(static_cast<uint8_t>(bits >> (8 * i)));
}

uint64_t get_bits(PackedReader& in) {
  const uint8_t code = in.byte();
  if (code == 0) return 0;
  const int below = (code - 1) / 8, bytes = (code - 1) % 8 + 1;
  if (below + bytes > 8) return in.fail(), 0;
  uint64_t bits = 0;
  for (int i = 0; i < bytes; ++i) bits |= uint64_t{in.byte()} << (8 * i);
  return bits << (8 * below);
}

// Exact for any difference of two times, and for kNoTime.
void put_time(PackedWriter& out, TimeNs time, TimeNs& last) {
  out.byte(time != kNoTime);
  if (time == kNoTime) return;
  out.signed_number(static_cast<int64_t>(static_cast<uint64_t>(time) - static_cast<uint64_t>(last)));
  last = time;
}
TimeNs get_time(PackedReader& in, TimeNs& last) {
  if (in.byte() == 0) return kNoTime;
  last = static_cast<TimeNs>(static_cast<uint64_t>(last) + static_cast<uint64_t>(in.signed_number()));
  return last;
}

size_t values_of(size_t fields) { return kValuesOfEvent + kValuesOfField * fields; }

bool is_step(int64_t step) { return step >= 0 && step <= limits::kStepMax; }

}  // namespace

uint32_t LoopPacker::number_of(std::string_view name) {
  if (name.size() > limits::kNameBytes) return kNoNumber;
  const auto known = names_.find(std::string(name));
  if (known != names_.end()) return known->second;
  if (names_.size() >= limits::kLoopNames) return kNoNumber;
  const auto number = static_cast<uint32_t>(names_.size());
  fresh_.push_back(names_.emplace(name, number).first->first);
  last_value_.push_back(0);
  last_digest_.push_back(0);
  return number;
}

// Lists the names of values, then kNoNumber, then the names of digests, in the row's order.
void LoopPacker::list_names(const MetricRow& row) {
  row_.clear();
  for (const MetricValue& v : row.values) row_.push_back(number_of(v.name));
  row_.push_back(kNoNumber);
  for (const MetricDigest& d : row.digests) row_.push_back(number_of(d.name));
  for (size_t i = 0; i < row_.size(); ++i) dropped_values_ += row_[i] == kNoNumber && i != row.values.size();
}

bool LoopPacker::has_time_for(size_t bytes, TimeNs now) {
  const int64_t second = now / kNsPerSecond;
  if (std::exchange(second_, second) != second) bytes_ = 0;
  bytes_ += bytes;
  return bytes_ <= limits::kLoopBytesPerSecond;
}

// Writes the names only if they differ from the previous row's (`before_`), which the reader knows.
void LoopPacker::put_names(size_t values, PackedWriter& out) {
  out.byte(row_ == before_);
  if (row_ == before_) return;
  const auto put = [&](size_t begin, size_t end) {
    PackedWriter names;
    uint64_t reported = 0;
    for (size_t i = begin; i < end; ++i)
      if (row_[i] != kNoNumber) names.number(row_[i]), ++reported;
    out.number(reported);
    out.raw(names.bytes());
  };
  put(0, values);
  put(values + 1, row_.size());
  std::swap(row_, before_);
}

void LoopPacker::put_values(const MetricRow& row, PackedWriter& out) {
  const auto put = [&](uint32_t name, std::vector<uint64_t>& last, uint64_t bits) {
    if (name != kNoNumber) put_bits(out, bits ^ std::exchange(last[name], bits));
  };
  for (size_t i = 0; i < row.values.size(); ++i)
    put(before_[i], last_value_, std::bit_cast<uint64_t>(row.values[i].value));
  for (size_t i = 0; i < row.digests.size(); ++i)
    put(before_[row.values.size() + 1 + i], last_digest_, row.digests[i].value);
}

std::string LoopPacker::pack(std::span<const MetricRow>& rows, TimeNs now) {
  fresh_.clear();
  before_.clear();
  PackedWriter out;
  const std::string_view host = rows.front().host;
  int64_t step = 0;
  TimeNs time = 0;
  uint64_t packed = 0;
  for (; !rows.empty() && rows.front().host == host; rows = rows.subspan(1)) {
    const MetricRow& row = rows.front();
    const size_t count = row.values.size() + row.digests.size();
    // Assumes the largest encoded size.
    if (values_ + kValuesOfRow + count > kLoopValues || !has_time_for(32 + 9 * count, now)) {
      ++dropped_rows_;
      continue;
    }
    values_ += kValuesOfRow + count;
    ++packed;
    out.number(row.rank);
    out.signed_number(row.step - std::exchange(step, row.step));
    put_time(out, row.time_ns, time);
    list_names(row);
    put_names(row.values.size(), out);
    put_values(row, out);
  }
  PackedWriter note;
  note.text(host.substr(0, limits::kNameBytes));
  note.number(fresh_.size());
  for (const std::string_view name : fresh_) note.text(name);
  note.number(packed);
  note.raw(out.bytes());
  return note.finish();
}

bool LoopPacker::has_room(const LoopEvent& event) const {
  return values_ + values_of(event.fields.size()) <= kLoopValues;
}

std::string LoopPacker::pack(const LoopEvent& event) {
  values_ += values_of(event.fields.size());
  PackedWriter out;
  TimeNs last = 0;
  out.text(event.host.substr(0, limits::kNameBytes));
  out.text(event.name.substr(0, limits::kNameBytes));
  out.number(event.rank ? uint64_t{*event.rank} + 1 : 0);
  out.byte(event.step.has_value());
  out.signed_number(event.step.value_or(0));
  put_time(out, event.time_ns, last);
  out.number(event.fields.size());
  for (const EventField& field : event.fields) {
    out.text(field.name);
    out.text(field.json);
  }
  return out.finish();
}

std::string LoopPacker::drop_sentences() {
  const uint64_t rows = dropped_rows_ - std::exchange(reported_rows_, dropped_rows_);
  const uint64_t values = dropped_values_ - std::exchange(reported_values_, dropped_values_);
  std::string out;
  if (rows > 0)
    out = fmt::format("{} of metrics are left out: no more than {} a second is sent on",
                      counted(rows, "record"), format_bytes(limits::kLoopBytesPerSecond));
  if (values > 0)
    out += fmt::format("{}{} of metrics are left out: names too long, or beyond the first {} of the session",
                       out.empty() ? "" : "; ", counted(values, "value"), limits::kLoopNames);
  return out;
}

// ---- reading

bool LoopUnpacker::names_of_row(PackedReader& in) {
  if (in.byte() != 0) return in.ok();
  for (std::vector<uint32_t>* names : {&value_names_, &digest_names_}) {
    names->clear();
    const uint64_t count = in.number(limits::kLineBytes);
    for (uint64_t i = 0; i < count && in.ok(); ++i) {
      const uint64_t name = in.number();
      if (name >= names_.size()) return false;
      names->push_back(static_cast<uint32_t>(name));
    }
  }
  return in.ok();
}

bool LoopUnpacker::rows(PackedReader& in, LoopBatch& out) {
  const std::string_view host = in.text(limits::kNameBytes);
  const uint64_t fresh = in.number(limits::kLoopNames);
  for (uint64_t i = 0; i < fresh && in.ok(); ++i) {
    if (names_.size() >= limits::kLoopNames) return false;
    names_.emplace_back(in.text(limits::kNameBytes));
    last_value_.push_back(0);
    last_digest_.push_back(0);
  }
  value_names_.clear();
  digest_names_.clear();
  int64_t step = 0;
  TimeNs time = 0;
  const uint64_t count = in.number(kLoopValues);
  for (uint64_t i = 0; i < count && in.ok(); ++i) {
    MetricRow row;
    row.host = host;
    row.rank = static_cast<uint32_t>(in.number(kRankMax));
    step = static_cast<int64_t>(static_cast<uint64_t>(step) + static_cast<uint64_t>(in.signed_number()));
    row.step = step;
    row.time_ns = get_time(in, time);
    if (!names_of_row(in) || !is_step(step)) return false;
    values_ += kValuesOfRow + value_names_.size() + digest_names_.size();
    if (values_ > kLoopValues) return false;
    row_values_.clear();
    row_digests_.clear();
    for (const uint32_t name : value_names_) {
      last_value_[name] ^= get_bits(in);
      row_values_.push_back({names_[name], std::bit_cast<double>(last_value_[name])});
    }
    for (const uint32_t name : digest_names_) {
      last_digest_[name] ^= get_bits(in);
      row_digests_.push_back({names_[name], last_digest_[name]});
    }
    row.values = row_values_;
    row.digests = row_digests_;
    if (in.ok()) out.add(row);
  }
  return in.ok();
}

bool LoopUnpacker::event(PackedReader& in, LoopBatch& out) {
  LoopEvent event;
  TimeNs last = 0;
  event.host = in.text(limits::kNameBytes);
  event.name = in.text(limits::kNameBytes);
  if (const uint64_t rank = in.number(uint64_t{kRankMax} + 1); rank > 0)
    event.rank = static_cast<uint32_t>(rank - 1);
  const bool has_step = in.byte() != 0;
  const int64_t step = in.signed_number();
  if (has_step) event.step = step;
  event.time_ns = get_time(in, last);
  std::vector<EventField> fields;
  const uint64_t count = in.number(kFields);
  values_ += values_of(count);
  if (values_ > kLoopValues) return false;
  for (uint64_t i = 0; i < count && in.ok(); ++i) {
    const std::string_view name = in.text(limits::kLineBytes);
    fields.push_back({name, in.text(limits::kLineBytes)});
  }
  event.fields = fields;
  if (!in.ok() || (has_step && !is_step(step))) return false;
  out.add(event);
  return true;
}

}  // namespace culprit::wire
