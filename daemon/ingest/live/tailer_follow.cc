#include "ingest/live/tailer_follow.h"

#include <algorithm>
#include <cerrno>
#include <utility>

namespace culprit::ingest {
namespace {

// A list that changes while it is read is read again; a rotation each millisecond needs a few attempts.
constexpr int kAttempts = 8;
// A path that is empty for this long has ended; rotations take less time.
constexpr TimeNs kAbsentNs = 60 * kNsPerSecond;

bool has_work(const TailSource& source) {
  const auto unread = [](const LateFile& late) { return late.generation.unread() > 0; };
  if (std::any_of(source.late.begin(), source.late.end(), unread)) return true;
  if (source.chain.empty()) return false;
  return source.chain.size() > 1 || source.chain.back().unread() > 0 || source.chain.back().gap_before;
}

}  // namespace

void SourceFollower::look(TailSource& source) {
  if (late_.have_grown(source)) tail_.queue.make_ready(source);
  Look at;
  const int error = tail_.root.look(source.name, at);
  if (is_uncertain(error)) {
    source.searches = true;
    if (!source.unseen_since) source.unseen_since = tail_.time.mono;
    if (tail_.time.mono - *source.unseen_since >= kUncertainNs) return failed(source, error);
    return tail_.queue.retry(source);
  }
  source.unseen_since.reset();
  if (error != 0 || !at.regular) {
    look_absent(source);
  } else if (!source.chain.empty() && same_file(source.chain.back().place, at) &&
             source.chain.back().compression == Compression::kNone) {
    source.absent_since.reset();
    look_same(source, at);
  } else if (at.device == source.foreign_device && at.inode == source.foreign_inode) {
    look_absent(source);
  } else {
    look_other(source);
  }
  if (source.ended) return;
  if (has_work(source)) tail_.queue.make_ready(source);
  // No bytes came with the gap since the previous check: report it alone.
  if (source.gap && !has_work(source) && tail_.time.mono > source.gap_at) tail_.output.add_piece(source, "");
  tail_.output.note_lag(source);
  tail_.queue.schedule_next(source);
}

void SourceFollower::look_same(TailSource& source, const Look& at) {
  Generation& last = source.chain.back();
  // Also detects truncation if none or not all bytes were read.
  const bool shorter = at.size < last.place.offset || at.size < last.seen;
  const bool moved = at.size != last.seen || at.modified_ns != last.modified_ns;
  // A file that was restored, or rewritten to the same length, must begin with the bytes that were read.
  const bool doubtful = !last.verified || (moved && at.size == last.place.offset && at.size > 0);
  if (!shorter && doubtful && last.place.fingerprint_bytes > 0) {
    if (!ensure_open(source, last)) return;
    const FileState unchanged = state_as_read(last);
    if (unchanged == FileState::kUnreadable) return failed(source, errno);
    if (unchanged == FileState::kNo) return resolve(source, true);
  }
  if (shorter) {
    source.changed_at = tail_.time.mono;
    return resolve(source, true);
  }
  last.verified = true;
  if (!moved) return;
  if (last.place.offset == 0 && (at.size > 0 || last.modified_ns != kNoTime)) {
    // A rotation may have copied and truncated it before any byte was read or the growth was seen.
    if (!ensure_open(source, last)) return;
    const CallWatch calls;
    const std::string beginning = beginning_of(last.file, Compression::kNone);
    if (calls.failed()) return failed(source, CallWatch::error());
    const bool unseen = last.peek.fingerprint_bytes == 0 && (!source.past.empty() || source.chain.size() > 1);
    if (unseen || !begins_as(beginning, last.peek)) return resolve(source, true);
    last.peek = peek_of(last);
  }
  if (at.size != last.seen) source.changed_at = tail_.time.mono;
  last.seen = at.size;
  last.modified_ns = at.modified_ns;
}

void SourceFollower::look_other(TailSource& source) {
  source.changed_at = tail_.time.mono;
  // If its name is a rotated name of another source, the parts of that source must be known first.
  for (const RotatedName& form : rotated_forms(name_in(source.name))) {
    TailSource* base = tail_.sources.at(join_below(source.folder->name, form.base));
    if (base != nullptr && base != &source && !base->ended) look(*base);
  }
  resolve(source, false);
}

void SourceFollower::look_absent(TailSource& source) {
  if (!source.absent_since) {
    source.absent_since = tail_.time.mono;
    source.next_search = 0;
    source.interval = kFirstLookNs;
  }
  bool linked = false;
  const CallWatch calls;
  if (!source.chain.empty()) {
    Generation& last = source.chain.back();
    Look at;
    const bool seen = last.file.is_open() ? look_at(last.file.get(), at) == 0
                                          : tail_.root.look(last.name, at) == 0 && same_file(last.place, at);
    if (seen && last.compression == Compression::kNone && at.size >= last.place.offset) {
      if (at.size != last.seen) source.changed_at = tail_.time.mono;
      last.seen = at.size;
      last.modified_ns = at.modified_ns;
      linked = at.linked;
    }
  }
  // New names in the folder may belong to the source, even if its last generation has one of them.
  Look folder;
  if (tail_.root.look(source.folder->name, folder) != 0) folder.modified_ns = kNoTime;
  const bool unchanged = linked && last_name_is_there(source) && folder.modified_ns == source.searched_ns;
  if (!unchanged || tail_.time.mono >= source.next_search) {
    source.next_search = tail_.time.mono + kSweepNs;
    source.searched_ns = folder.modified_ns;
    resolve(source, false);
  }
  if (!linked && !calls.failed() && !has_work(source) && tail_.time.mono - *source.absent_since >= kAbsentNs)
    end(source);
}

// Whether the last generation still has its last known name, away from the path.
bool SourceFollower::last_name_is_there(const TailSource& source) {
  const Generation& last = source.chain.back();
  Look at;
  return last.name != source.name && tail_.root.look(last.name, at) == 0 && same_file(last.place, at);
}

void SourceFollower::end(TailSource& source) {
  Piece& piece = tail_.output.add_piece(source, "");
  piece.ends = true;
  source.ended = true;
  if (std::exchange(source.failing, false)) --tail_.counts.refused;
  tail_.open.close_all(source);
  if (!source.chain.empty()) tail_.sources.remember(source, source.chain.back().place);
  source.chain.clear();
  tail_.output.note_lag(source);
  --tail_.counts.files;
  std::erase(source.folder->sources, source.number);
  // The ended source still identifies its rotated parts until the names are read again.
  source.folder->ended.push_back(source.number);
}

AtPath SourceFollower::at_path(const TailSource& source) {
  AtPath at;
  const CallWatch calls;
  at.asked = tail_.lister.mark();
  if (tail_.root.open_file(source.name, at.file) == 0) {
    at.there = look_at(at.file.get(), at.look) == 0;
  } else {
    at.there = tail_.root.look(source.name, at.look) == 0 && at.look.regular;
  }
  at.uncertain = calls.failed();
  return at;
}

bool SourceFollower::is_at_path(const TailSource& source, const RotationPlan& plan) {
  Look at;
  const bool there = tail_.root.look(source.name, at) == 0 && at.regular;
  return there == plan.at_path && (!there || (at.device == plan.path.device && at.inode == plan.path.inode));
}

// `rewritten`: the content of the last file differs from the bytes that were read.
void SourceFollower::resolve(TailSource& source, bool rewritten) {
  // A new source has no earlier file to find.
  const bool first = source.chain.empty() && source.past.empty() && !source.searches;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    const CallWatch calls;
    AtPath at = source.ahead ? std::move(*std::exchange(source.ahead, std::nullopt)) : at_path(source);
    const bool was_uncertain = at.uncertain;
    auto entries = std::make_shared<const std::vector<Entry>>();
    if (!first) entries = tail_.lister.names(*source.folder, at.asked);
    if (!entries) break;
    RotationPlan plan =
        RotationSearch(tail_.root, tail_.sources, source).plan(std::move(at), *entries, rewritten);
    // A failed call is no proof that a file is gone, or another one.
    const bool uncertain = was_uncertain || calls.failed();
    if (uncertain && may_wait(source)) {
      source.searches = true;
      break;
    }
    if (uncertain) plan.may_lack = true;
    // The file opened at first sight is the first generation, even if it was replaced since.
    if (!first && !is_at_path(source, plan)) continue;
    if (plan.torn) {
      const auto again = tail_.lister.names(*source.folder, tail_.lister.mark());
      if (!again || *again != *entries) continue;
    }
    source.uncertain_since.reset();
    return carry_out(source, std::move(plan));
  }
  // Names change too fast, or the limit of lists is reached: retried first in the next round.
  source.changed_at = tail_.time.mono;
  tail_.queue.retry(source);
}

