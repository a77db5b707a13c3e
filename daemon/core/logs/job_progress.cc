#include "core/logs/job_progress.h"

#include <algorithm>
#include <utility>

#include "base/hash.h"
#include "base/limits.h"

namespace culprit::logs {
namespace {

constexpr uint32_t kNamedTracks = 0x80000000;  // keys of named tracks, above those of forms
constexpr size_t kProgressLines = 3;           // last lines kept as text, which show the pace

}  // namespace

// The number that the line counts up, and its kind.
std::optional<Progress> JobProgress::counted(const LogBatch& batch, const EventLine& event,
                                             CounterKind& kind) {
  const auto& numbered = batch.numbers;
  while (next_number_ < numbered.size() && numbered[next_number_].line < event.index) ++next_number_;
  if (next_number_ < numbered.size() && numbered[next_number_].line == event.index) {
    const LineNumber& number = numbered[next_number_];
    kind = number.counted        ? CounterKind::kCounts
           : number.progress.bar ? CounterKind::kBar
                                 : CounterKind::kNamed;
    return number.counted && event.folded ? std::nullopt : std::optional(number.progress);
  }
  const LineRecord& line = batch.lines[event.index];
  if (batch.condensed || batch.forms[line.form].shape.progress || event.folded) return std::nullopt;
  if (event.form >= counters_.size()) counters_.resize(event.form + 1);
  CounterWatch& watch = counters_[event.form];
  if (watch.decided() && !watch.counts()) return std::nullopt;
  kind = CounterKind::kCounts;
  if (const auto value = watch.see(event.place.writer, batch.message(line))) return Progress{*value, 0};
  return std::nullopt;
}

bool JobProgress::add_line(const LogBatch& batch, const EventLine& event) {
  const LogPlace& place = event.place;
  const LineRecord& line = batch.lines[event.index];
  const std::string_view message = batch.message(line);
  bool counts_up = false;
  CounterKind kind = CounterKind::kCounts;
  NumberLine number;
  number.place = place;
  if (const auto progress = counted(batch, event, kind)) {
    if (kind == CounterKind::kNamed) {
      number.iteration = progress->iteration;
      note_step(place, progress->iteration);
    }
    const uint32_t key = kind == CounterKind::kCounts
                             ? event.symbol
                             : kNamedTracks | static_cast<uint32_t>(mix64(
                                                  progress->name, static_cast<uint64_t>(progress->total)));
    const uint64_t moves = iterations_.moves();
    const bool rose =
        iterations_.progress(place.writer, key, kind,
                             {place.time_ns, progress->iteration, place.source, event.symbol, place.line});
    // Another message follows the progress bar in the line: the bar counts, not that message.
    counts_up = rose && (batch.forms[line.form].shape.progress || kind == CounterKind::kCounts);
    if (iterations_.moves() > moves && !batch.condensed) keep_line(place, message);
  } else {
    iterations_.event(place.writer, event.symbol);
  }
  if (!event.folded) numbers_.add(event.form, number, message);
  return counts_up;
}

void JobProgress::note_step(const LogPlace& place, int64_t iteration) {
  if (place.writer >= last_steps_.size()) last_steps_.resize(place.writer + 1);
  LastSteps& last = last_steps_[place.writer];
  if (last.source != place.source) last = {place.source, -1, {}};
  if (std::exchange(last.iteration, iteration) == iteration) return;
  std::rotate(last.lines.begin(), last.lines.begin() + 1, last.lines.end());
  last.lines.back() = place.line;
}

bool JobProgress::steps_below(const LogPlace& place) const {
  return std::ranges::any_of(last_steps_, [&](const LastSteps& last) {
    return last.source == place.source && last.lines.front() > place.line;
  });
}

void JobProgress::keep_line(const LogPlace& place, std::string_view message) {
  if (last_lines_.size() < kProgressLines)
    last_lines_.emplace_back();
  else
    std::rotate(last_lines_.begin(), last_lines_.begin() + 1, last_lines_.end());
  last_lines_.back().place = place;
  last_lines_.back().text.assign(message.substr(0, limits::kEvidenceText));
}

}  // namespace culprit::logs
