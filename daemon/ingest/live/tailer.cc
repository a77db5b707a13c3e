#include "ingest/live/tailer.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "base/hash.h"
#include "ingest/live/tailer_impl.h"

namespace culprit::ingest {
namespace {

// Descriptors that a round may open for waiting sources: few compared to the kept ones.
constexpr size_t kAhead = 64;
// Delay of the next attempt if names changed while they were read: a rotation is over by then, and an
// unreadable folder costs little.
constexpr TimeNs kPendingNs = 10 * kNsPerMs;

}  // namespace

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
  const Impl& from = *impl_;
  return {.files = from.files,
          .slots = from.slots,
          .open = from.open,
          .bytes = from.bytes,
          .lag_bytes = from.lag_bytes,
          .generations = from.generations,
          .gaps = from.gaps,
          .gap_bytes = from.gap_bytes,
          .refused = from.refused};
}

Tailer::Impl::Impl(TailOptions options, WatchGlob glob)
    : options_(std::move(options)), glob_(std::move(glob)), root_({.before_ask = options_.before_ask}) {}

void Tailer::Impl::restore(const std::vector<StreamState>& known) {
  const std::string root = glob_.root() == "/" ? "/" : glob_.root() + "/";
  for (const StreamState& state : known) {
    if (state.info.kind != options_.kind || !state.info.path.starts_with(root)) continue;
    auto source = std::make_unique<TailSource>();
    source->info = state.info;
    source->name = state.info.path.substr(root.size());
    if (!glob_.takes_path(source->name)) continue;
    source->size = state.size;
    source->past = state.past;
    source->ended = state.ended;
    if (state.place) {
      Generation last;
      last.place = *state.place;
      last.name = source->name;
      last.seen = last.place.offset;
      source->chain.push_back(std::move(last));
    }
    const auto number = static_cast<uint32_t>(sources_.size());
    // If a path ended and came back, the later stream has it.
    auto [at, fresh] = by_name_.try_emplace(source->name, number);
    if (!fresh && !source->ended) at->second = number;
    source->number = number;
    sources_.push_back(std::move(source));
    TailSource& kept = *sources_.back();
    for (const FilePlace& place : kept.past) index(kept, place);
    if (state.place) index(kept, *state.place);
    kept.folder = &folder_above(kept.name);
    if (kept.ended) {
      if (state.place) kept.past.push_back(*state.place);
      kept.chain.clear();
      kept.folder->ended.push_back(number);
      continue;
    }
    ++files;
    kept.folder->sources.push_back(number);
    kept.queued_at = std::numeric_limits<TimeNs>::max();
    schedule(kept, 0);
  }
}

TailOutcome Tailer::Impl::round(const TailRound& round) {
  TailOutcome outcome;
  now_ = round.now;
  mono_ = round.now_mono;
  round_ = &round;
  out_ = &outcome;
  drain_hints();
  if (stand_on_root()) {
    look_ahead();
    list_due();
    look_due();
    uint64_t left = round.budget_bytes;
    // An equal share, at least one piece: sources that still wait are first in the next round.
    const uint64_t share = std::max<uint64_t>(left / std::max<size_t>(ready_.size(), 1), 64 << 10);
    while (left > 0 && !ready_.empty()) {
      const uint32_t number = ready_.front();
      ready_.pop_front();
      if (!sources_[number]) continue;
      TailSource& source = *sources_[number];
      source.ready = false;
      left -= std::min(left, read_source(source, std::min(share, left)));
    }
  }
  forget_names();
  outcome.more = !ready_.empty();
  outcome.next_mono_ns = next_time();
  open = descriptors_;
  slots = sources_.size() - free_.size();
  bytes += outcome.batch.bytes();
  out_ = nullptr;
  round_ = nullptr;
  return outcome;
}

std::string Tailer::Impl::path_of(const std::string& below) const {
  if (below.empty()) return glob_.root();
  return glob_.root() == "/" ? "/" + below : glob_.root() + "/" + below;
}

void Tailer::Impl::problem(const std::string& below, std::string what) {
  if (out_) out_->problems.push_back({path_of(below), std::nullopt, std::move(what)});
}

// Only the earliest entry of a source in the queue is valid; others are skipped.
void Tailer::Impl::schedule(TailSource& source, TimeNs at) {
  source.next_look = at;
  if (at >= source.queued_at) return;
  source.queued_at = at;
  due_.emplace(at, source.number);
}

void Tailer::Impl::look_later(TailSource& source) {
  const bool watched = source.folder->watched;
  if (source.changed_at == 0) source.changed_at = mono_ - kSweepNs;
  const TimeNs idle = (mono_ - source.changed_at) / kIdleShare;
  const TimeNs longest = watched ? kSweepNs : std::clamp(idle, kPolledLookNs, kSweepNs);
  if (source.changed_at == mono_ || source.interval == 0) source.interval = kFirstLookNs;
  TimeNs wait = watched && !source.absent_since ? kSweepNs : source.interval;
  if (!source.late.empty() && wait > kPolledLookNs) wait = kPolledLookNs;
  // Spread, so that a thousand files do not come due in one round again and again.
  const TimeNs jitter = static_cast<TimeNs>(mix64(source.info.id, 1) % 256) * wait / 1024;
  source.interval = std::min(source.interval * 2, longest);
  schedule(source, mono_ + wait - jitter);
}

