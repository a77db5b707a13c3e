#include "core/logs/iterations.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <map>
#include <utility>

#include "base/flat_map.h"
#include "core/logs/iterations_warp.h"

namespace culprit::logs {
namespace {

constexpr size_t kTracks = 256;  // a job has a handful
// Share of these for tracks without words for an iteration (any rising number), so that the job's loop always
// finds a free track.
constexpr size_t kCountsTracks = 192;
constexpr size_t kPoints = 8192;  // points of a track; above this number, every other point is removed
// Newest points, never removed: otherwise a fault near the end would get an earlier iteration.
constexpr size_t kRecent = 512;
// Points of all sources without times; divided among these sources.
constexpr size_t kUntimedPoints = 1 << 18;
constexpr size_t kUntimedFew = 16;         // minimum points of such a source
constexpr size_t kTrackWriters = 500'000;  // (track, writer) pairs: 20,000 ranks with 25 tracks each
// Limit on events in the windows of all writers, 4 bytes each: 20,000 ranks with 40 events an iteration.
constexpr size_t kSymbols = 8 << 20;
constexpr size_t kWindow = 10;        // iterations, as in L4
constexpr size_t kSequence = 256;     // compared events of an iteration
constexpr size_t kOdd = 20'000;       // odd iterations
constexpr double kSigmaFloor = 0.05;  // one event in twenty changes between any two iterations
constexpr double kSigmas = 3;         // L4's threshold
constexpr uint64_t kWarmUp = 5;       // distances needed before a writer's mean is a useful reference

// A track with kLoopLines lines is a loop only if each form occurs kLoopTimes times on average. At most
// kForms forms are counted.
constexpr uint64_t kLoopLines = 4, kLoopTimes = 2;
constexpr size_t kForms = 4096;

struct Track {
  uint32_t key = 0;
  CounterKind kind = CounterKind::kCounts;
  uint64_t lines = 0, rises = 0, falls = 0;
  int64_t max = -1;
  uint64_t stride = 1, skipped = 0;
  std::vector<ProgressPoint> points;                       // new maxima, earliest time of each; thinned
  std::vector<ProgressPoint> recent;                       // the newest points, once `points` was thinned
  ProgressPoint last;                                      // the first line with the highest iteration so far
  std::map<uint32_t, std::vector<ProgressPoint>> untimed;  // by source, for lines without a time
  FlatMap<int64_t> of_writer{16};
  FlatMap<bool> forms{4};  // forms of its lines

  static void thin(std::vector<ProgressPoint>& list) {
    size_t retained = 0;
    for (size_t i = 0; i < list.size(); i += 2) list[retained++] = list[i];
    if (list.size() % 2 == 0) list[retained++] = list.back();
    list.resize(retained);
  }

  // Returns whether the writer exceeded its earlier iterations.
  bool rises_to(int64_t& before, int64_t iteration) {
    const bool rose = iteration > before;
    rises += rose;
    falls += iteration < before;
    before = iteration;
    return rose;
  }

  void add(const ProgressPoint& point) {
    ++lines;
    if (forms.size() < kForms) forms.try_emplace(point.form, true);
    if (point.iteration > max) {
      max = point.iteration;
      last = point;
      if (skipped++ % stride == 0) points.push_back(point);
      if (stride > 1) add_recent(point);
      if (points.size() > kPoints) {
        if (stride == 1) recent.assign(points.end() - kRecent, points.end());
        thin(points), stride *= 2;
      }
    } else if (point.time_ns != kNoTime) {
      keep_earliest(points, point);
      keep_earliest(recent, point);
    }
  }

  void add_recent(const ProgressPoint& point) {
    if (recent.size() >= 2 * kRecent) recent.erase(recent.begin(), recent.end() - kRecent);
    recent.push_back(point);
  }

  static void keep_earliest(std::vector<ProgressPoint>& list, const ProgressPoint& point) {
    const auto at = std::lower_bound(list.begin(), list.end(), point.iteration,
                                     [](const ProgressPoint& p, int64_t i) { return p.iteration < i; });
    if (at != list.end() && at->iteration == point.iteration &&
        (at->time_ns == kNoTime || point.time_ns < at->time_ns))
      at->time_ns = point.time_ns;
  }