// Whether to wait for an unreadable file.
bool SourceFollower::may_wait(TailSource& source) {
  if (!source.uncertain_since) source.uncertain_since = tail_.time.mono;
  return tail_.time.mono - *source.uncertain_since < kUncertainNs;
}

void SourceFollower::carry_out(TailSource& source, RotationPlan plan) {
  const char* const copied = "the file was copied and then truncated: what was written between is not known";
  std::optional<Gap> gap;
  if (plan.lost) {
    const Generation& last = source.chain.back();
    gap = Gap{last.unread(), 0, "the file was truncated or removed before its rest was read"};
  } else if (plan.taken) {
    gap = Gap{0, 0, copied};
  } else if (plan.may_lack) {
    gap = Gap{0, 0, "the file was rotated away: files that came between may have been removed"};
  }
  if (plan.position) {
    watch_at(source, plan);
  } else if (!plan.held && !source.chain.empty()) {
    Generation last = std::move(source.chain.back());
    source.chain.pop_back();
    tail_.sources.remember(source, last.place);
    if (last.gap_before && !gap) gap = last.gap_before;
  }
  if (gap && plan.newer.empty()) tail_.output.note_gap(source, std::move(*gap));
  if (gap && !plan.newer.empty()) plan.newer.front().gap_before = std::move(gap);
  for (Generation& generation : plan.newer) {
    if (!source.chain.empty() && source.chain.back().copied && !generation.gap_before)
      generation.gap_before = Gap{0, 0, copied};
    tail_.sources.push(source, std::move(generation));
  }
  source.foreign_device = plan.foreign ? plan.path.device : 0;
  source.foreign_inode = plan.foreign ? plan.path.inode : 0;
  if (plan.at_path && !plan.foreign) source.absent_since.reset();
  if (!source.placed && !source.chain.empty()) tail_.output.add_piece(source, "");
  tail_.open.update(source);
}

// Continues the last generation in the file where its content was found.
void SourceFollower::watch_at(TailSource& source, RotationPlan& plan) {
  Generation& last = source.chain.back();
  const Sibling& at = *plan.position;
  if (!plan.held || at.compression == last.compression) last.name = at.name;
  if (plan.held) return;
  last.compression = at.compression;
  last.file = std::move(plan.file);
  last.decoder.reset();
  last.verified = false;
  last.tail.clear();
  last.seen = at.look.size;
  const bool moved = !same_file(last.place, at.look);
  last.copied = last.copied || (moved && at.compression == Compression::kNone) ||
                is_copied(tail_.root, plan, source, at);
  if (!moved) return;
  tail_.sources.move_to(source, last, at.look);
}

void SourceFollower::leave(TailSource& source) {
  Generation first = std::move(source.chain.front());
  source.chain.erase(source.chain.begin());
  tail_.sources.remember(source, first.place);
  ++tail_.counts.generations;
  if (first.compression == Compression::kNone && first.file.is_open()) late_.follow(source, std::move(first));
  tail_.open.update(source);
}

}  // namespace culprit::ingest
