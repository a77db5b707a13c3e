#include "ingest/live/tailer_late.h"

#include <algorithm>
#include <utility>

#include "base/limits.h"

namespace culprit::ingest {
namespace {

// Open late files of one source: a second rotation may come before the first file's writer has reopened its
// log.
constexpr size_t kLateOpen = 4;
// Longest interval between two checks of the sizes of all known files of a source.
constexpr TimeNs kLateSweepNs = 600 * kNsPerSecond;
// An earlier file is kept open for this long after its last byte, for a writer that has not reopened its log.
// This also covers a file that is compressed and removed meanwhile. Later only its size is checked.
constexpr TimeNs kLateNs = 10 * kNsPerSecond;

}  // namespace

bool LateFiles::have_grown(TailSource& source) {
  bool grown = false;
  for (LateFile& late : source.late) {
    Look at;
    if (look_at(late.generation.file.get(), at) == 0) late.generation.seen = at.size;
    grown = grown || late.generation.unread() > 0;
  }
  drop(source,
       [&](const LateFile& late) { return late.generation.unread() == 0 && tail_.time.mono >= late.until; });
  return grown;
}

bool LateFiles::read(TailSource& source, uint64_t share, uint64_t& taken) {
  bool more = false;
  for (LateFile& late : source.late) {
    more = late.generation.unread() > 0;
    while (more && taken < share) more = read_piece(source, late, share - taken, taken);
    if (more) break;
  }
  drop(source, [](const LateFile& late) { return late.lost; });
  return more;
}

// Closes late files. Later bytes in them are found by their sizes.
void LateFiles::drop(TailSource& source, const std::function<bool(const LateFile&)>& which) {
  if (std::erase_if(source.late, which) > 0) tail_.open.update(source);
}

bool LateFiles::read_piece(TailSource& source, LateFile& late, uint64_t max, uint64_t& taken) {
  Generation& from = late.generation;
  const FilePlace before = from.place;
  Reading reading = read_on(from, max);
  if (reading.result == ReadResult::kChanged) {
    tail_.output.note_gap(source, {0, 0, "the rotated file was rewritten before its rest was read"});
    late.lost = true;
  }
  if (reading.result == ReadResult::kFailed) {
    if (!std::exchange(source.late_failing, true)) tail_.output.problem(from.name, reason_of(reading.error));
    late.lost = true;  // until the next check of the sizes
  }
  // A gap before late bytes gets the place of the current file.
  if (source.gap) tail_.output.add_piece(source, "");
  const bool passed = reading.result == ReadResult::kBytes || reading.skipped > 0;
  if (!passed) {
    // The file is at its end or left: the expected size is the position.
    from.seen = from.place.offset;
    return false;
  }
  const auto past = std::find(source.past.begin(), source.past.end(), before);
  if (past != source.past.end()) {
    *past = from.place;
  } else {
    tail_.sources.remember(source, from.place);
  }
  taken += reading.skipped > 0 ? limits::kPieceBytes : reading.bytes.size();
  Piece& piece = tail_.output.add_bare_piece(source, std::move(reading.bytes));
  piece.place = from.place;
  if (reading.skipped > 0) {
    piece.gap = Gap{reading.skipped, 0, "a hole in the file"};
    tail_.output.count_gap(reading.skipped);
  }
  source.late_failing = false;
  source.late_at = tail_.time.mono;
  late.until = tail_.time.mono + kLateNs;
  return from.unread() > 0;
}

void LateFiles::follow(TailSource& source, Generation generation) {
  if (source.late.size() == kLateOpen) {
    auto oldest = std::find_if(source.late.begin(), source.late.end(),
                               [](const LateFile& late) { return late.generation.unread() == 0; });
    if (oldest == source.late.end()) oldest = source.late.begin();
    tail_.open.note_rest(source, *oldest);
    source.late.erase(oldest);
    source.next_late = 0;
  }
  source.late.push_back({std::move(generation), tail_.time.mono + kLateNs, false});
  source.late_at = tail_.time.mono;
  source.next_late = std::min(source.next_late, tail_.time.mono + kSweepNs);
}

void LateFiles::find(TailFolder& folder, const std::vector<Entry>& entries) {
  std::vector<TailSource*> due;
  for (const uint32_t number : folder.sources) {
    TailSource& source = tail_.sources[number];
    if (!source.past.empty() && tail_.time.mono >= source.next_late) due.push_back(&source);
  }
  if (due.empty()) return;
  std::unordered_map<uint64_t, const Entry*> by_inode;
  for (const Entry& entry : entries)
    if (entry.type == Entry::Type::kFile) by_inode.emplace(entry.inode, &entry);
  for (TailSource* source : due) find_of(*source, by_inode);
}

void LateFiles::find_of(TailSource& source, const std::unordered_map<uint64_t, const Entry*>& by_inode) {
  if (source.late_at == 0) source.late_at = tail_.time.mono;
  const TimeNs idle = (tail_.time.mono - source.late_at) / kIdleShare;
  source.next_late = tail_.time.mono + std::clamp(idle, kSweepNs, kLateSweepNs);
  for (const FilePlace& place : source.past) {
    const auto found = by_inode.find(place.inode);
    if (found == by_inode.end() || tail_.sources.is_followed(place)) continue;
    Generation generation;
    generation.name = join_below(source.folder->name, found->second->name);
    Look at;
    if (tail_.root.look(generation.name, at) != 0 || !same_file(place, at) || at.size <= place.offset)
      continue;
    if (source.late.size() == kLateOpen) {
      source.next_late = tail_.time.mono;
      break;
    }
    generation.place = place;
    generation.seen = at.size;
    if (tail_.root.open_file(generation.name, generation.file) != 0 ||
        look_at(generation.file.get(), at) != 0 || !same_file(place, at))
      continue;
    // Otherwise the inode was reused.
    if (state_as_read(generation) == FileState::kYes) follow(source, std::move(generation));
  }
  tail_.open.update(source);
  if (!source.late.empty()) tail_.queue.schedule(source, tail_.time.mono);
}

}  // namespace culprit::ingest
