// Lines of any bytes on a trace socket: their metrics and events are judged and reported. No line may cause a
// crash or a hang.
#include <cstdint>
#include <string_view>

#include "base/limits.h"
#include "core/detect/numerics/detector.h"
#include "ingest/live/trace_lines.h"

namespace {

using namespace culprit;

void take(numerics::Detector& detector, const ingest::TraceLine& line) {
  if (line.kind == ingest::TraceKind::kMetric && line.rank && line.step) {
    std::vector<MetricValue> values;
    for (const auto& value : line.values) values.push_back({value.name, value.value});
    std::vector<MetricDigest> digests;
    for (const auto& digest : line.digests) digests.push_back({digest.name, digest.value});
    detector.add({line.host, *line.rank, *line.step, line.time_ns, values, digests});
  }
  if (line.kind == ingest::TraceKind::kEvent) {
    std::vector<EventField> fields;
    for (const auto& field : line.fields) fields.push_back({field.name, field.json});
    detector.add({line.host, line.rank, line.step, line.time_ns, line.name, fields});
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view bytes(reinterpret_cast<const char*>(data), size);
  numerics::Detector detector;
  while (!bytes.empty()) {
    const size_t end = std::min(bytes.find('\n'), bytes.size());
    const std::string_view line = bytes.substr(0, std::min(end, limits::kLineBytes));
    bytes.remove_prefix(std::min(end + 1, bytes.size()));
    if (const auto read = ingest::parse_trace_line(line)) take(detector, *read);
  }
  for (int again = 0; again < 2; ++again) (void)detector.findings();
  return 0;
}
