#include <fmt/format.h>

#include <algorithm>
#include <cerrno>

#include "base/hash.h"
#include "ingest/live/tailer_impl.h"

namespace culprit::ingest {
namespace {

// A list that changes while it is read is read again; a rotation each millisecond needs a few attempts.
constexpr int kAttempts = 8;

bool same(const FilePlace& place, const Look& look) {
  return place.device == look.device && place.inode == look.inode;
}

bool has_work(const TailSource& source) {
  const auto unread = [](const LateFile& late) { return late.generation.unread() > 0; };
  if (std::any_of(source.late.begin(), source.late.end(), unread)) return true;
  if (source.chain.empty()) return false;
  return source.chain.size() > 1 || source.chain.back().unread() > 0 || source.chain.back().gap_before;
}

std::string name_in(const std::string& below) {
  const size_t slash = below.rfind('/');
  return slash == below.npos ? below : below.substr(slash + 1);
}

}  // namespace

void Tailer::Impl::look(TailSource& source) {
  if (late_has_grown(source)) make_ready(source);
  Look at;
  const int error = root_.look(source.name, at);
  if (error != 0 || !at.regular) {
    look_absent(source);
  } else if (!source.chain.empty() && same(source.chain.back().place, at) &&
             source.chain.back().compression == Compression::kNone) {
    source.absent_since.reset();
    look_same(source, at);
  } else if (at.device == source.foreign_device && at.inode == source.foreign_inode) {
    look_absent(source);
  } else {
    look_other(source, at);
  }
  if (source.ended) return;
  if (has_work(source)) make_ready(source);
  // No bytes came with the gap since the previous check: report it alone.
  if (source.gap && !has_work(source) && mono_ > source.gap_at) add_piece(source, "");
  note_lag(source);
  look_later(source);
}

void Tailer::Impl::look_same(TailSource& source, const Look& at) {
  Generation& last = source.chain.back();
  // Also if none, or not all, of its bytes were read.
  const bool shorter = at.size < last.place.offset || at.size < last.seen;
  const bool moved = at.size != last.seen || at.modified_ns != last.modified_ns;
  // A file that was restored, or rewritten to the same length, must begin with the bytes that were read.
  const bool doubtful = !last.verified || (moved && at.size == last.place.offset && at.size > 0);
  if (!shorter && doubtful && last.place.fingerprint_bytes > 0) {
    if (!ensure_open(source, last)) return;
    const Stands stands = stands_as_taken(last);
    if (stands == Stands::kUnreadable) return failed(source, errno);
    if (stands == Stands::kNo) return resolve(source, true);
  }
  if (shorter) {
    source.changed_at = mono_;
    return resolve(source, true);
  }
  last.verified = true;
  if (!moved) return;
  if (last.place.offset == 0 && (at.size > 0 || last.modified_ns != kNoTime)) {
    // A rotation may have copied and truncated it before any byte was read or the growth was seen.
    if (!ensure_open(source, last)) return;
    const bool unseen = last.peek.fingerprint_bytes == 0 && (!source.past.empty() || source.chain.size() > 1);
    if (unseen || !begins_as(beginning_of(last.file, Compression::kNone), last.peek))
      return resolve(source, true);
    last.peek = peek_of(last);
  }
  if (at.size != last.seen) source.changed_at = mono_;
  last.seen = at.size;
  last.modified_ns = at.modified_ns;
}

void Tailer::Impl::look_other(TailSource& source, const Look&) {
  source.changed_at = mono_;
  // If its name is a rotated name of another source, the parts of that source must be known first.
  for (const RotatedName& form : rotated_forms(name_in(source.name))) {
    const std::string& folder = source.folder->name;
    TailSource* base = source_at(folder.empty() ? form.base : folder + "/" + form.base);
    if (base != nullptr && base != &source && !base->ended) look(*base);
  }
  resolve(source, false);
}

void Tailer::Impl::look_absent(TailSource& source) {
  if (!source.absent_since) {
    source.absent_since = mono_;
    source.next_search = 0;
    source.interval = kFirstLookNs;
  }
  bool linked = false;
  if (!source.chain.empty()) {
    Generation& last = source.chain.back();
    Look at;
    const bool seen = last.file.is_open() ? look_at(last.file.get(), at) == 0
                                          : root_.look(last.name, at) == 0 && same(last.place, at);
    if (seen && last.compression == Compression::kNone && at.size >= last.place.offset) {
      if (at.size != last.seen) source.changed_at = mono_;
      last.seen = at.size;
      last.modified_ns = at.modified_ns;
      linked = at.linked;
    }
  }
  // New names in the folder may belong to the source, even if its last generation has one of them.
  Look folder;
  if (root_.look(source.folder->name, folder) != 0) folder.modified_ns = kNoTime;
  const bool stands = linked && last_name_stands(source) && folder.modified_ns == source.searched_ns;
  if (!stands || mono_ >= source.next_search) {
    source.next_search = mono_ + kSweepNs;
    source.searched_ns = folder.modified_ns;
    resolve(source, false);
  }
  if (!linked && !has_work(source) && mono_ - *source.absent_since >= kGoneNs) end(source);
}

// Whether the last generation still has its last known name, away from the path.
bool Tailer::Impl::last_name_stands(const TailSource& source) {
  const Generation& last = source.chain.back();
  Look at;
  return last.name != source.name && root_.look(last.name, at) == 0 && same(last.place, at);
}

void Tailer::Impl::end(TailSource& source) {
  Piece& piece = add_piece(source, "");
  piece.ends = true;
  source.ended = true;
  if (std::exchange(source.failing, false)) --refused;
  close_all(source);
  if (!source.chain.empty()) remember(source, source.chain.back().place);
  source.chain.clear();
  note_lag(source);
  --files;
  full_ = false;
  std::erase(source.folder->sources, source.number);
  // Rotated parts of the source may still exist and are recognised by it, until the names are read again.
  source.folder->ended.push_back(source.number);
}

AtPath Tailer::Impl::at_path(const TailSource& source) {
  AtPath at;
  at.asked = ++asked_;
  if (root_.open_file(source.name, at.file) == 0) {
    at.there = look_at(at.file.get(), at.look) == 0;
  } else {
    at.there = root_.look(source.name, at.look) == 0 && at.look.regular;
  }
  return at;
}

bool Tailer::Impl::stands_at_path(const TailSource& source, const Plan& plan) {
  Look at;
  const bool there = root_.look(source.name, at) == 0 && at.regular;
  return there == plan.at_path && (!there || (at.device == plan.path.device && at.inode == plan.path.inode));
}

// `rewritten`: the content of the last file differs from the bytes that were read.
void Tailer::Impl::resolve(TailSource& source, bool rewritten) {
  // A new source has no earlier file to find.
  const bool first = source.chain.empty() && source.past.empty();
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    AtPath at = source.ahead ? std::move(*std::exchange(source.ahead, std::nullopt)) : at_path(source);
    auto entries = std::make_shared<const std::vector<Entry>>();
    if (!first) entries = names(*source.folder, at.asked);
    if (!entries) break;
    Plan plan = this->plan(source, std::move(at), *entries, rewritten);
    // The file that was opened at first sight is the first one, whatever replaced it.
    if (!first && !stands_at_path(source, plan)) continue;
    if (plan.torn) {
      const auto again = names(*source.folder, ++asked_);
      if (!again || *again != *entries) continue;
    }
    return carry_out(source, std::move(plan));
  }
  // Names change too fast, or the limit of lists is reached: retried first in the next round.
  source.changed_at = mono_;
  if (!std::exchange(source.pending, true)) pending_.push_back(source.number);
}

