// What a source's bytes become on their way into the engine: a piece of text (from ingest), and the batch
// that parsing makes of it (for Engine::step). A batch belongs to one source and holds it in order.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.h"

namespace culprit {

using SourceId = uint32_t;

// kEvent: events of a trace, a line each ("name=ecc count=3").
enum class SourceKind : uint8_t { kLog, kKernel, kEvent };

// One watched or read file, stream or feed, and what its path or its owner says of who writes to it.
struct SourceInfo {
  std::string file;  // as reports name it
  SourceKind kind = SourceKind::kLog;
  std::optional<std::string> host;
  std::optional<uint32_t> rank;
  std::optional<uint32_t> local;  // local device on `host`
  bool host_wins = false;         // the user's own pattern gave it: it outranks the lines' prefixes
  bool rank_wins = false;
  TimeNs modified_ns = kNoTime;  // of the file: places times that tell no year
  uint64_t lines_before = 0;     // of the file, that were another run's: its own count on from them
};

// Whole lines of one source. `bytes` is borrowed for the call; the last line may lack its newline only at the
// end of the source.
struct TextChunk {
  SourceId source = 0;
  uint64_t index = 0;   // of this chunk in its source, from 0
  uint64_t offset = 0;  // of bytes[0] in the source's decompressed text
  std::string_view bytes;
  uint64_t range_bytes = 0;  // of the source that this chunk stands for: more than bytes where a line was cut
  bool last = false;         // the source ends with this chunk
};

}  // namespace culprit
