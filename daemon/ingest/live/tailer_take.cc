#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/limits.h"
#include "ingest/live/tailer_follow.h"

namespace culprit::ingest {
namespace {

// Budget cost of work without bytes (a hole, decoding up to the position).
constexpr uint64_t kSkipCost = limits::kPieceBytes;
// Delay of the next attempt to read a file after a failure.
constexpr TimeNs kRetryNs = 10 * kNsPerSecond;

// The known beginning of a file, read or not.
const FilePlace& known_of(const Generation& generation) {
  return generation.place.offset > 0 ? generation.place : generation.peek;
}

}  // namespace

uint64_t SourceFollower::read(TailSource& source, uint64_t share) {
  if (source.ended || tail_.time.mono < source.not_before) return 0;
  uint64_t taken = 0;
  bool goes_on = true;
  while (goes_on && taken < share) goes_on = read_piece(source, share - taken, taken);
  if (!goes_on) goes_on = late_.read(source, share, taken);
  if (!source.chain.empty() && taken > 0) source.changed_at = tail_.time.mono;
  if (goes_on) tail_.queue.make_ready(source);
  tail_.output.note_lag(source);
  tail_.open.update(source);
  return taken;
}

// False if no more bytes are available for now.
bool SourceFollower::read_piece(TailSource& source, uint64_t max, uint64_t& taken) {
  if (source.chain.empty()) return false;
  Generation& first = source.chain.front();
  const bool last = source.chain.size() == 1;
  if (first.gap_before) {
    tail_.output.note_gap(source, std::move(*first.gap_before));
    first.gap_before.reset();
  }
  if (!ensure_open(source, first)) return !last && source.not_before <= tail_.time.mono;
  Reading reading = read_on(first, max);
  switch (reading.result) {
    case ReadResult::kBytes:
      if (std::exchange(source.failing, false)) --tail_.counts.refused;
      first.failing_since.reset();
      taken += reading.bytes.size();
      tail_.output.add_piece(source, std::move(reading.bytes)).written_ns = first.modified_ns;
      return true;
    case ReadResult::kSkipped:
      taken += kSkipCost;
      if (reading.skipped == 0) return true;
      tail_.output.note_gap(source, {reading.skipped, 0, "a hole in the file"});
      tail_.output.add_piece(source, "");
      return true;
    case ReadResult::kChanged:
      if (last) {
        resolve(source, true);
        // Unidentified files are retried in the next round, not in a loop here.
        return !source.pending && !source.chain.empty() && source.chain.front().unread() > 0;
      }
      taken += kSkipCost;
      tail_.output.note_gap(source, {first.unread(), 0, "the file was truncated before its rest was read"});
      begin_again(source, first);
      return true;
    case ReadResult::kFailed:
      if (!first.failing_since) first.failing_since = tail_.time.mono;
      if (last || tail_.time.mono - *first.failing_since < kUncertainNs) {
        failed(source, reading.error);
        return false;
      }
      // Younger files wait behind it.
      tail_.output.note_gap(source,
                            {0, 0, "the rest of the file cannot be read: " + reason_of(reading.error)});
      break;
    case ReadResult::kDamaged:
      tail_.output.note_gap(source, {0, 0, "the rest of the file was compressed and is damaged"});
      break;
    case ReadResult::kEnd:
      break;
  }
  if (last) return false;
  // An empty file at the path: its writer has not opened it yet and continues in the present file.
  const Generation& next = source.chain[1];
  const bool finished = source.chain.size() > 2 || next.seen > 0 || next.compression != Compression::kNone ||
                        first.compression != Compression::kNone;
  if (finished) leave(source);
  return finished;
}

// The file was truncated, and perhaps rewritten, before it was renamed.
void SourceFollower::begin_again(TailSource& source, Generation& generation) {
  tail_.sources.remember(source, generation.place);
  Generation fresh;
  fresh.name = std::move(generation.name);
  fresh.file = std::move(generation.file);
  fresh.place.device = generation.place.device;
  fresh.place.inode = generation.place.inode;
  fresh.peek = peek_of(fresh);
  generation = std::move(fresh);
}

// Opens a file by its identity, while rotations continue. EAGAIN if names change too fast.
int SourceFollower::find_again(TailSource& source, Generation& generation) {
  generation.file = Descriptor();
  generation.decoder.reset();
  const FilePlace& place = known_of(generation);
  const CallWatch calls;
  // The second attempt reads names again, after the first.
  for (const uint64_t since : {uint64_t{0}, tail_.lister.mark()}) {
    const auto entries = tail_.lister.names(*source.folder, since);
    if (!entries) return EAGAIN;
    std::vector<Sibling> found = siblings_of(source, *entries);
    std::stable_partition(found.begin(), found.end(),
                          [&](const Sibling& sibling) { return sibling.inode == generation.place.inode; });
    for (const Sibling& sibling : found) {
      Descriptor file;
      Look look;
      if (tail_.root.open_file(sibling.name, file) != 0 || look_at(file.get(), look) != 0) continue;
      if (!same_file(generation.place, look) && (!sibling.rotated() || place.fingerprint_bytes == 0))
        continue;
      if (!begins_as(beginning_of(file, sibling.compression), place)) continue;
      if (reaches(file, sibling.compression, place) != Reach::kWhole) continue;
      generation.name = sibling.name;
      generation.compression = sibling.compression;
      generation.file = std::move(file);
      return 0;
    }
  }
  return calls.failed() ? CallWatch::error() : ENOENT;
}

bool SourceFollower::ensure_open(TailSource& source, Generation& generation) {
  int error = 0;
  if (!generation.file.is_open()) {
    error = tail_.root.open_file(generation.name, generation.file);
    Look look;
    if (error == 0) error = look_at(generation.file.get(), look);
    const bool other =
        error == 0 && generation.compression == Compression::kNone && !same_file(generation.place, look);
    if (other || error == ENOENT) error = find_again(source, generation);
  }
  if (error == 0 && generation.compression != Compression::kNone && !generation.decoder) {
    generation.decoder = decoder_over(generation.file, generation.compression, generation.name);
    generation.decoded = 0;
    if (!generation.decoder) error = ENOMEM;
  }
  tail_.open.update(source);
  if (error == 0) source.uncertain_since.reset();
  if (error == 0) return true;
  const bool ours = error == EMFILE || error == ENFILE || error == ENOMEM ||
                    (error != EAGAIN && is_uncertain(error) && may_wait(source));
  if (error == EAGAIN) {
    // Names change: retried in the next round.
    source.not_before = tail_.time.mono + kNsPerMs;
    tail_.queue.retry(source);
  } else if (!ours && &generation != &source.chain.back()) {
    tail_.output.note_gap(source, {generation.unread(), 0,
                                   "the rotated file was removed or cannot be read: " + reason_of(error)});
    leave(source);
  } else if (error == ENOENT) {
    // The last file is being replaced: the next check finds the new one.
    source.changed_at = tail_.time.mono;
    tail_.queue.schedule(source, tail_.time.mono + kNsPerMs);
  } else {
    failed(source, error);
  }
  return false;
}

void SourceFollower::failed(TailSource& source, int error) {
  if (!std::exchange(source.failing, true)) {
    tail_.output.problem(source.name, reason_of(error));
    ++tail_.counts.refused;
  }
  source.not_before = tail_.time.mono + kRetryNs;
  tail_.queue.schedule(source, std::min(source.next_look, source.not_before));
}

}  // namespace culprit::ingest
