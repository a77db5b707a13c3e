#include "core/logs/numbers.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "base/limits.h"
#include "base/text.h"

namespace culprit::logs {
namespace {

constexpr size_t kWriters = 1 << 16;
constexpr size_t kText = 400;  // bytes of a line quoted as evidence
// A tenfold jump of the rate between two lines indicates a changed setting. Within a run's first lines, a
// warm-up may also jump that far.
constexpr double kLeap = 10, kFirstLeap = 1000;
constexpr uint32_t kFirstRates = 4;

// Whether line n of a run must be sent: the first three, then each power of two.
bool is_notable(uint64_t n) { return n <= 3 || std::has_single_bit(n); }

NumberLine with(NumberLine line, double value) {
  line.value = value;
  return line;
}

}  // namespace

void Course::add(double value, const NumberLine& line) {
  if (!std::isfinite(value)) {
    if (lost++ == 0) first_lost = with(line, value);
    return;
  }
  lost = 0;
  ++finite;
  best = std::min(best, value);
  if (last.size() == kLast) last.erase(last.begin());
  last.push_back({line.place, line.iteration, value});
}

bool Numbers::read_values(uint32_t form, std::string_view message, LineValues& values) {
  if (message.empty()) return false;
  if (form >= forms_.size()) forms_.resize(form + 1, Speaks::kUnknown);
  if (forms_[form] == Speaks::kNo) return false;
  values = values_of(message);
  if (forms_[form] == Speaks::kUnknown) forms_[form] = values.any() ? Speaks::kYes : Speaks::kNo;
  return values.any();
}

bool Numbers::follow_rate(WriterNumbers& w, double rate, const NumberLine& line) {
  const double before = w.rate.value_or(0);
  w.rate = rate;
  ++w.rates;
  if (!(before > 0) || !(rate > 0) || !std::isfinite(rate)) return false;
  if (rate < (w.rates <= kFirstRates ? kFirstLeap : kLeap) * before) return false;
  w.jump = RateJump{before, rate, with(line, rate)};
  return true;
}

bool Numbers::follow(WriterNumbers& w, const LineValues& values, const NumberLine& line) {
  bool notable = false;
  const uint64_t lost = std::max(w.loss.lost, w.norm.lost);
  const auto take = [&](Course& course, const std::optional<double>& value) {
    if (!value) return;
    const bool was_lost = course.lost > 0;
    course.add(*value, line);
    notable |= course.lost > 0 ? is_notable(course.lost) : was_lost;
  };
  take(w.loss, values.loss);
  take(w.norm, values.norm);
  if (values.rate && lost == 0) notable |= follow_rate(w, *values.rate, line);
  if (values.scale) {
    w.scale = *values.scale;
    w.scale_most = std::max(w.scale_most.value_or(0), *values.scale);
  }
  if (values.skipped && w.scale && *w.scale <= 1) {
    if (w.starved++ == 0) w.first_starved = with(line, *w.scale);
    w.last_starved = with(line, *w.scale);
    notable |= is_notable(w.starved);
  } else if (values.loss && std::isfinite(*values.loss) && !values.skipped) {
    notable |= w.starved > 0;
    w.starved = 0;
  }
  w.newest = {line.place, line.iteration, 0};
  return notable;
}

bool Numbers::add(uint32_t form, const NumberLine& line, std::string_view message) {
  LineValues values;
  if (!read_values(form, message, values)) return false;
  const auto next = static_cast<uint32_t>(writers_.size());
  const uint64_t key = (uint64_t{line.place.source} << 32) | line.place.writer;
  if (writers_.size() >= kWriters && !index_of_.find(key)) return false;
  const auto [index, fresh] = index_of_.try_emplace(key, next);
  if (fresh) writers_.emplace_back();
  NumberLine retained = line;
  const auto lost = [](const std::optional<double>& value) { return value && !std::isfinite(*value); };
  if (lost(values.loss) || lost(values.norm) || values.skipped) retained.text = shorten(message, kText);
  return follow(writers_[*index], values, retained);
}

}  // namespace culprit::logs