  TimeNs duration() const {
    if (points.empty() || points.front().time_ns == kNoTime || last.time_ns == kNoTime) return 0;
    return std::max<TimeNs>(0, last.time_ns - points.front().time_ns);
  }

  // A loop repeats its forms. Single lines from many programs that mention a step are not a loop.
  bool is_loop() const { return lines < kLoopLines || kLoopTimes * forms.size() <= lines; }

  // Prefers named tracks, then high and long counts: loading at the start counts high, but only briefly. A
  // number that falls as often as it rises is not a counter.
  double weight(TimeNs longest) const {
    const double distinct = static_cast<double>(points.size() * stride);
    if (falls * 4 > rises || !is_loop() || distinct < (kind == CounterKind::kCounts ? 8 : 2)) return 0;
    const double share = longest > 0 ? static_cast<double>(duration()) / static_cast<double>(longest) : 1;
    return distinct * (0.05 + share) *
           (kind == CounterKind::kNamed ? 1e6
            : kind == CounterKind::kBar ? 1e3
                                        : 1);
  }
};

struct Sequence {
  std::vector<uint32_t> symbols;
  uint64_t hash = 0;
};

// The current iteration of a writer, and its window.
struct WriterLoop {
  uint32_t boundary = 0xffffffff;
  CounterKind boundary_kind = CounterKind::kCounts;
  int64_t iteration = -1;
  uint32_t source = 0;
  Sequence now;
  std::vector<Sequence> window;
  bool given_up = false;  // kSymbols was reached: the writer's iterations are no longer compared
  uint64_t count = 0;
  double mean = 0, squares = 0;  // Welford's running moments of the distances
};

uint64_t hash_of(const std::vector<uint32_t>& symbols) {
  return hash64({reinterpret_cast<const char*>(symbols.data()), symbols.size() * sizeof(uint32_t)});
}

}  // namespace

struct Iterations::Impl {
  std::deque<Track> tracks;  // `chosen` points into it
  FlatMap<uint32_t> track_of{64};
  std::vector<WriterLoop> loops;
  Warp warp;
  std::vector<OddIteration> odd;
  Drops drops;
  size_t symbols = 0;        // total in the windows of all writers
  size_t track_writers = 0;  // total in all tracks
  size_t counts_tracks = 0;  // tracks of kind kCounts
  size_t untimed = 0;        // number of lists of untimed points, in all tracks
  uint64_t moves = 0;
  const Track* chosen = nullptr;
  std::vector<ProgressPoint>
      by_time;  // points of the chosen track, each with the highest iteration up to its time
  TimeNs median_step = 0;

  WriterLoop& loop(uint32_t writer) {
    if (writer >= loops.size()) loops.resize(writer + 1);
    return loops[writer];
  }

  Track* track(uint32_t key, CounterKind kind) {
    if (const uint32_t* known = track_of.find(key)) return &tracks[*known];
    if (tracks.size() == kTracks || (kind == CounterKind::kCounts && counts_tracks == kCountsTracks)) {
      drops.add(Drop::kTracks);
      return nullptr;
    }
    counts_tracks += kind == CounterKind::kCounts;
    track_of.try_emplace(key, static_cast<uint32_t>(tracks.size()));
    tracks.emplace_back();
    tracks.back().key = key;
    tracks.back().kind = kind;
    return &tracks.back();
  }

  bool add(Track& track, uint32_t writer, const ProgressPoint& point) {
    bool rose = false;
    if (track.of_writer.find(writer)) {
      rose = track.rises_to(*track.of_writer.try_emplace(writer, 0).first, point.iteration);
    } else if (track_writers < kTrackWriters) {
      ++track_writers;
      track.of_writer.try_emplace(writer, point.iteration);
      rose = true;
    } else {
      drops.add(Drop::kTrackWriters);
    }
    track.add(point);
    moves += rose && (track.kind != CounterKind::kCounts || &track == chosen);
    if (point.time_ns == kNoTime) {
      const auto [list, fresh] = track.untimed.try_emplace(point.source);
      untimed += fresh;
      list->second.push_back(point);
      if (list->second.size() > std::clamp(kUntimedPoints / untimed, kUntimedFew, kPoints))
        Track::thin(list->second);
    }
    return rose;
  }