void Tailer::Impl::make_ready(TailSource& source) {
  if (source.ready || mono_ < source.not_before) return;
  source.ready = true;
  ready_.push_back(source.number);
}

void Tailer::Impl::note_lag(TailSource& source) {
  uint64_t lag = 0;
  for (const Generation& generation : source.chain)
    if (generation.compression == Compression::kNone) lag += generation.unread();
  lag_bytes += lag - source.lag;
  source.lag = lag;
}

void Tailer::Impl::drain_hints() {
  const auto each = [&](const std::vector<std::string>& paths, auto&& act) {
    for (const std::string& path : paths)
      if (TailFolder* found = folder_of_path(path)) act(*found);
  };
  each(round_->watched, [&](TailFolder& folder) {
    folder.watched = true;
    // No notification covers the time between the last check and the watch.
    folder.next_list = folder.next_full = next_folder_ = 0;
    for (const uint32_t number : folder.sources) schedule(*sources_[number], mono_);
  });
  each(round_->changed, [&](TailFolder& folder) {
    folder.hinted = true;
    hot_.insert(&folder);
  });
}

bool Tailer::Impl::stand_on_root() {
  if (root_.is_open() && mono_ < next_root_) return true;
  next_root_ = mono_ + kPolledLookNs;
  if (root_.still_at(glob_.root())) return true;
  root_.close();
  const int error = root_.open(glob_.root());
  if (error == 0) {
    root_missing_ = false;
    folder("", glob_.at_root());
    for (auto& source : sources_)
      if (source && !source->ended) schedule(*source, mono_);
    return true;
  }
  if (!root_missing_) problem("", reason_of(error));
  root_missing_ = true;
  return false;
}

void Tailer::Impl::list_due() {
  const std::set<TailFolder*> hot = hot_;
  for (TailFolder* folder : hot) visit(*folder);
  if (mono_ < next_folder_) return;
  // Listing adds folders at any position: repeat until none is due.
  for (size_t before = 0; before != folders_.size();) {
    before = folders_.size();
    for (auto& [name, folder] : folders_)
      if (!folder->gone && mono_ >= folder->next_list) visit(*folder);
  }
  next_folder_ = mono_ + kSweepNs;
  for (auto& [name, folder] : folders_)
    if (!folder->gone) next_folder_ = std::min(next_folder_, folder->next_list);
  // Lists many folders together.
  next_folder_ = std::max(next_folder_, mono_ + kFirstLookNs);
}

void Tailer::Impl::visit(TailFolder& folder) {
  if (!folder.gone && list_changed(folder)) list(folder);
  if (folder.hinted) sweep_after_hint(folder);
  if (folder.gone || (!folder.hinted && folder.waiting.empty())) hot_.erase(&folder);
}

void Tailer::Impl::sweep_after_hint(TailFolder& folder) {
  const bool all = mono_ >= folder.next_sweep;
  // By index: a check may add sources.
  for (size_t i = 0; i < folder.sources.size(); ++i) {
    TailSource& source = *sources_[folder.sources[i]];  // ended sources are not in the list
    const bool busy = source.changed_at != 0 && mono_ - source.changed_at < kSweepNs;
    if (all || busy) look(source);
  }
  if (!all) return;
  folder.hinted = false;
  folder.next_sweep = mono_ + static_cast<TimeNs>(folder.sources.size()) * kSweepNsPerFile;
}

// For the sources that one round may open: opens their files first, then reads the names once for all.
void Tailer::Impl::look_ahead() {
  std::vector<uint32_t> first = std::exchange(pending_, {});
  const size_t now = std::min(first.size(), kAhead);
  pending_.assign(first.begin() + static_cast<ptrdiff_t>(now), first.end());
  first.resize(now);
  std::erase_if(first, [&](uint32_t number) { return !sources_[number] || sources_[number]->ended; });
  for (const uint32_t number : first) {
    sources_[number]->pending = false;
    sources_[number]->ahead = at_path(*sources_[number]);
  }
  for (const uint32_t number : first) {
    look(*sources_[number]);
    sources_[number]->ahead.reset();
  }
}

void Tailer::Impl::look_due() {
  while (!due_.empty() && due_.top().first <= mono_) {
    const auto [at, number] = due_.top();
    due_.pop();
    if (!sources_[number] || sources_[number]->ended || sources_[number]->queued_at != at) continue;
    TailSource& source = *sources_[number];
    source.queued_at = std::numeric_limits<TimeNs>::max();
    if (source.next_look > mono_) {
      schedule(source, source.next_look);
    } else {
      look(source);
    }
  }
}

TimeNs Tailer::Impl::next_time() const {
  TimeNs next = std::min(mono_ + kSweepNs, next_root_);
  if (!root_.is_open()) return next;
  if (!due_.empty()) next = std::min(next, due_.top().first);
  next = std::min(next, next_folder_);
  if (!pending_.empty()) next = std::min(next, mono_ + kPendingNs);
  for (const TailFolder* folder : hot_) {
    if (folder->hinted) next = std::min(next, folder->next_sweep);
    if (!folder->waiting.empty()) next = std::min(next, mono_ + kFirstLookNs);
  }
  return std::max(next, mono_ + kNsPerMs);
}

}  // namespace culprit::ingest
