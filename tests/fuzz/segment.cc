// Any bytes as a segment, or (first byte 'R') any records in a frame with correct checksums. The spool
// recovers from it, all ways of reading agree, and later appended data is read back.
#include <cstdint>
#include <cstdlib>
#include <map>
#include <string>
#include <string_view>

#include <zstd.h>

#include "../unit/store/memory_files.h"
#include "base/hash.h"
#include "store/evidence.h"
#include "store/segment.h"
#include "store/spool.h"

namespace {

using namespace culprit;
using namespace culprit::store;
using culprit::store::testing::MemoryFiles;

const std::string kFolder = "/s";

void require(bool condition) {
  if (!condition) std::abort();
}

std::string read_stream(MemoryFiles& files, const StoredStream& stream) {
  std::string out;
  uint64_t missing = 0;
  EvidenceSink sink;
  sink.bytes = [&](std::string_view bytes) {
    out += bytes;
    return true;
  };
  sink.gap = [&](const EvidenceGap& gap) {
    require(gap.offset == out.size() + missing);
    missing += gap.in_range;
  };
  require(EvidenceReader(files, kFolder).read({{stream}, 0, UINT64_MAX}, sink).has_value());
  require(out.size() + missing == stream.state.size);
  return out;
}

uint64_t replayed(MemoryFiles& files, uint64_t until) {
  uint64_t bytes = 0;
  std::map<StreamId, uint64_t> next;
  ReplayVisitor visitor;
  visitor.wanted = [](const StreamInfo&) { return true; };
  visitor.piece = [&](const Piece& piece) {
    const auto [at, fresh] = next.try_emplace(piece.stream, 0);
    require(piece.offset >= at->second && (piece.offset == at->second || piece.gap));
    at->second = piece.offset + piece.bytes.size();
    bytes += piece.bytes.size();
    return true;
  };
  require(replay(files, kFolder, until, visitor).has_value());
  return bytes;
}

std::string sound_segment(std::string_view records) {
  SegmentHeader segment;
  segment.epoch = segment.number = 1;
  std::string payload(ZSTD_compressBound(records.size()), '\0');
  payload.resize(ZSTD_compress(payload.data(), payload.size(), records.data(), records.size(), 1));
  FrameHeader frame;
  frame.raw_size = static_cast<uint32_t>(records.size());
  frame.stored_size = static_cast<uint32_t>(payload.size());
  frame.epoch = frame.segment = frame.sequence = 1;
  frame.stream_mask = ~uint64_t{0};
  frame.payload_hash = hash64(payload);
  return encode(segment) + encode(frame) + payload;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  MemoryFiles files;
  files.put(kFolder + "/" + segment_name(1),
            input.starts_with('R') ? sound_segment(input.substr(1)) : std::string(input));
  SpoolOptions options;
  options.folder = kFolder;
  auto opened = Spool::open(files, options, 1);
  if (!opened) return 0;  // a newer version
  Spool& spool = **opened;
  uint64_t given = 0;
  const auto streams = spool.streams();
  for (const StoredStream& stream : streams)
    if (stream.state.size < (1 << 24)) given += read_stream(files, stream).size();
  const uint64_t again = replayed(files, spool.last_sequence());
  require(given <= again);
  PieceBatch batch;
  StreamInfo info;
  info.id = spool.allocate();
  if (info.id == kNoStream) return 0;
  info.path = "new";
  batch.opened = {info};
  Piece piece;
  piece.stream = info.id;
  piece.bytes = "what comes after";
  batch.pieces = {piece};
  require(spool.append(batch, 1).has_value());
  require(spool.commit(1).has_value());
  require(spool.streams().size() == streams.size() + 1);
  for (const StoredStream& stream : spool.streams())
    if (stream.state.info.id == info.id) require(read_stream(files, stream) == piece.bytes);
  return 0;
}