  void forget(WriterLoop& l) {
    symbols -= l.now.symbols.size();
    for (const Sequence& s : l.window) symbols -= s.symbols.size();
    l.now = {};
    l.window = {};
  }

  double mean_distance(const WriterLoop& l) {
    static_assert(kWindow <= Warp::kPairs);
    std::span<const uint32_t> others[kWindow];
    double distances[kWindow];
    size_t count = 0;
    for (const Sequence& s : l.window)
      if (s.hash != l.now.hash) others[count++] = s.symbols;
    if (count > 0) warp.distances(l.now.symbols, {others, count}, distances);
    double sum = 0;
    for (size_t i = 0; i < count; ++i) sum += distances[i];
    return sum / static_cast<double>(l.window.size());
  }

  void close(uint32_t writer, WriterLoop& l, const ProgressPoint& point) {
    l.now.hash = hash_of(l.now.symbols);
    if (l.window.size() >= 2) {
      judge(writer, l, point, mean_distance(l));
    }
    if (l.window.size() == kWindow) {
      symbols -= l.window.front().symbols.size();
      l.window.erase(l.window.begin());
    }
    l.window.push_back(std::move(l.now));
    l.now = {};
  }

  void judge(uint32_t writer, WriterLoop& l, const ProgressPoint& point, double distance) {
    const double variance = l.count > 1 ? l.squares / static_cast<double>(l.count - 1) : 0;
    const double sigma = (distance - l.mean) / std::max(kSigmaFloor, std::sqrt(variance));
    if (l.count >= kWarmUp && sigma > kSigmas) {
      if (odd.size() < kOdd)
        odd.push_back({writer, l.iteration, distance, sigma, point.time_ns, fresh(l)});
      else
        drops.add(Drop::kOdd);
    }
    ++l.count;
    const double delta = distance - l.mean;
    l.mean += delta / static_cast<double>(l.count);
    l.squares += delta * (distance - l.mean);
  }

  // Clocks of hosts differ, so times may not rise with iterations: takes the highest iteration up to each
  // time.
  void order_by_time() {
    by_time.clear();
    if (!chosen) return;
    for (const auto* points : {&chosen->points, &chosen->recent})
      for (const ProgressPoint& p : *points)
        if (p.time_ns != kNoTime) by_time.push_back(p);
    std::stable_sort(by_time.begin(), by_time.end(),
                     [](const ProgressPoint& a, const ProgressPoint& b) { return a.time_ns < b.time_ns; });
    for (size_t i = 1; i < by_time.size(); ++i)
      by_time[i].iteration = std::max(by_time[i].iteration, by_time[i - 1].iteration);
  }

