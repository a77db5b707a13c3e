#include <fmt/format.h>

#include <algorithm>
#include <cerrno>

#include "base/hash.h"
#include "ingest/live/tailer_impl.h"

namespace culprit::ingest {
namespace {

// Rotated parts that one look may find: as many are read before it looks for more.
constexpr size_t kNewer = 64;
// A list that changes while it is read is read again; under a rotation each millisecond a few times do.
constexpr int kAttempts = 8;

bool same(const FilePlace& place, const Look& look) {
  return place.device == look.device && place.inode == look.inode;
}

bool has_work(const TailSource& source) {
  if (source.chain.empty()) return false;
  return source.chain.size() > 1 || source.chain.back().unread() > 0 || source.chain.back().gap_before;
}

std::string name_in(const std::string& below) {
  const size_t slash = below.rfind('/');
  return slash == below.npos ? below : below.substr(slash + 1);
}

}  // namespace

// What became of the last generation of a source, and what came after it.
struct Tailer::Impl::Plan {
  bool held = false;                // it is open, and what it was
  bool lost = false;                // it is not, and not found
  bool copied = false;              // found with its content in another file
  bool may_lack = false;            // others between it and what is there may be gone
  std::optional<Sibling> position;  // under which name it stands now
  Descriptor file;                  // opened there
  std::vector<Generation> newer;    // oldest first, the one at the path last
  bool at_path = false;             // something regular stands at the path
  Look path;
  bool foreign = false;  // and it is another source's
};

void Tailer::Impl::look(TailSource& source) {
  if (source.late) take_late(source);
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
  note_lag(source);
  look_later(source);
}

void Tailer::Impl::look_same(TailSource& source, const Look& at) {
  Generation& last = source.chain.back();
  // Also where nothing, or not all, was taken before.
  const bool shorter = at.size < last.place.offset || at.size < last.seen;
  const bool moved = at.size != last.seen || at.modified_ns != last.modified_ns;
  // A file that was restored, or written anew to the same length, must begin as what was taken.
  const bool doubtful = !last.verified || (moved && at.size == last.place.offset && at.size > 0);
  if (!shorter && doubtful && last.place.fingerprint_bytes > 0) {
    if (!ensure_open(source, last)) return;
    const Stands stands = begins_as_taken(last);
    if (stands == Stands::kUnreadable) return failed(source, errno);
    if (stands == Stands::kNo) return resolve(source, true);
  }
  if (shorter) {
    source.changed_at = mono_;
    return resolve(source, true);
  }
  last.verified = true;
  if (!moved) return;
  if (last.place.offset == 0 && at.size > 0) {
    // A rotation may copy and truncate it before anything was taken.
    if (!ensure_open(source, last)) return;
    if (!begins_as(last.file, Compression::kNone, last.peek)) return resolve(source, true);
    last.peek = place_by_now(last);
  }
  if (at.size != last.seen) source.changed_at = mono_;
  last.seen = at.size;
  last.modified_ns = at.modified_ns;
}

void Tailer::Impl::look_other(TailSource& source, const Look&) {
  source.changed_at = mono_;
  // Where its name is another's rotated one, that one's parts must be known first.
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
  // New names in the folder may be of it: also while its last generation stands under one of them.
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

// Whether the last generation is still found where it was found last, away from the path.
bool Tailer::Impl::last_name_stands(const TailSource& source) {
  const Generation& last = source.chain.back();
  Look at;
  return last.name != source.name && root_.look(last.name, at) == 0 && same(last.place, at);
}

void Tailer::Impl::end(TailSource& source) {
  Piece& piece = add_piece(source, "");
  piece.ends = true;
  source.ended = true;
  close_all(source);
  if (!source.chain.empty()) remember(source, source.chain.back().place);
  source.chain.clear();
  source.late.reset();
  note_lag(source);
  --files;
  full_ = false;
  std::erase(source.folder->sources, source.number);
  // Its rotated parts may still be there, and are known by it.
  const auto& ignored = source.folder->ignored;
  const bool needed = std::any_of(ignored.begin(), ignored.end(),
                                  [&](const auto& item) { return item.second.of == source.number; });
  if (!needed) ended_.push_back(source.number);
}

// The file beside the path under whatever name, and all whose names say that they are rotated from it.
std::vector<Sibling> Tailer::Impl::siblings(const TailSource& source) {
  constexpr size_t kNames = 200'000;
  std::vector<Entry> entries;
  std::vector<Sibling> found;
  (void)root_.list(source.folder->name, kNames, entries);
  const std::string own = name_in(source.name);
  const std::string stem =
      own.substr(0, std::max<size_t>(own.rfind('.') == own.npos ? own.size() : own.rfind('.'), 1));
  const uint64_t inode = source.chain.empty() ? 0 : source.chain.back().place.inode;
  for (const Entry& entry : entries) {
    if (entry.type != Entry::Type::kFile || entry.name == own) continue;
    Sibling sibling;
    if (entry.name.starts_with(stem)) {
      for (RotatedName& form : rotated_forms(entry.name)) {
        if (form.base == own) sibling.form = std::move(form);
      }
    }
    if (!sibling.rotated() && entry.inode != inode) continue;
    sibling.name = source.folder->name.empty() ? entry.name : source.folder->name + "/" + entry.name;
    sibling.inode = entry.inode;
    sibling.compression = compression_of_name(entry.name);
    if (root_.look(sibling.name, sibling.look) == 0 && sibling.look.regular)
      found.push_back(std::move(sibling));
  }
  return found;
}

// `rewritten`: what stands at the path is the same file with another content.
void Tailer::Impl::resolve(TailSource& source, bool rewritten) {
  if (source.chain.empty() && source.past.empty()) {
    // Seen for the first time: there is nothing to find again.
    Plan first;
    find_at_path(first, source, rewritten);
    return carry_out(source, std::move(first));
  }
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    const std::vector<Sibling> found = siblings(source);
    Plan plan = this->plan(source, found, rewritten);
    Look at;
    const bool there = root_.look(source.name, at) == 0 && at.regular;
    const bool as_before = there == plan.at_path && (!there || at.inode == plan.path.inode);
    if (!as_before || siblings(source) != found) continue;
    return carry_out(source, std::move(plan));
  }
  source.changed_at = mono_;
}

Tailer::Impl::Plan Tailer::Impl::plan(TailSource& source, const std::vector<Sibling>& found, bool rewritten) {
  Plan plan;
  if (!source.chain.empty()) {
    const Generation& last = source.chain.back();
    Look at;
    const bool there = !rewritten && root_.look(source.name, at) == 0 && same(last.place, at);
    if (there) {
      // It came back, or was never away.
      plan.held = plan.at_path = true;
      plan.path = at;
      return plan;
    }
    plan.held = !rewritten && (last.file.is_open() || last.decoder);
    find_back(plan, source, found);
    plan.lost = !plan.held && !plan.position && last.place.offset > 0;
  }
  find_newer(plan, source, found);
  // Nothing was taken of it: it is among the newer ones, if it is there at all.
  if (!plan.held && !plan.position && plan.newer.empty() && !source.chain.empty())
    plan.lost = plan.lost || source.chain.back().unread() > 0;
  find_at_path(plan, source, rewritten);
  return plan;
}

// Whether the last generation's content stands there; opens it.
bool Tailer::Impl::is_position(Plan& plan, const FilePlace& place, const Sibling& sibling) {
  Descriptor file;
  if (root_.open_file(sibling.name, file) != 0) return false;
  if (sibling.compression == Compression::kNone && sibling.look.size < place.offset) return false;
  if (!begins_as(file, sibling.compression, place)) return false;
  // Nothing taken, nothing to compare: the name must speak for it.
  if (place.fingerprint_bytes == 0 && !sibling.rotated()) return false;
  plan.position = sibling;
  plan.file = std::move(file);
  return true;
}

void Tailer::Impl::find_back(Plan& plan, TailSource& source, const std::vector<Sibling>& found) {
  const Generation& last = source.chain.back();
  const auto its_inode = [&](const Sibling& sibling) { return same(last.place, sibling.look); };
  for (const Sibling& sibling : found) {
    if (!its_inode(sibling)) continue;
    if (plan.held) {
      plan.position = sibling;
      return;
    }
    if (is_position(plan, last.place, sibling)) return;
  }
  const FilePlace place = plan.held ? place_by_now(last) : last.place;
  if (place.fingerprint_bytes == 0) return;
  // Copied or compressed since. Plain ones first: they need no decoding, and are whole.
  for (const bool plain : {true, false}) {
    if (plain && plan.held) continue;
    for (const Sibling& sibling : found) {
      if (!sibling.rotated() || (sibling.compression == Compression::kNone) != plain || its_inode(sibling))
        continue;
      if (plain && owner_of(sibling.name, sibling.look) != nullptr) continue;
      if (!is_position(plan, place, sibling)) continue;
      plan.copied = plain;
      return;
    }
  }
}

void Tailer::Impl::find_newer(Plan& plan, TailSource& source, const std::vector<Sibling>& found) {
  std::vector<const Sibling*> newer;
  bool any_known = false;
  for (const Sibling& sibling : found) {
    if (!sibling.rotated() || sibling.form.mark.empty() || sibling.look.size == 0) continue;
    if (plan.position &&
        (sibling.name == plan.position->name || !plan.position->rotated() ||
         sibling.form.style != plan.position->form.style || sibling.form.mark == plan.position->form.mark))
      continue;
    const bool plain = sibling.compression == Compression::kNone;
    if (plain && (owner_of(sibling.name, sibling.look) != nullptr ||
                  (plan.lost && is_copy(source, sibling.name, sibling.look)))) {
      any_known = true;
      continue;
    }
    // copytruncate is under way: what is copied stands at the path.
    if (plain && copies_path(source, sibling)) continue;
    const bool twin = std::any_of(found.begin(), found.end(), [&](const Sibling& other) {
      return !plain && other.compression == Compression::kNone && other.rotated() &&
             other.form.mark == sibling.form.mark;
    });
    if (twin) continue;
    const bool later = plan.position
                           ? older_part(*plan.position, sibling) ||
                                 (plain && sibling.look.modified_ns > plan.position->look.modified_ns)
                           : sibling.look.modified_ns > source.info.opened_ns;
    if (!later || source.chain.empty() || taken_compressed(source, sibling)) continue;
    newer.push_back(&sibling);
  }
  std::stable_sort(newer.begin(), newer.end(), [](const Sibling* a, const Sibling* b) {
    if (a->form.style == b->form.style) return older_part(*a, *b);
    return a->form.style < b->form.style;
  });
  const bool had_bytes = !source.chain.empty() && source.chain.back().seen > 0;
  plan.may_lack = plan.held && !plan.position && had_bytes && (any_known || !newer.empty());
  for (const Sibling* sibling : newer) {
    if (plan.newer.size() == kNewer) break;
    Generation generation;
    generation.name = sibling->name;
    generation.compression = sibling->compression;
    Look look = sibling->look;
    if (root_.open_file(sibling->name, generation.file) != 0 || look_at(generation.file.get(), look) != 0)
      continue;
    generation.place.device = look.device;
    generation.place.inode = look.inode;
    generation.seen = look.size;
    plan.newer.push_back(std::move(generation));
  }
}

// The log of which this source's path is a rotated name, if what stands there now is copied from it.
TailSource* Tailer::Impl::base_copied(const TailSource& source, const Look& at) {
  for (const RotatedName& form : rotated_forms(name_in(source.name))) {
    const std::string& folder = source.folder->name;
    TailSource* base = source_at(folder.empty() ? form.base : folder + "/" + form.base);
    if (base != nullptr && base != &source && is_copy(*base, source.name, at)) return base;
  }
  return nullptr;
}

bool Tailer::Impl::copies_path(const TailSource& source, const Sibling& sibling) {
  Descriptor copy, path;
  return root_.open_file(source.name, path) == 0 && root_.open_file(sibling.name, copy) == 0 &&
         begins_and_ends_as(copy, path);
}

// Whether a compressed part has nothing to give, or was taken: where there is no position in the row of
// rotated
// names, only its content tells.
bool Tailer::Impl::taken_compressed(const TailSource& source, const Sibling& sibling) {
  Descriptor file;
  if (sibling.compression == Compression::kNone || root_.open_file(sibling.name, file) != 0) return false;
  const auto decoder = decoder_over(file, sibling.compression, sibling.name);
  if (char first; decoder && decoder->read(&first, 1) == 0) return true;
  const auto is = [&](const FilePlace& place) {
    return place.fingerprint_bytes > 0 ? begins_as(file, sibling.compression, place)
                                       : same(place, sibling.look);
  };
  return std::any_of(source.past.begin(), source.past.end(), is) ||
         std::any_of(source.chain.begin(), source.chain.end(),
                     [&](const Generation& generation) { return is(generation.place); });
}

void Tailer::Impl::find_at_path(Plan& plan, TailSource& source, bool rewritten) {
  plan.at_path = root_.look(source.name, plan.path) == 0 && plan.path.regular;
  if (!plan.at_path) return;
  Generation generation;
  generation.name = source.name;
  generation.place.device = plan.path.device;
  generation.place.inode = plan.path.inode;
  generation.seen = plan.path.size;
  generation.modified_ns = plan.path.modified_ns;
  TailSource* owner = rewritten ? nullptr : owner_of(source.name, plan.path);
  if (owner == nullptr && !rewritten) owner = base_copied(source, plan.path);
  if (owner != nullptr) {
    if (owner != &source) {
      plan.foreign = true;
      return;
    }
    for (const FilePlace& place : source.past)
      if (same(place, plan.path)) generation.place = place;
  }
  Look opened;
  if (root_.open_file(source.name, generation.file) == 0 && look_at(generation.file.get(), opened) == 0 &&
      same(generation.place, opened)) {
    generation.peek = place_by_now(generation);
  } else {
    generation.file = Descriptor();
  }
  plan.newer.push_back(std::move(generation));
}

void Tailer::Impl::carry_out(TailSource& source, Plan plan) {
  std::optional<Gap> gap;
  if (plan.lost) {
    const Generation& last = source.chain.back();
    gap = Gap{last.unread(), 0, "the file was truncated or removed before its rest was read"};
  } else if (plan.copied) {
    gap = Gap{0, 0, "the file was copied and then truncated: what was written between is not known"};
  } else if (plan.may_lack) {
    gap = Gap{0, 0, "the file was rotated away: files that came between may have been removed"};
  }
  if (plan.lost || (!plan.held && !plan.position && !source.chain.empty())) {
    Generation last = std::move(source.chain.back());
    source.chain.pop_back();
    remember(source, last.place);
    if (last.gap_before && !gap) gap = last.gap_before;
  } else if (plan.position) {
    Generation& last = source.chain.back();
    if (!plan.held || plan.position->compression == last.compression) last.name = plan.position->name;
    if (!plan.held) {
      last.compression = plan.position->compression;
      last.file = std::move(plan.file);
      last.verified = false;
      last.tail.clear();
      last.seen = plan.position->look.size;
      if (plan.copied) {
        remember(source, last.place);
        last.place.device = plan.position->look.device;
        last.place.inode = plan.position->look.inode;
        index(source, last.place);
      }
    }
  }
  if (gap && plan.newer.empty() && !plan.copied) note_gap(source, std::move(*gap));
  if (gap && !plan.newer.empty()) plan.newer.front().gap_before = std::move(gap);
  for (Generation& generation : plan.newer) push(source, std::move(generation));
  source.foreign_device = plan.foreign ? plan.path.device : 0;
  source.foreign_inode = plan.foreign ? plan.path.inode : 0;
  if (plan.at_path && !plan.foreign) source.absent_since.reset();
  count_open(source);
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
  if (first.compression == Compression::kNone && first.file.is_open()) {
    source.late = std::move(first);
    source.late_until = mono_ + kLateNs;
  }
  count_open(source);
}

}  // namespace culprit::ingest
