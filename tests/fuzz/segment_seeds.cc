// Writes the seeds of the target `segment` with the real writers, so that the seeds follow the format:
// `segment_seeds tests/fuzz/corpus/segment`.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "../unit/store/memory_files.h"
#include "base/hash.h"
#include "store/record.h"
#include "store/spool.h"

namespace {

using namespace culprit;
using namespace culprit::store;
using culprit::store::testing::MemoryFiles;

std::string folder;
int written = 0;

void seed(const std::string& name, const std::string& bytes) {
  char number[8];
  std::snprintf(number, sizeof number, "%03d", written++);
  std::ofstream(folder + "/" + number + "-" + name, std::ios::binary) << bytes;
}

StreamInfo stream(StreamId id, OriginKind kind, const std::string& path) {
  StreamInfo info;
  info.id = id, info.kind = kind, info.job = "j", info.path = path;
  info.opened_ns = 5;
  if (kind == OriginKind::kSocket) info.uid = 1000, info.pid = 7;
  return info;
}

Piece piece(StreamId id, uint64_t offset, const std::string& bytes) {
  Piece p;
  p.stream = id, p.offset = offset, p.bytes = bytes, p.time_ns = 9;
  p.place = FilePlace{1, 4, 77, 9, offset + bytes.size(), 88, 9};
  return p;
}

// A segment with a checkpoint of two sources, one of them with an earlier file, and three frames.
std::string whole(std::vector<size_t>& ends) {
  MemoryFiles files;
  SpoolOptions options;
  options.folder = "/s";
  options.segment_bytes = 64 << 10;
  options.hold = true;
  auto spool = Spool::open(files, options, 1).value();
  PieceBatch batch;
  batch.opened = {stream(0, OriginKind::kFile, "/log/a"), stream(1, OriginKind::kSocket, "s")};
  std::string noise;
  for (uint64_t i = 0; noise.size() < (70 << 10); ++i) noise += hex64(mix64(i, 3));
  batch.pieces = {piece(0, 0, noise.substr(0, 60 << 10)), piece(0, 60 << 10, "line\n")};
  batch.pieces[1].place =
      FilePlace{1, 5, 78, 5, 5, 89, 5};  // of another file: the source leaves the first one
  const auto commit = [&] {
    (void)spool->append(batch, 1);
    (void)spool->commit(2);
    const std::string path = files.paths().back();
    if (path.ends_with("2.seg")) ends.push_back(files.bytes(path).size());
    batch = {};
  };
  commit();
  for (uint64_t at = (60 << 10) + 5; !files.paths().back().ends_with("2.seg"); at += 30 << 10) {
    batch.pieces = {piece(0, at, noise.substr(at % 7, 30 << 10))};
    commit();
  }
  const uint64_t at = spool->streams()[0].state.size;
  batch.pieces = {piece(0, at, "after a gap\n"), piece(1, 0, "of a socket")};
  batch.pieces[0].gap = Gap{9, 1, "lost"};
  batch.pieces[1].place.reset();
  commit();
  batch.pieces = {piece(0, at + 12, "the last\n")};
  batch.pieces[0].ends = true;
  commit();
  std::string bytes = files.bytes(files.paths().back());
  // As the first segment: only the checkpoint has the content of the previous one.
  SegmentHeader header = *decode_segment_header(bytes);
  header.number = 1;
  bytes.replace(0, kSegmentHeaderBytes, encode(header));
  for (size_t begin = kSegmentHeaderBytes; begin + kFrameHeaderBytes <= bytes.size();) {
    FrameHeader frame = *decode_frame_header(std::string_view(bytes).substr(begin));
    frame.segment = 1;
    bytes.replace(begin, kFrameHeaderBytes, encode(frame));
    begin += kFrameHeaderBytes + frame.stored_size;
  }
  return bytes;
}

// `change` is applied to the frame's header at `at`; its checksum is then corrected.
template <class Change>
std::string resealed(std::string bytes, size_t at, const Change& change) {
  FrameHeader frame = *decode_frame_header(std::string_view(bytes).substr(at));
  change(frame);
  return bytes.replace(at, kFrameHeaderBytes, encode(frame));
}

void segments() {
  std::vector<size_t> ends;
  const std::string sound = whole(ends);
  const size_t first = ends[0], second = ends[1], third = ends[2];
  const size_t frame0 = kSegmentHeaderBytes + kFrameHeaderBytes +
                        decode_frame_header(std::string_view(sound).substr(kSegmentHeaderBytes))->stored_size;
  seed("empty", "");
  seed("whole", sound);
  for (const size_t cut : {size_t{8}, size_t{63}, size_t{64}, size_t{65}, size_t{135}, size_t{136},
                           frame0 - 1, frame0, first, first + 70, second - 1, second, third - 1})
    seed("cut", sound.substr(0, cut));
  for (const size_t at : {0, 8, 16, 24, 56, 64, 68, 72, 76, 80, 88, 96, 104, 112, 120, 128, 140})
    for (const size_t base : {size_t{0}, first})
      if (base == 0 || at < 80) {
        std::string bent = sound;
        bent[base + at] = static_cast<char>(bent[base + at] ^ 0x41);
        seed("flip", bent);
      }
  const std::string one = sound.substr(first, second - first), two = sound.substr(second);
  const std::string before = sound.substr(0, first);
  seed("no-checkpoint", sound.substr(0, kSegmentHeaderBytes) + sound.substr(frame0));
  seed("no-header", sound.substr(kSegmentHeaderBytes));
  seed("swapped", before + two + one);
  seed("twice", before + one + one + two);
  seed("missing", before + two);
  seed("garbage-between", before + one + "CFRMgarbage" + two);
  seed("zeros-between", before + one + std::string(200, '\0') + two);
  seed("zeros-behind", sound + std::string(4096, '\0'));
  for (const uint32_t size : {0u, 1u, 0x7fffffu, 0x800000u, 0x800001u, 0xffffffffu}) {
    seed("raw-size", resealed(sound, first, [&](FrameHeader& f) { f.raw_size = size; }));
    seed("stored-size", resealed(sound, first, [&](FrameHeader& f) { f.stored_size = size; }));
  }
  seed("other-epoch", resealed(sound, first, [](FrameHeader& f) { f.epoch ^= 1; }));
  seed("other-segment", resealed(sound, first, [](FrameHeader& f) { f.segment = 9; }));
  seed("checkpoint-late", resealed(sound, first, [](FrameHeader& f) { f.kind = FrameKind::kCheckpointEnd; }));
  seed("origin", resealed(sound, first, [](FrameHeader& f) { f.kind = FrameKind::kOrigin; }));
  seed("checkpoint-never-ends",
       resealed(sound, 64, [](FrameHeader& f) { f.kind = FrameKind::kCheckpointPart; }));
  seed("sequence-last", resealed(sound, second, [](FrameHeader& f) { f.sequence = UINT64_MAX; }));
  SegmentHeader header = *decode_segment_header(sound);
  header.version = 2;
  seed("newer", encode(header) + sound.substr(64));
}

void records() {
  const auto reported = [](const auto& put) {
    std::string out = "R";
    put_stream(out, stream(0, OriginKind::kFile, "/log/a"));
    put(out);
    return out;
  };
  const auto pieces = [&](std::vector<Piece> list) {
    return reported([&](std::string& out) {
      for (const Piece& p : list) put_piece(out, p);
    });
  };
  seed("R-empty", "R");
  const std::string good = pieces({piece(0, 0, "line one\n"), piece(0, 9, "line two\n")});
  seed("R-records", good);
  seed("R-cut", good.substr(0, good.size() - 5));
  seed("R-unknown-kind", good + "\x63");
  seed("R-overlap", pieces({piece(0, 0, "line one\n"), piece(0, 4, "one\nline\n")}));
  seed("R-hole", pieces({piece(0, 0, "line one\n"), piece(0, 400, "far\n")}));
  seed("R-offset-end", pieces({piece(0, uint64_t{1} << 60, "x")}));
  seed("R-offset-far", pieces({piece(0, (uint64_t{1} << 60) + 1, "x")}));
  seed("R-no-stream", pieces({piece(3, 0, "x"), piece(0, 0, "y")}));
  Piece end = piece(0, 9, "");
  end.ends = true, end.gap = Gap{1, 2, "why"};
  seed("R-end", pieces({piece(0, 0, "line one\n"), end, piece(0, 9, "again\n")}));
  seed("R-declared-twice", good + good.substr(1));
  seed("R-stream-last", reported([](std::string& out) {
         put_stream(out, stream(0xfffffffe, OriginKind::kKernel, "kmsg"));
         put_stream(out, stream(0xffffffff, OriginKind::kKernel, "kmsg"));
       }));
  seed("R-checkpoint", reported([](std::string& out) {
         Position position;
         position.size = 99, position.ended = true;
         position.past.assign(kPastPlaces, FilePlace{1, 2, 3, 4, 5, 6, 7});
         put_acknowledged(out, 4);
         put_position(out, 0, position);
         put_position(out, 1, position);
         put_checkpoint(out, 5, 2);
       }));
  seed("R-archive", reported([](std::string& out) {
         put_origin(out, {1, 9, "host"});
         put_skipped(out, {3, 4, 5, "why"});
       }));
  seed("R-path-long", reported([](std::string& out) {
         put_stream(out, stream(1, OriginKind::kFile, std::string(kStringMax, 'p')));
       }));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  folder = argv[1];
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  segments();
  records();
  std::printf("%d seeds\n", written);
}