  static std::vector<uint32_t> fresh(const WriterLoop& l) {
    std::vector<uint32_t> out;
    for (uint32_t symbol : l.now.symbols) {
      bool known = false;
      for (const Sequence& s : l.window)
        known = known || std::find(s.symbols.begin(), s.symbols.end(), symbol) != s.symbols.end();
      if (!known && std::find(out.begin(), out.end(), symbol) == out.end()) out.push_back(symbol);
    }
    return out;
  }
};

Iterations::Iterations() : impl_(std::make_unique<Impl>()) {}
Iterations::~Iterations() = default;

void Iterations::event(uint32_t writer, uint32_t cluster) {
  WriterLoop& l = impl_->loop(writer);
  if (l.boundary == 0xffffffff || l.given_up) return;
  auto& symbols = l.now.symbols;
  if (symbols.size() >= kSequence || (!symbols.empty() && symbols.back() == cluster)) return;
  if (impl_->symbols >= kSymbols) {
    impl_->forget(l);
    l.given_up = true;
    return impl_->drops.add(Drop::kLoops);
  }
  symbols.push_back(cluster);
  ++impl_->symbols;
}

bool Iterations::progress(uint32_t writer, uint32_t key, CounterKind kind, const ProgressPoint& point) {
  Track* track = impl_->track(key, kind);
  const bool rose = track && impl_->add(*track, writer, point);
  WriterLoop& l = impl_->loop(writer);
  if (l.given_up) return rose;
  if (l.boundary == 0xffffffff || (kind > l.boundary_kind && l.boundary != key)) {
    impl_->forget(l);
    l = WriterLoop{};
    l.boundary = key;
    l.boundary_kind = kind;
  }
  if (l.boundary != key) {
    event(writer, key);
    return rose;
  }
  if (l.iteration >= 0 && point.iteration > l.iteration) impl_->close(writer, l, point);
  if (point.iteration != l.iteration) {
    impl_->symbols -= l.now.symbols.size();
    l.now = {};
  }
  l.iteration = point.iteration;
  l.source = point.source;
  return rose;
}

uint64_t Iterations::moves() const { return impl_->moves; }

void Iterations::choose() {
  const Track* best = nullptr;
  TimeNs longest = 0;
  for (const Track& t : impl_->tracks) longest = std::max(longest, t.duration());
  for (const Track& t : impl_->tracks)
    if (t.weight(longest) > (best ? best->weight(longest) : 0)) best = &t;
  impl_->chosen = best;
  impl_->median_step = 0;
  impl_->order_by_time();
  if (!best) return;
  std::vector<double> steps;
  for (size_t i = 1; i < best->points.size(); ++i) {
    const ProgressPoint& a = best->points[i - 1];
    const ProgressPoint& b = best->points[i];
    if (a.time_ns == kNoTime || b.time_ns == kNoTime || b.time_ns < a.time_ns) continue;
    steps.push_back(static_cast<double>(b.time_ns - a.time_ns) /
                    static_cast<double>(b.iteration - a.iteration));
  }
  if (steps.empty()) return;
  std::nth_element(steps.begin(), steps.begin() + steps.size() / 2, steps.end());
  impl_->median_step = static_cast<TimeNs>(steps[steps.size() / 2]);
}

const std::vector<ProgressPoint>& Iterations::track() const {
  static const std::vector<ProgressPoint> kNone;
  return impl_->chosen ? impl_->chosen->points : kNone;
}

int64_t Iterations::iteration_at(TimeNs time, uint32_t source, uint64_t line) const {
  const Track* t = impl_->chosen;
  if (!t) return -1;
  const auto& points = impl_->by_time;
  if (time != kNoTime && !points.empty()) {
    const auto after = std::upper_bound(points.begin(), points.end(), time,
                                        [](TimeNs at, const ProgressPoint& p) { return at < p.time_ns; });
    return after == points.begin() ? -1 : std::prev(after)->iteration;
  }
  const auto untimed = t->untimed.find(source);
  if (untimed == t->untimed.end()) return -1;
  const auto& list = untimed->second;
  const auto after = std::upper_bound(list.begin(), list.end(), line,
                                      [](uint64_t at, const ProgressPoint& p) { return at < p.line; });
  return after == list.begin() ? -1 : std::prev(after)->iteration;
}

OwnStep Iterations::own_step(uint32_t writer, uint32_t source) const {
  if (writer >= impl_->loops.size() || impl_->loops[writer].source != source) return {};
  if (impl_->loops[writer].given_up) return {};
  return {impl_->loops[writer].boundary, impl_->loops[writer].iteration};
}

int64_t Iterations::iteration_of(const OwnStep& step) const {
  return impl_->chosen && impl_->chosen->key == step.track ? step.iteration : -1;
}

ProgressPoint Iterations::last() const { return impl_->chosen ? impl_->chosen->last : ProgressPoint{}; }
TimeNs Iterations::median_step_ns() const { return impl_->median_step; }

int64_t Iterations::span() const {
  const Track* t = impl_->chosen;
  return t && !t->points.empty() ? t->max - t->points.front().iteration : 0;
}

int64_t Iterations::last_of(uint32_t writer) const {
  if (!impl_->chosen) return -1;
  const int64_t* at = impl_->chosen->of_writer.find(writer);
  return at ? *at : -1;
}

const std::vector<OddIteration>& Iterations::odd() const { return impl_->odd; }
const Drops& Iterations::drops() const { return impl_->drops; }

}  // namespace culprit::logs
