// Any bytes of a file to chunks of lines: recognition, decompression, the rule of chunks. A compressed file
// gives the chunks of its text, and the chunks cover the text once.
#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/check.h"
#include "ingest/json_head.h"
#include "ingest/recognise.h"
#include "ingest/text_reader.h"

using namespace culprit::ingest;

namespace {

constexpr size_t kTextBytes = 1 << 20;  // limit for the text of a decompression bomb

struct Decoded {
  std::string text;
  bool damaged = false;
};

Decoded decode(std::string_view bytes, Compression compression) {
  auto decompressor = Decompressor::over(bytes, compression, "fuzz");
  Decoded decoded;
  decoded.text.resize(kTextBytes);
  decoded.text.resize(decompressor.read(decoded.text.data(), kTextBytes));
  decoded.damaged = decompressor.problem().has_value();
  return decoded;
}

void check_chunks(std::string_view bytes, Compression compression, const std::string& text) {
  const ChunkRule rule{64, 24};
  auto reader = StreamReader::over(Decompressor::over(bytes, compression, "fuzz"), rule);
  auto plain = StreamReader::over(Decompressor::over(text, Compression::kNone, "fuzz"), rule);
  uint64_t covered = 0, index = 0;
  bool last = false;
  ChunkBuffer recycled;
  while (auto chunk = reader.next(std::move(recycled))) {
    const auto other = plain.next();
    CULPRIT_CHECK(!last && other && other->bytes == chunk->bytes && other->offset == chunk->offset);
    CULPRIT_CHECK(chunk->index == index++ && chunk->bytes.size() <= rule.chunk_bytes + rule.line_bytes + 1);
    // Of a cut line its beginning and its end are kept, not what is between them.
    CULPRIT_CHECK(chunk->cut || text.compare(chunk->offset, chunk->bytes.size(), chunk->bytes) == 0);
    covered += chunk->range_bytes;
    last = chunk->last;
    recycled = std::move(*chunk);
  }
  CULPRIT_CHECK(last && covered == text.size() && reader.consumed() <= bytes.size());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const Compression compression = compression_of(bytes);
  const auto [text, damaged] = decode(bytes, compression);
  const std::string_view head = std::string_view(text).substr(0, kHeadBytes);
  for (const char* name : {"a.log", "stacks/a.txt", "b.ndjson", "c.comm", "_dump_1", "job.toml"})
    (void)kind_of({head, text.size() <= kHeadBytes, name, "runs"});
  (void)read_json_head(bytes);
  // The distance at which liblzma detects damage depends on the size of the output buffer.
  if (damaged && compression == Compression::kXz) return 0;
  if (text.size() < kTextBytes) check_chunks(bytes, compression, text);
  return 0;
}
