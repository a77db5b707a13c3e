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

// A file, stream or feed, with the writer's data from its path or configuration.
struct SourceInfo {
  std::string file;  // name in reports
  SourceKind kind = SourceKind::kLog;
  std::optional<std::string> host;
  std::optional<uint32_t> rank;
  std::optional<uint32_t> local;  // local device on `host`
  bool host_wins = false;         // a user's pattern set `host`: overrides prefixes of lines
  bool rank_wins = false;
  TimeNs modified_ns = kNoTime;  // modification time of the file: gives the year of times without one
  uint64_t lines_before = 0;     // lines of the file in earlier runs; line numbers continue after these
  // Live only: the source's only writer. None: the kernel, root, the daemon's user, or unknown.
  std::optional<Principal> user = {};
  std::string agent = {};  // on a collector: the host whose agent reads the source
  bool operator==(const SourceInfo&) const = default;
};

// Whole lines of one source. `bytes` is borrowed for the call. Only the last line of the source may lack its
// newline.
struct TextChunk {
  SourceId source = 0;
  uint64_t index = 0;   // number of this chunk in its source, from 0
  uint64_t offset = 0;  // of bytes[0] in the source's decompressed text
  std::string_view bytes;
  uint64_t range_bytes = 0;  // size of this chunk in the source; larger than `bytes` if a line was cut
  bool last = false;         // last chunk of the source
};

}  // namespace culprit
