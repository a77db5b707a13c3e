#include "ingest/live/tailer.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include "ingest/live/tailer_context.h"
#include "ingest/live/tailer_follow.h"
#include "ingest/live/tailer_late.h"
#include "ingest/live/tailer_scan.h"

namespace culprit::ingest {

// One round: the folders, then the sources that are due, then the bytes.
class Tailer::Impl {
 public:
  Impl(TailOptions options, WatchGlob glob) : tail_(std::move(options), std::move(glob)) {}
  void restore(const std::vector<StreamState>& known);
  TailOutcome round(const TailRound& round);
  const TailCounts& counts() const { return tail_.counts; }

 private:
  void restore_source(const StreamState& state, const std::string& name);
  bool watch_root();
  void look_ahead();
  void read_ready(uint64_t left);
  TimeNs next_time() const;

  TailContext tail_;
  LateFiles late_{tail_};
  SourceFollower follower_{tail_, late_};
  FolderScan folders_{tail_, follower_, late_};
  std::string root_trouble_;  // why the root cannot be opened; reported
  TimeNs next_root_ = 0;
};

Result<std::unique_ptr<Tailer>> Tailer::make(TailOptions options, const std::vector<StreamState>& known) {
  auto glob = WatchGlob::parse(options.glob);
  if (!glob) return tl::unexpected(std::move(glob.error()));
  auto impl = std::make_unique<Impl>(std::move(options), std::move(*glob));
  impl->restore(known);
  return std::unique_ptr<Tailer>(new Tailer(std::move(impl)));
}

Tailer::Tailer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Tailer::~Tailer() = default;

TailOutcome Tailer::round(const TailRound& round) { return impl_->round(round); }

TailStats Tailer::stats() const {
  const TailCounts& from = impl_->counts();
  return {.files = from.files,
          .slots = from.slots,
          .open = from.open,
          .bytes = from.bytes,
          .lag_bytes = from.lag_bytes,
          .generations = from.generations,
          .gaps = from.gaps,
          .gap_bytes = from.gap_bytes,
          .refused = from.refused,
          .left_out = from.left_out};
}

void Tailer::Impl::restore(const std::vector<StreamState>& known) {
  const std::string root = tail_.glob.root() == "/" ? "/" : tail_.glob.root() + "/";
  for (const StreamState& state : known) {
    if (state.info.kind != tail_.options.kind || !state.info.path.starts_with(root)) continue;
    const std::string name = state.info.path.substr(root.size());
    if (tail_.glob.takes_path(name)) restore_source(state, name);
  }
}

void Tailer::Impl::restore_source(const StreamState& state, const std::string& name) {
  auto made = std::make_unique<TailSource>();
  made->info = state.info;
  made->name = name;
  made->size = state.size;
  made->past = state.past;
  made->ended = state.ended;
  made->searches = made->declared = true;
  made->placed = state.place.has_value();
  made->folder = &folders_.folder_above(name);
  if (state.place && state.ended) made->past.push_back(*state.place);
  if (state.place && !state.ended) {
    Generation last;
    last.place = *state.place;
    last.name = name;
    last.seen = last.place.offset;
    if (last.place.offset == 0) {
      last.peek = last.place;
      last.seen = last.place.fingerprint_bytes;
    }
    made->chain.push_back(std::move(last));
  }
  TailSource& source = tail_.sources.add(std::move(made));
  if (source.ended) {
    source.folder->ended.push_back(source.number);
    return;
  }
  ++tail_.counts.files;
  source.folder->sources.push_back(source.number);
  source.queued_at = std::numeric_limits<TimeNs>::max();
  tail_.queue.schedule(source, 0);
}

TailOutcome Tailer::Impl::round(const TailRound& round) {
  TailOutcome outcome;
  tail_.time = {round.now, round.now_mono};
  tail_.output.begin(outcome);
  folders_.take_hints(round);
  tail_.open.adapt(tail_.root.take_shortage());
  if (watch_root()) {
    look_ahead();
    folders_.list_due();
    while (TailSource* source = tail_.queue.pop_due()) follower_.look(*source);
    read_ready(round.budget_bytes);
  }
  tail_.lister.forget();
  outcome.more = tail_.queue.ready() > 0;
  outcome.next_mono_ns = next_time();
  tail_.counts.open = tail_.open.count();
  tail_.counts.slots = tail_.sources.count();
  tail_.counts.bytes += outcome.batch.bytes();
  tail_.output.end();
  return outcome;
}

bool Tailer::Impl::watch_root() {
  const TimeNs mono = tail_.time.mono;
  if (tail_.root.is_open() && mono < next_root_) return true;
  next_root_ = mono + kPolledLookNs;
  if (tail_.root.still_at(tail_.glob.root())) return true;
  tail_.root.close();
  const Status opened = tail_.root.open(tail_.glob.root());
  if (opened) {
    root_trouble_.clear();
    folders_.add_root();
    for (const auto& source : tail_.sources.all())
      if (source && !source->ended) tail_.queue.schedule(*source, mono);
    return true;
  }
  if (root_trouble_ != opened.error().text) tail_.output.problem("", opened.error().text);
  root_trouble_ = opened.error().text;
  return false;
}

// For the sources that one round may open: opens their files first, then reads the names once for all.
void Tailer::Impl::look_ahead() {
  const std::vector<TailSource*> retries = tail_.queue.take_retries();
  for (TailSource* source : retries) source->ahead = follower_.at_path(*source);
  for (TailSource* source : retries) {
    follower_.look(*source);
    source->ahead.reset();
  }
}

void Tailer::Impl::read_ready(uint64_t left) {
  // An equal share, at least one piece: sources that still wait are first in the next round.
  const uint64_t share = std::max<uint64_t>(left / std::max<size_t>(tail_.queue.ready(), 1), 64 << 10);
  while (left > 0) {
    TailSource* const source = tail_.queue.pop_ready();
    if (source == nullptr) return;
    left -= std::min(left, follower_.read(*source, std::min(share, left)));
  }
}

TimeNs Tailer::Impl::next_time() const {
  const TimeNs mono = tail_.time.mono;
  const TimeNs latest = std::min(mono + kSweepNs, next_root_);
  if (!tail_.root.is_open()) return latest;
  return std::max(folders_.next_time(tail_.queue.next_time(latest)), mono + kNsPerMs);
}

}  // namespace culprit::ingest
