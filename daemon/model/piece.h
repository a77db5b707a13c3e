// Input of the daemon from its host, for the store and the engine: sources, and pieces of their bytes in
// order. Plain values that own all their data.
//
// The evidence of a source is its bytes in order of arrival: a file's bytes over all its generations, a
// ring's records, a socket's lines, the kernel's records. Late bytes of an earlier generation stand where
// they were found; the piece's place identifies their file. `offset` is a position in the evidence. Lost
// bytes are a gap at the offset where they are missing; a gap takes no room in the evidence.
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

// Two kinds belong to an agent's condensed log. kCondensed: the blocks of one session of a job
// (core/wire/inputs.h); a piece with bytes is one whole block; path "condensed/SESSION", in hex. kMark: how
// far a source's evidence is condensed; without bytes, its place has the position; engines ignore marks.
// kDump is a file that a process writes as a whole (a Flight Recorder dump) and that is parsed when it is
// complete. kPlugin: findings of a plugin, lines of model/plugin_finding.h; path "plugin/NAME",
// and what culprit-capture saw of processes.
enum class OriginKind : uint8_t {
  kFile = 0,
  kSocket = 1,
  kRing = 2,
  kKernel = 3,
  kCondensed = 4,
  kMark = 5,
  kDump = 6,
  kPlugin = 7
};
constexpr OriginKind kLastOriginKind = OriginKind::kPlugin;
constexpr bool is_file(OriginKind kind) { return kind == OriginKind::kFile || kind == OriginKind::kDump; }
constexpr std::string_view to_string(OriginKind kind) {
  constexpr std::string_view kWords[] = {"file",      "socket", "ring", "kernel",
                                         "condensed", "mark",   "dump", "plugin"};
  return kWords[static_cast<size_t>(kind)];
}

// Lines about the host: every job on it gets them.
constexpr bool is_of_host(OriginKind kind) {
  return kind == OriginKind::kKernel || kind == OriginKind::kPlugin;
}

// A number that is unique in a state folder and never reused.
using StreamId = uint32_t;
constexpr StreamId kNoStream = 0xffffffff;

// A source of the daemon, declared once before its first piece.
struct StreamInfo {
  StreamId id = kNoStream;
  OriginKind kind = OriginKind::kFile;
  std::string job;   // empty: of every job on the host (is_of_host)
  std::string path;  // as watched: `path` of evidence in formats.md section 9
  // Of the writing process, as the kernel reports it; of a file its owner, or the container of its path.
  std::optional<Principal> uid;
  std::optional<uint32_t> pid;
  TimeNs opened_ns = kNoTime;  // wall clock
  TimeNs boot_ns = kNoTime;    // of kKernel: wall time at which the kernel's clock was 0
};

// Identity of a file, and the position up to which its bytes are read. A path may get another file, and an
// inode another content. Only all members together identify a file: device, inode, beginning, and the bytes
// before the position. A copy has another inode and equal other members.
struct FilePlace {
  uint64_t device = 0, inode = 0;
  uint64_t fingerprint = 0;        // XXH3 of the first `fingerprint_bytes` bytes
  uint32_t fingerprint_bytes = 0;  // at most limits::kFingerprintBytes; fewer if the file was shorter
  uint64_t offset = 0;             // in this file, after the bytes of the piece
  uint64_t tail = 0;               // XXH3 of the last `tail_bytes` bytes before the offset
  uint32_t tail_bytes = 0;         // at most limits::kTailBytes; fewer if fewer were read in a row
  bool operator==(const FilePlace&) const = default;
};

// Positions of sources that are no files. The store keeps each in the form of a FilePlace and interprets none
// of its fields; the formats on disk are those of FilePlace.

// In a ring: the next record since the ring's start, and the dropped records that were reported.
struct RingPlace {
  uint64_t device = 0, inode = 0;
  uint64_t drops = 0, next = 0;
  FilePlace stored() const { return {device, inode, drops, 0, next}; }
  static RingPlace from(const FilePlace& p) { return {p.device, p.inode, p.fingerprint, p.offset}; }
};

// In the kernel's messages: the sequence number of the next record of this boot.
struct KernelPlace {
  uint64_t boot = 0, next = 0;
  FilePlace stored() const { return {0, 0, boot, 0, next}; }
  static KernelPlace from(const FilePlace& p) { return {p.fingerprint, p.offset}; }
};

// In the condensed log: how far a stream of the evidence with this epoch is condensed.
struct MarkPlace {
  uint64_t epoch = 0, stream = 0;  // of the evidence
  uint64_t offset = 0, lines = 0;  // bytes before the mark, and the lines that end there
  uint64_t flags = 0;              // the writer's
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
  TimeNs time_ns = kNoTime;  // wall clock at reading
  std::optional<Gap> gap;    // before the bytes
  // Read position in the file of these bytes once the store has the piece; none for a socket. For late bytes
  // it continues an earlier file of the source, otherwise the current file.
  std::optional<FilePlace> place;
  bool ends = false;  // nothing follows: the file was removed or the process ended
  // When the file was last written, as known at reading; kNoTime: unknown. Not stored.
  TimeNs written_ns = kNoTime;
};

// The state of a source in the store, as found at a start of the daemon.
struct StreamState {
  StreamInfo info;
  uint64_t size = 0;               // bytes of evidence: the offset of the next piece
  std::optional<FilePlace> place;  // not of a socket
  bool ended = false;
  // Final positions in earlier files of the source (rotated, truncated): they are recognised under any name
  // and never read again. The latest is last; at most kPastPlaces.
  std::vector<FilePlace> past;
};
// Rotated files that are remembered: logrotate's default is 4; a year of daily files is rare.
constexpr size_t kPastPlaces = 32;

// Whether a piece of `passed` bytes (with its gap) that ends at `now` continues from `before` in the same
// file.
inline bool goes_on_in(const FilePlace& before, const FilePlace& now, uint64_t passed) {
  return before.device == now.device && before.inode == now.inode && before.offset + passed == now.offset;
}

// Updates the state of a stream in the store by a piece. The piece moves the place that it continues: the
// source's current place or a past one. If it continues none, a new generation begins. `State` has the
// members of StreamState with the same names; `size` is the size of the piece's bytes.
template <class State>
void advance(State& state, const Piece& piece, OriginKind kind, size_t size) {
  state.size = std::max(state.size, piece.offset + size);
  state.ended = piece.ends;
  if (!piece.place) return;
  // The first piece of a new generation begins at 0, even if inode and size equal those before. A piece that
  // continues belongs to the same generation, even if it was read from a copy.
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
  bool whole = false;  // in one frame of the store: all of it becomes durable, or none
  uint64_t bytes() const {
    uint64_t n = 0;
    for (const Piece& p : pieces) n += p.bytes.size();
    return n;
  }
};

}  // namespace culprit