Tailer::Impl::Plan Tailer::Impl::plan(TailSource& source, AtPath at, const std::vector<Entry>& entries,
                                      bool rewritten) {
  Plan plan;
  plan.at_path = at.there;
  plan.path = at.look;
  plan.opened = std::move(at.file);
  plan.rewritten = rewritten && source.chain.empty();
  if (!source.chain.empty()) {
    const Generation& last = source.chain.back();
    const bool there = plan.at_path && same(last.place, plan.path);
    if (!rewritten && there) {
      // The file came back, or never left.
      plan.held = true;
      return plan;
    }
    // A file renamed since then is read on under its new name; reading detects another content.
    plan.rewritten = rewritten && there;
    plan.held = !plan.rewritten && (last.file.is_open() || last.decoder);
    plan.place = plan.held ? place_by_now(last) : last.place;
  }
  plan.found = siblings(source, entries);
  find_parts(plan, source);
  if (!source.chain.empty() && !plan.held && !plan.position && !plan.taken) {
    const Generation& last = source.chain.back();
    // If none of its bytes were read, it is among the newer files, if it still exists.
    const auto is_last = [&](const Generation& newer) {
      if (newer.place.inode == last.place.inode && newer.place.device == last.place.device) return true;
      if (!newer.file.is_open() || last.peek.fingerprint_bytes == 0) return !newer.file.is_open();
      return begins_as(beginning_of(newer.file, newer.compression), last.peek);
    };
    plan.lost = last.place.offset > 0 ||
                (last.unread() > 0 && std::none_of(plan.newer.begin(), plan.newer.end(), is_last));
  }
  find_at_path(plan, source);
  return plan;
}

