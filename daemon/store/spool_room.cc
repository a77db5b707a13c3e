// Makes room in a spool: above its size limit, and on a full disk.
#include <fmt/format.h>

#include <algorithm>

#include "base/crash_point.h"
#include "base/text.h"
#include "store/spool.h"
#include "store/spool_clean.h"

namespace culprit::store {

namespace {

// Free space (besides the pending write) below which a disk counts as full: file systems reserve some.
constexpr uint64_t kDiskSlackBytes = 1 << 20;
// Share of the spool for pinned times.
constexpr uint64_t kPinnedShare = 4;
// Age up to which evidence is protected from other owners. Older jobs must not reduce the space of current
// ones.
constexpr TimeNs kProtectedNs = 7 * 24 * 3600 * kNsPerSecond;
// A cleaned segment up to this share of segment_bytes_ takes the kept records of the next cleaned segment,
// so that few files remain.
constexpr uint64_t kJoinedShare = 4;

}  // namespace

// Keeps the spool within max_bytes. If nothing can be deleted, the current write exceeds the limit. An
// error if unacknowledged frames fill the spool.
Status Spool::room_for(uint64_t needed, TimeNs now) {
  while (segments_.bytes() + needed > options_.max_bytes && segments_.all().size() > 1)
    if (!evict(now, segments_.bytes() + needed > options_.max_bytes + segment_bytes_)) break;
  stats_.full =
      segments_.bytes() + needed > options_.max_bytes && is_held(0) && segments_.ends_after(0, received_);
  if (!stats_.full) return {};
  return fail(ErrorCode::kLimit, fmt::format("{}: its {} are full of what the collector has not acknowledged",
                                             options_.folder, format_bytes(options_.max_bytes)));
}

// Deletes old evidence on a full disk, down to one finished segment. Returns whether there is room now.
bool Spool::make_room_on_disk(uint64_t needed, TimeNs now) {
  if (segments_.all().size() <= 2) return false;
  const auto disk = files_.space(options_.folder);
  if (!disk || disk->free >= needed + kDiskSlackBytes) return false;
  const uint64_t before = stats_.dropped_bytes;
  if (!evict(now, true)) return false;
  stats_.dropped_for_disk += stats_.dropped_bytes - before;
  return true;
}

// Whether the peer still needs frames of a finished segment.
bool Spool::is_held(size_t which) const {
  return options_.hold && segments_.ends_after(which, acknowledged_);
}

bool Spool::is_stale(size_t which, TimeNs now) const {
  const TimeNs end = segments_.all()[which + 1].created_ns;
  return end != kNoTime && now - end > kProtectedNs;
}

// `at_once`: if no segment can be rewritten now, deletes one. Otherwise the next write tries again: one
// failed call must not delete the evidence of others.
bool Spool::evict(TimeNs now, bool at_once) {
  const auto& all = segments_.all();
  if (is_held(0)) {
    const uint64_t bytes = all.front().size;
    if (segments_.ends_after(0, received_) || !drop_whole(0)) return false;
    stats_.given_up_bytes += bytes;
    return true;
  }
  if (!options_.fair) return drop_oldest();
  const std::set<uint64_t> pinned = pins_.segments(all, options_.max_bytes / kPinnedShare);
  std::vector<size_t> candidates;
  for (size_t i = 0; i + 1 < all.size() && !is_held(i); ++i)
    if (!pinned.contains(all[i].number)) candidates.push_back(i);
  if (candidates.empty() || (candidates.front() == 0 && is_stale(0, now))) return drop_oldest();
  const auto victim = shares_.choose(all, candidates);
  if (victim && clean(*victim, pinned)) return true;
  if (victim && !at_once) return false;
  for (const size_t which : candidates)  // needs no room
    if (victim && shares_.is_only_of(all[which].number, *victim)) return drop_whole(which);
  if (candidates.front() == 0) return drop_oldest();
  for (const size_t which : candidates)
    if (!shares_.is_empty(all[which].number)) return clean({.segment = which, .everyone = true}, pinned);
  return drop_oldest();
}

// Rewrites a segment without the evidence of the victim.
bool Spool::clean(const Victim& victim, const std::set<uint64_t>& pinned) {
  const auto& all = segments_.all();
  const size_t which = victim.segment;
  const auto segment = all[which];
  const auto fails = [&](const Error& error) {
    stats_.failures += 1;
    stats_.last_error = error.text;
    return false;
  };
  const bool joins = which > 0 && all[which - 1].cleaned && !pinned.contains(all[which - 1].number) &&
                     all[which - 1].size <= segment_bytes_ / kJoinedShare &&
                     !shares_.has(all[which - 1].number, victim);
  CleanPlan plan{options_.folder, epoch_, segment.number, all[which + 1].number, {}, {}};
  plan.removes = [&](const StreamInfo& info) { return victim.takes(owner_of(info)); };
  if (joins) plan.into = all[which - 1].number;
  crash_point("store.before_clean");
  const auto size = clean_segment(files_, packer_, plan);
  if (!size) return fails(size.error());
  const uint64_t before = segments_.bytes();
  segments_.replaced(joins ? which - 1 : which, *size);
  shares_.evict(segment.number, victim);
  if (joins) {
    // The kept records must be durable in the other file before this file is deleted.
    Status joined = files_.sync_folder(options_.folder);
    if (joined) joined = segments_.drop(which);
    if (!joined) return fails(joined.error());
    shares_.join(segment.number, *plan.into);
  }
  const uint64_t freed = before - std::min(before, segments_.bytes());
  stats_.dropped_bytes += freed;
  if (victim.uid && !victim.everyone) {
    stats_.evicted_bytes += freed;
    stats_.evicted_from = to_string(victim.uid);
    if (victim.job) stats_.evicted_from += fmt::format(", job {}", *victim.job);
  }
  crash_point("store.cleaned");
  note_first_offsets();
  return true;
}

bool Spool::drop_whole(size_t which) {
  crash_point("store.before_trim");
  const auto dropped = segments_.all()[which];
  if (const Status removed = segments_.drop(which); !removed) {
    stats_.failures += 1;
    stats_.last_error = removed.error().text;
    return false;
  }
  shares_.forget(dropped.number);
  stats_.dropped_segments += 1;
  stats_.dropped_bytes += dropped.size;
  crash_point("store.after_trim");
  note_first_offsets();
  return true;
}

}  // namespace culprit::store
