// Any bytes as the index of an object, and (first byte 'R') any records in a frame with correct checksums:
// the places of a source are in order, and with objects that are away all its bytes are gaps.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "io/files.h"
#include "store/bucket/merge.h"
#include "store/evidence.h"
#include "store/segment.h"

using namespace culprit;
using namespace culprit::store;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string bytes(reinterpret_cast<const char*>(data), size);
  if (bytes.starts_with('R') && bytes.size() <= kFrameRawMax) {
    FrameHeader header;
    header.kind = FrameKind::kOrigin;
    bytes = pack_frame(header, std::string_view(bytes).substr(1));
  }
  auto index = bucket::parse_index(bytes);
  if (!index) return 0;
  std::vector<HostStream> streams;
  bucket::merge(streams, {{0, "a", 1, index->logs}, {1, "b", 1, index->logs}}, {});
  for (HostStream& one : streams) {
    uint64_t last = 0;
    for (const Extent& extent : one.stored.extents) {
      if (extent.from < last || extent.from >= extent.to) std::abort();
      last = extent.to;
    }
    EvidenceRange range{{one.stored}};
    range.open_object = [](uint64_t) -> Result<SegmentReader> { return fail(ErrorCode::kNotFound, "gone"); };
    EvidenceSink sink;
    sink.bytes = [](std::string_view) { return true; };
    uint64_t missing = 0;
    sink.gap = [&](const EvidenceGap& gap) {
      if (gap.gap.reason.empty() && gap.in_range > 0 && one.stored.holes.empty()) std::abort();
      missing += gap.in_range;
    };
    if (!EvidenceReader(io::real_files(), "/").read(range, sink) || missing != one.stored.state.size)
      std::abort();
  }
  return 0;
}
