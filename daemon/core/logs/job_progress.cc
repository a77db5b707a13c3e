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
      note_step(place, *progress);
    }
    const uint32_t key = kind == CounterKind::kCounts
                             ? event.symbol
                             : kNamedTracks | static_cast<uint32_t>(mix64(
                                                  progress->name, static_cast<uint64_t>(progress->total)));
    const uint64_t moves = iterations_.moves();
    const bool rose =
        iterations_.progress(place.writer, key, kind,
                             {place.time_ns, progress->iteration, place.source, event.symbol, place.line});
    // Another message follows the progress bar on the line: the bar counts, but that message does not.
    counts_up = rose && (batch.forms[line.form].shape.progress || kind == CounterKind::kCounts);
    if (iterations_.moves() > moves && !batch.condensed) keep_line(place, message);
  } else {
    iterations_.event(place.writer, event.symbol);
  }
  if (!event.folded) numbers_.add(event.form, number, message);
  return counts_up;
}

void JobProgress::note_step(const LogPlace& place, const Progress& progress) {
  if (place.writer >= restarts_.size()) restarts_.resize(place.writer + 1);
  std::vector<Restarts>& of = restarts_[place.writer];
  const auto counter = static_cast<uint32_t>(mix64(progress.name, static_cast<uint64_t>(progress.total)));
  auto at = std::ranges::find_if(
      of, [&](const Restarts& r) { return r.source == place.source && r.counter == counter; });
  if (at == of.end()) {
    if (of.size() >= kCountersOfWriter) of.erase(of.begin());
    of.push_back({place.source, counter});
    at = of.end() - 1;
  }
  const int64_t before = std::exchange(at->iteration, progress.iteration);
  at->highest = std::max(at->highest, before);
  if (progress.iteration < before)
    at->fell = place.line, at->steps = 1, ++at->falls;
  else if (progress.iteration > before)
    ++at->steps;
}

bool JobProgress::Restarts::goes_on() const {
  constexpr uint64_t kGoesOn = 3;
  // After repeated restarts the counter must exceed its previous maximum: the job may fail at the same step
  // again.
  return fell > 0 && steps >= kGoesOn && (falls == 1 || iteration > highest);
}

bool JobProgress::steps_below(const LogPlace& place) const {
  return std::ranges::any_of(restarts_, [&](const std::vector<Restarts>& of) {
    return std::ranges::any_of(of, [&](const Restarts& r) {
      return r.source == place.source && r.fell > place.line && r.goes_on();
    });
  });
}

int64_t JobProgress::step_since_restart(const LogPlace& place) const {
  int64_t out = -1;
  for (const std::vector<Restarts>& of : restarts_)
    for (const Restarts& r : of)
      if (r.source == place.source && r.fell < place.line && r.goes_on()) out = std::max(out, r.iteration);
  return out;
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
