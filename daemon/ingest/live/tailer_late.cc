#include <algorithm>

#include "base/hash.h"
#include "base/limits.h"
#include "ingest/live/tailer_impl.h"

// Late bytes: written to a file after another took its path, by a process that has not reopened its log, or
// never does. In the evidence they follow the bytes read since then; the place in the piece identifies their
// file. No notification reports them. So a file is kept open for a while after the source left it, and the
// sizes of all known files are polled, less often the longer they are idle.
namespace culprit::ingest {
namespace {

// Open late files of one source: a second rotation may come before the first file's writer has reopened its
// log.
constexpr size_t kLateOpen = 4;
// Longest interval between two checks of the sizes of all known files of a source.
constexpr TimeNs kLateSweepNs = 600 * kNsPerSecond;

bool same(const FilePlace& place, const Look& look) {
  return place.device == look.device && place.inode == look.inode;
}

}  // namespace

bool Tailer::Impl::late_has_grown(TailSource& source) {
  bool grown = false;
  for (LateFile& late : source.late) {
    Look at;
    if (look_at(late.generation.file.get(), at) == 0) late.generation.seen = at.size;
    grown = grown || late.generation.unread() > 0;
  }
  drop_late(source,
            [&](const LateFile& late) { return late.generation.unread() == 0 && mono_ >= late.until; });
  return grown;
}

// True if more bytes are available.
bool Tailer::Impl::read_late(TailSource& source, uint64_t share, uint64_t& taken) {
  bool more = false;
  for (LateFile& late : source.late) {
    more = late.generation.unread() > 0;
    while (more && taken < share) more = read_late_piece(source, late, share - taken, taken);
    if (more) break;
  }
  drop_late(source, [](const LateFile& late) { return late.lost; });
  return more;
}

// Closes late files. Later bytes in them are found by their sizes.
void Tailer::Impl::drop_late(TailSource& source, const std::function<bool(const LateFile&)>& which) {
  if (std::erase_if(source.late, which) > 0) count_open(source);
}

// Closes a late file with unread bytes. Its size reveals them again, unless no name is left: then they are a
// gap.
void Tailer::Impl::leave_late(TailSource& source, const LateFile& late) {
  const uint64_t unread = late.generation.unread();
  Look at;
  if (unread == 0 || (look_at(late.generation.file.get(), at) == 0 && at.linked)) return;
  note_gap(source, {unread, 0, "the rotated file was removed before its rest was read"});
}

bool Tailer::Impl::read_late_piece(TailSource& source, LateFile& late, uint64_t max, uint64_t& taken) {
  Generation& from = late.generation;
  const FilePlace before = from.place;
  Reading reading = read_on(from, max);
  if (reading.result == ReadResult::kChanged) {
    note_gap(source, {0, 0, "the rotated file was rewritten before its rest was read"});
    late.lost = true;
  }
  if (reading.result == ReadResult::kFailed) {
    if (!std::exchange(source.late_failing, true)) problem(from.name, reason_of(reading.error));
    late.lost = true;  // until the next check of the sizes
  }
  // A gap before late bytes gets the place of the current file.
  if (source.gap) add_piece(source, "");
  const bool passed = reading.result == ReadResult::kBytes || reading.skipped > 0;
  if (!passed) {
    // At its end, or left: the expected size is the position.
    from.seen = from.place.offset;
    return false;
  }
  const auto past = std::find(source.past.begin(), source.past.end(), before);
  if (past != source.past.end()) {
    *past = from.place;
  } else {
    remember(source, from.place);
  }
  taken += reading.skipped > 0 ? limits::kPieceBytes : reading.bytes.size();
  Piece& piece = bare_piece(source, std::move(reading.bytes));
  piece.place = from.place;
  if (reading.skipped > 0) {
    piece.gap = Gap{reading.skipped, 0, "a hole in the file"};
    ++gaps;
    gap_bytes += reading.skipped;
  }
  source.late_failing = false;
  source.late_at = mono_;
  late.until = mono_ + kLateNs;
  return from.unread() > 0;
}

void Tailer::Impl::follow_late(TailSource& source, Generation generation) {
  if (source.late.size() == kLateOpen) {
    auto oldest = std::find_if(source.late.begin(), source.late.end(),
                               [](const LateFile& late) { return late.generation.unread() == 0; });
    if (oldest == source.late.end()) oldest = source.late.begin();
    leave_late(source, *oldest);
    source.late.erase(oldest);
    source.next_late = 0;
  }
  source.late.push_back({std::move(generation), mono_ + kLateNs, false});
  source.late_at = mono_;
  source.next_late = std::min(source.next_late, mono_ + kSweepNs);
}

// For the due sources of the folder: finds their earlier files that are longer now, under any name.
void Tailer::Impl::find_late(TailFolder& folder, const std::vector<Entry>& entries) {
  std::vector<TailSource*> due;
  for (const uint32_t number : folder.sources) {
    TailSource& source = *sources_[number];
    if (!source.past.empty() && mono_ >= source.next_late) due.push_back(&source);
  }
  if (due.empty()) return;
  std::unordered_map<uint64_t, const Entry*> by_inode;
  for (const Entry& entry : entries)
    if (entry.type == Entry::Type::kFile) by_inode.emplace(entry.inode, &entry);
  for (TailSource* source : due) find_late_of(*source, by_inode);
}

void Tailer::Impl::find_late_of(TailSource& source,
                                const std::unordered_map<uint64_t, const Entry*>& by_inode) {
  if (source.late_at == 0) source.late_at = mono_;
  const TimeNs idle = (mono_ - source.late_at) / kIdleShare;
  source.next_late = mono_ + std::clamp(idle, kSweepNs, kLateSweepNs);
  for (const FilePlace& place : source.past) {
    const auto found = by_inode.find(place.inode);
    if (found == by_inode.end() || is_followed(place)) continue;
    Generation generation;
    const std::string& folder = source.folder->name;
    generation.name = folder.empty() ? found->second->name : folder + "/" + found->second->name;
    Look at;
    if (root_.look(generation.name, at) != 0 || !same(place, at) || at.size <= place.offset) continue;
    if (source.late.size() == kLateOpen) {
      source.next_late = mono_;
      break;
    }
    generation.place = place;
    generation.seen = at.size;
    if (root_.open_file(generation.name, generation.file) != 0 || look_at(generation.file.get(), at) != 0 ||
        !same(place, at))
      continue;
    // Else the inode was used again.
    if (stands_as_taken(generation) == Stands::kYes) follow_late(source, std::move(generation));
  }
  count_open(source);
  if (!source.late.empty()) schedule(source, mono_);
}

// Whether a file is being read, for any source.
bool Tailer::Impl::is_followed(const FilePlace& place) {
  const auto is = [&](const FilePlace& other) {
    return other.device == place.device && other.inode == place.inode;
  };
  const auto [first, last] = by_inode_.equal_range(mix64(place.device, place.inode));
  for (auto at = first; at != last; ++at) {
    const TailSource* source = sources_[at->second].get();
    if (source == nullptr) continue;
    for (const Generation& generation : source->chain)
      if (is(generation.place)) return true;
    for (const LateFile& late : source->late)
      if (is(late.generation.place)) return true;
  }
  return false;
}

}  // namespace culprit::ingest