// The log with this path as a rotated name, if the file at the path is a copy of that log.
TailSource* Tailer::Impl::base_copied(const TailSource& source, const Look& at) {
  for (const RotatedName& form : rotated_forms(name_in(source.name))) {
    const std::string& folder = source.folder->name;
    TailSource* base = source_at(folder.empty() ? form.base : folder + "/" + form.base);
    if (base != nullptr && base != &source && is_copy(*base, source.name, at)) return base;
  }
  return nullptr;
}

void Tailer::Impl::find_at_path(Plan& plan, TailSource& source) {
  if (!plan.at_path) return;
  Generation generation;
  generation.name = source.name;
  generation.place.device = plan.path.device;
  generation.place.inode = plan.path.inode;
  generation.seen = plan.path.size;
  generation.modified_ns = plan.path.modified_ns;
  TailSource* owner = plan.rewritten ? nullptr : owner_of(source.name, plan.path);
  if (owner == nullptr && !plan.rewritten) owner = base_copied(source, plan.path);
  if (owner != nullptr) {
    if (owner != &source) {
      plan.foreign = true;
      return;
    }
    const bool opens = plan.opened.is_open();
    const std::string beginning = opens ? beginning_of(plan.opened, Compression::kNone) : "";
    for (const FilePlace& place : source.past) {
      if (opens && same(place, plan.path) && begins_as(beginning, place) &&
          reaches(plan.opened, Compression::kNone, place) == Reach::kWhole)
        generation.place = place;
    }
  }
  generation.file = std::move(plan.opened);
  if (generation.file.is_open()) generation.peek = peek_of(generation);
  plan.newer.push_back(std::move(generation));
}

void Tailer::Impl::carry_out(TailSource& source, Plan plan) {
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
    stand_at(source, plan);
  } else if (!plan.held && !source.chain.empty()) {
    Generation last = std::move(source.chain.back());
    source.chain.pop_back();
    remember(source, last.place);
    if (last.gap_before && !gap) gap = last.gap_before;
  }
  if (gap && plan.newer.empty()) note_gap(source, std::move(*gap));
  if (gap && !plan.newer.empty()) plan.newer.front().gap_before = std::move(gap);
  for (Generation& generation : plan.newer) {
    if (!source.chain.empty() && source.chain.back().copied && !generation.gap_before)
      generation.gap_before = Gap{0, 0, copied};
    push(source, std::move(generation));
  }
  source.foreign_device = plan.foreign ? plan.path.device : 0;
  source.foreign_inode = plan.foreign ? plan.path.inode : 0;
  if (plan.at_path && !plan.foreign) source.absent_since.reset();
  count_open(source);
}

// Continues the last generation in the file where its content was found.
void Tailer::Impl::stand_at(TailSource& source, Plan& plan) {
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
  const bool moved = !same(last.place, at.look);
  last.copied = last.copied || (moved && at.compression == Compression::kNone) || is_copied(plan, source, at);
  if (!moved) return;
  const FilePlace before = last.place;
  last.place.device = at.look.device;
  last.place.inode = at.look.inode;
  unindex(source, before);
  index(source, last.place);
}

void Tailer::Impl::push(TailSource& source, Generation generation) {
  index(source, generation.place);
  source.chain.push_back(std::move(generation));
}

void Tailer::Impl::remember(TailSource& source, const FilePlace& place) {
  if (place.offset == 0) return;
  if (source.past.size() == kPastPlaces) {
    const FilePlace oldest = source.past.front();
    source.past.erase(source.past.begin());
    unindex(source, oldest);
  }
  source.past.push_back(place);
  index(source, place);
}

void Tailer::Impl::leave(TailSource& source) {
  Generation first = std::move(source.chain.front());
  source.chain.erase(source.chain.begin());
  remember(source, first.place);
  ++generations;
  if (first.compression == Compression::kNone && first.file.is_open()) follow_late(source, std::move(first));
  count_open(source);
}

}  // namespace culprit::ingest
