// Input of the daemon from its host, for the store and the engine: sources, and pieces of their bytes in
// order. Plain values that own all their data.
//
// The evidence of a source is its bytes as they came, one after the other: a file's over all its generations
// (what is written to one after the next was begun stands where it was found; its place tells which it is),
// a ring's records, a socket's lines, the kernel's records. `offset` counts in it. Bytes that were lost count
// as a gap at the offset where they are missing; they take no room in the evidence.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/time.h"

namespace culprit {

// An agent's condensed log has kCondensed, the blocks of one session of a job (core/wire.h; a piece with
// bytes is one block, whole; path "condensed/SESSION", in hex), and kMark: how far a source's evidence is
// condensed (no bytes ever: its place tells). Who analyses needs no marks. kDump is a file that a process
// writes as a whole (a Flight Recorder dump): what it holds says something once all of it is there.
enum class OriginKind : uint8_t {
  kFile = 0,
  kSocket = 1,
  kRing = 2,
  kKernel = 3,
  kCondensed = 4,
  kMark = 5,
  kDump = 6
};
constexpr OriginKind kLastOriginKind = OriginKind::kDump;
constexpr bool is_file(OriginKind kind) { return kind == OriginKind::kFile || kind == OriginKind::kDump; }

// A number that is unique in a state folder and never reused.
using StreamId = uint32_t;
constexpr StreamId kNoStream = 0xffffffff;

// A source of the daemon, declared once before its first piece.
struct StreamInfo {
  StreamId id = kNoStream;
  OriginKind kind = OriginKind::kFile;
  std::string job;                   // empty: of every job on the host (the kernel's messages)
  std::string path;                  // as it is watched: formats.md section 9, `path` of evidence
  std::optional<uint32_t> uid, pid;  // of the peer that writes it, as the kernel tells
  TimeNs opened_ns = kNoTime;        // wall clock
  TimeNs boot_ns = kNoTime;          // wall time at which the kernel's clock was 0, of kKernel
};

// Which file it is, and how far its bytes are taken. A path may change its file, and an inode its content:
// only all of these together tell (device and inode, what it begins with, what stands before the place).
// A copy of it has another inode and all the rest.
// Rings and the kernel's messages keep their place in one too, in their own sense: for the store it is
// opaque.
struct FilePlace {
  uint64_t device = 0, inode = 0;
  uint64_t fingerprint = 0;        // XXH3 of the first `fingerprint_bytes` bytes
  uint32_t fingerprint_bytes = 0;  // as many as there were, at most limits::kFingerprintBytes
  uint64_t offset = 0;             // in this file, behind the bytes of the piece
  uint64_t tail = 0;               // XXH3 of the last `tail_bytes` bytes before the offset
  uint32_t tail_bytes = 0;         // as many as were taken in a row, at most limits::kTailBytes
  bool operator==(const FilePlace&) const = default;
};

// What is missing from a source at a known place. Either count may be 0: not known, or none.
struct Gap {
  uint64_t bytes = 0, records = 0;
  std::string reason;  // "the file was truncated before it was read"
};

struct Piece {
  StreamId stream = kNoStream;
  uint64_t offset = 0;  // in the source's evidence, of bytes[0]
  std::string bytes;
  TimeNs time_ns = kNoTime;  // when it was read, wall clock
  std::optional<Gap> gap;    // before the bytes
  // How far the file that the bytes are of is taken once the store has them; not of a socket. One of those
  // left behind where it goes on from there (bytes written to it late), else the one being taken.
  std::optional<FilePlace> place;
  bool ends = false;  // nothing follows: the file was removed, the process ended
};

// What a source has left behind in the store, as found at a start.
struct StreamState {
  StreamInfo info;
  uint64_t size = 0;               // bytes of evidence: the offset of the next piece
  std::optional<FilePlace> place;  // not of a socket
  bool ended = false;
  // Where it stood in the files that it left for others (rotated, truncated): so that they are known under
  // whatever name they have now, and never taken again. The latest last, at most kPastPlaces.
  std::vector<FilePlace> past;
};
// Rotations whose files are kept, generously: logrotate's own default is 4, a year of daily ones rare.
constexpr size_t kPastPlaces = 32;

// Whether a piece that passes over so many bytes, and stands at `now` behind them, goes on from `before` in
// the same file.
inline bool goes_on_in(const FilePlace& before, const FilePlace& now, uint64_t passed) {
  return before.device == now.device && before.inode == now.inode && before.offset + passed == now.offset;
}

// What the store holds of a stream once it has this piece: it moves the place that it goes on from, the
// source's own or a past one, and where it goes on from none, another generation begins.
// `State` has its members of these names; `size` are the piece's bytes.
template <class State>
void advance(State& state, const Piece& piece, OriginKind kind, size_t size) {
  state.size = std::max(state.size, piece.offset + size);
  state.ended = piece.ends;
  if (!piece.place) return;
  // The first piece of another generation begins at 0, also where inode and size are those of the one before;
  // one that goes on is the same, also where it is read on in a copy.
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

// One unit for the store and the engine, in this order: streams come before their pieces.
struct PieceBatch {
  std::vector<StreamInfo> opened;
  std::vector<Piece> pieces;
  bool whole = false;  // in one frame of the store: it becomes durable together, or not
  uint64_t bytes() const {
    uint64_t n = 0;
    for (const Piece& p : pieces) n += p.bytes.size();
    return n;
  }
};

}  // namespace culprit
