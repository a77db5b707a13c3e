// Input of the daemon from its host, for the store and the engine: sources, and pieces of their bytes in
// order. Plain values that own all their data.
//
// The evidence of a source is its bytes in order of arrival: a file's bytes over all its generations, a
// ring's records, a socket's lines, the kernel's records, the journal's entries. Late bytes of an earlier
// generation follow the bytes read before them; the piece's place identifies their file. `offset` is a
// position in the evidence. Lost bytes are a gap at the offset where they are missing; a
// gap has no length in the evidence.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/principal.h"
#include "base/time.h"

namespace culprit {

// Kind of a source. kCondensed and kMark belong to an agent's condensed log. kCondensed: blocks of one
// session of a job (core/wire/inputs.h); a piece with bytes is one whole block; path "condensed/SESSION", in
// hex. kMark: position up to which a source's evidence is condensed; the piece has a place but no bytes;
// engines ignore marks. kDump: a file that a process writes as a whole (a Flight Recorder dump); parsed when
// complete. kPlugin: findings of a plugin, as lines of model/plugin_finding.h, path "plugin/NAME"; also the
// process states that culprit-capture saw. kJournal: entries of systemd's journal, one JSON object per line,
// path "journal/system", or "journal" and the folder of the journal's files.
enum class OriginKind : uint8_t {
  kFile = 0,
  kSocket = 1,
  kRing = 2,
  kKernel = 3,
  kCondensed = 4,
  kMark = 5,
  kDump = 6,
  kPlugin = 7,
  kJournal = 8
};
constexpr OriginKind kLastOriginKind = OriginKind::kJournal;
constexpr bool is_file(OriginKind kind) { return kind == OriginKind::kFile || kind == OriginKind::kDump; }
constexpr std::string_view to_string(OriginKind kind) {
  constexpr std::string_view kWords[] = {"file", "socket", "ring",   "kernel", "condensed",
                                         "mark", "dump",   "plugin", "journal"};
  return kWords[static_cast<size_t>(kind)];
}

// Whether a source has lines about the host: every job on the host gets these lines.
constexpr bool is_of_host(OriginKind kind) {
  return kind == OriginKind::kKernel || kind == OriginKind::kPlugin || kind == OriginKind::kJournal;
}

// The path of every journal begins so, and that of no kernel's log.
constexpr std::string_view kJournalPaths = "journal/";

// A number that is unique in a state folder and never reused.
using StreamId = uint32_t;
constexpr StreamId kNoStream = 0xffffffff;

// A source of the daemon, declared once before its first piece.
struct StreamInfo {
  StreamId id = kNoStream;
  OriginKind kind = OriginKind::kFile;
  std::string job;   // empty: every job on the host (is_of_host)
  std::string path;  // the watched path: `path` of evidence in formats.md section 9
  // User of the writing process, as the kernel reports it; for a file: its owner, or the container named in
  // its path.
  std::optional<Principal> uid;
  std::optional<uint32_t> pid;
  TimeNs opened_ns = kNoTime;  // wall clock
  TimeNs boot_ns = kNoTime;    // only kKernel: wall time at which the kernel's clock was 0
};

// Identity of a file, and the position up to which its bytes are read. A path may later name another file,
// and an inode may be reused. A file is identified by device, inode, beginning, and the bytes before the
// position together. A copy differs only in the inode.
struct FilePlace {
  uint64_t device = 0, inode = 0;
  uint64_t fingerprint = 0;        // XXH3 of the first `fingerprint_bytes` bytes
  uint32_t fingerprint_bytes = 0;  // at most limits::kFingerprintBytes; fewer if the file was shorter
  uint64_t offset = 0;             // position in this file after the bytes of the piece
  uint64_t tail = 0;               // XXH3 of the last `tail_bytes` bytes before the offset
  uint32_t tail_bytes = 0;         // at most limits::kTailBytes; fewer if fewer were read in a row
  bool operator==(const FilePlace&) const = default;
};

// Positions in sources that are not files. The store keeps each position as a FilePlace without interpreting
// the fields; the disk format is that of FilePlace.

// Position in a ring: number of the next record since the ring's start, and number of dropped records
// reported.
struct RingPlace {
  uint64_t device = 0, inode = 0;
  uint64_t drops = 0, next = 0;
  FilePlace stored() const { return {device, inode, drops, 0, next}; }
  static RingPlace from(const FilePlace& p) { return {p.device, p.inode, p.fingerprint, p.offset}; }
};

// Position in the kernel's messages: sequence number of the next record of this boot.
struct KernelPlace {
  uint64_t boot = 0, next = 0;
  FilePlace stored() const { return {0, 0, boot, 0, next}; }
  static KernelPlace from(const FilePlace& p) { return {p.fingerprint, p.offset}; }
};

// Position in the journal: the last entry that was read, by the numbers of its cursor.
struct JournalPlace {
  uint64_t id_high = 0, id_low = 0;  // of the sequence numbers
  uint64_t sequence = 0;
  uint64_t realtime_us = 0, hash = 0;
  bool operator==(const JournalPlace&) const = default;
  FilePlace stored() const { return {id_high, id_low, realtime_us, 0, sequence, hash}; }
  static JournalPlace from(const FilePlace& p) {
    return {p.device, p.inode, p.offset, p.fingerprint, p.tail};
  }
};

// Position of a mark: how far a stream of the evidence log with this epoch is condensed.
struct MarkPlace {
  uint64_t epoch = 0, stream = 0;  // epoch and stream of the evidence log
  uint64_t offset = 0, lines = 0;  // bytes before the mark, and number of lines ending there
  uint64_t flags = 0;              // defined by the writer
  FilePlace stored() const { return {epoch, stream, flags, 0, offset, lines}; }
  static MarkPlace from(const FilePlace& p) { return {p.device, p.inode, p.offset, p.tail, p.fingerprint}; }
};

// Data missing from a source at a known position. A count of 0 means none or unknown.
struct Gap {
  uint64_t bytes = 0, records = 0;
  std::string reason;  // "the file was truncated before it was read"
};

struct Piece {
  StreamId stream = kNoStream;
  uint64_t offset = 0;  // of bytes[0] in the source's evidence
  std::string bytes;
  TimeNs time_ns = kNoTime;  // wall clock when read
  std::optional<Gap> gap;    // gap before the bytes
  // Read position in the file after this piece; none for a socket. For late bytes the file is an earlier one
  // of the source, otherwise the current one.
  std::optional<FilePlace> place;
  bool ends = false;  // last piece: the file was removed or the process ended
  // Last modification of the file, as known when read; kNoTime: unknown. Not stored.
  TimeNs written_ns = kNoTime;
};

// State of a source in the store at the daemon's start.
struct StreamState {
  StreamInfo info;
  uint64_t size = 0;               // bytes of evidence: the offset of the next piece
  std::optional<FilePlace> place;  // none for a socket
  bool ended = false;
  // Final positions in earlier files of the source (rotated, truncated), latest last; at most kPastPlaces.
  // These files are recognised under any name and not read again.
  std::vector<FilePlace> past;
};
// Number of remembered rotated files: logrotate's default is 4; a year of daily files is rare.
constexpr size_t kPastPlaces = 32;

// Whether a piece of `passed` bytes (including its gap) that ends at `now` begins at `before` in the same
// file.
inline bool goes_on_in(const FilePlace& before, const FilePlace& now, uint64_t passed) {
  return before.device == now.device && before.inode == now.inode && before.offset + passed == now.offset;
}

// Applies a piece to the stored state of a stream. The piece advances the place that it continues: the
// current place or a past one. A piece that continues no place begins a new generation. `State` has
// StreamState's members under the same names; `size` is the size of the piece's bytes.
template <class State>
void advance(State& state, const Piece& piece, OriginKind kind, size_t size) {
  state.size = std::max(state.size, piece.offset + size);
  state.ended = piece.ends;
  if (!piece.place) return;
  // The first piece of a new generation begins at 0, even if inode and size are as before. A continuing piece
  // belongs to the same generation, even if read from a copy.
  const uint64_t passed = size + (piece.gap ? piece.gap->bytes : 0);
  const auto goes_on = [&](const FilePlace& place) {
    return place == *piece.place || place.offset + passed <= piece.place->offset;
  };
  if (is_file(kind) && state.place && passed > 0 && *state.place != *piece.place &&
      !goes_on_in(*state.place, *piece.place, passed)) {
    for (FilePlace& past : state.past) {
      if (!goes_on_in(past, *piece.place, passed)) continue;
      past = *piece.place;
      return;
    }
  }
  if (is_file(kind) && state.place && state.place->offset > 0 && !goes_on(*state.place)) {
    if (state.past.size() == kPastPlaces) state.past.erase(state.past.begin());
    state.past.push_back(*state.place);
  }
  state.place = piece.place;
}
inline void advance(StreamState& state, const Piece& piece) {
  advance(state, piece, state.info.kind, piece.bytes.size());
}

// One unit for the store and the engine, in this order: streams before their pieces.
struct PieceBatch {
  std::vector<StreamInfo> opened;
  std::vector<Piece> pieces;
  bool whole = false;  // stored in one frame: the whole batch becomes durable, or nothing
  uint64_t bytes() const {
    uint64_t n = 0;
    for (const Piece& p : pieces) n += p.bytes.size();
    return n;
  }
};

}  // namespace culprit
