// Input of the engine: a source, and chunks of its text (from ingest). All chunks of one source arrive in
// order.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/principal.h"
#include "base/time.h"

namespace culprit {

using SourceId = uint32_t;

// kEvent: events of a trace, one per line ("name=ecc count=3").
enum class SourceKind : uint8_t { kLog, kKernel, kEvent };

// One watched or read file, stream or feed, with what its path or configuration says about the writer.
struct SourceInfo {
  std::string file;  // as reports name it
  SourceKind kind = SourceKind::kLog;
  std::optional<std::string> host;
  std::optional<uint32_t> rank;
  std::optional<uint32_t> local;  // local device on `host`
  bool host_wins = false;         // the user's own pattern set the host: it overrides the prefixes of lines
  bool rank_wins = false;
  TimeNs modified_ns = kNoTime;  // of the file: supplies the year for times without one
  uint64_t lines_before = 0;     // lines of the file in earlier runs; numbers continue after them
  // Live: the user who alone writes it. None: the kernel, root, the daemon's user, or not known.
  std::optional<Principal> user = {};
  std::string agent = {};  // on a collector: the host whose agent reads it
  bool operator==(const SourceInfo&) const = default;
};

// Whole lines of one source. `bytes` is borrowed for the call. Only the last line of the source may lack its
// newline.
struct TextChunk {
  SourceId source = 0;
  uint64_t index = 0;   // of this chunk in its source, from 0
  uint64_t offset = 0;  // of bytes[0] in the source's decompressed text
  std::string_view bytes;
  uint64_t range_bytes = 0;  // size of this chunk in the source: more than `bytes` if a line was cut
  bool last = false;         // the source ends with this chunk
};

}  // namespace culprit
