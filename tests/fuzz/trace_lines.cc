// Lines of any bytes on the trace socket: each is parsed or refused with a sentence, independent of earlier
// lines, and a parsed line satisfies the rules of its kind.
#include "ingest/live/trace_lines.h"

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>

namespace {

using culprit::ingest::TraceKind;
using culprit::ingest::TraceLine;

void require(bool condition) {
  if (!condition) std::abort();
}

// Reads every byte, so that a dangling view is detected.
size_t touch(std::string_view text) {
  size_t sum = text.size();
  for (const char c : text) sum = sum * 31 + static_cast<unsigned char>(c);
  return sum;
}

size_t touch_all(const TraceLine& line) {
  size_t sum = touch(line.job) ^ touch(line.host) ^ touch(line.name) ^ touch(line.state) ^ touch(line.text);
  for (const auto& value : line.values) {
    uint64_t bits;
    std::memcpy(&bits, &value.value, sizeof(bits));
    sum = sum * 31 + (touch(value.name) ^ bits);
  }
  for (const auto& digest : line.digests) sum = sum * 31 + (touch(digest.name) ^ digest.value);
  for (const auto& thread : line.threads) {
    sum = sum * 31 + touch(thread.name);
    for (const auto frame : thread.frames) sum = sum * 31 + touch(frame);
  }
  for (const auto& field : line.fields) sum = sum * 31 + (touch(field.name) ^ touch(field.json));
  return sum;
}

void check(const TraceLine& line) {
  const bool metric = line.kind == TraceKind::kMetric, phase = line.kind == TraceKind::kPhase;
  require(!metric || (line.rank && line.step));
  require(line.kind != TraceKind::kStep || line.step);
  require(!phase || (!line.name.empty() && (line.state == "begin" || line.state == "end")));
  require(!line.step || *line.step >= 0);
  require(line.time_ns == culprit::kNoTime || line.time_ns >= 0);
  require(metric || (line.values.empty() && line.digests.empty()));
  require(line.kind == TraceKind::kStack || line.threads.empty());
  require(line.kind == TraceKind::kEvent || line.kind == TraceKind::kUnknown || line.fields.empty());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view rest(reinterpret_cast<const char*>(data), size);
  while (!rest.empty()) {
    const size_t end = rest.find('\n');
    const std::string text(rest.substr(0, end));  // memory of its own, so that a read beyond it is detected
    const auto line = culprit::ingest::parse_trace_line(text);
    if (line) check(*line);
    const size_t sum = line ? touch_all(*line) : touch(line.error().text);
    require(line || !line.error().text.empty());
    (void)culprit::ingest::parse_trace_line(R"({"kind":"log","line":"another"})");
    const auto again = culprit::ingest::parse_trace_line(text);
    require(again.has_value() == line.has_value());
    require((again ? touch_all(*again) : touch(again.error().text)) == sum);
    if (end == std::string_view::npos) break;
    rest.remove_prefix(end + 1);
  }
  return 0;
}
