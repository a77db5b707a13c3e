// Any bytes as a file of NCCL's Inspector: both readings. No content may cause a crash or a hang, and no
// record has a rank beyond the limits.
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "base/limits.h"
#include "ingest/inspector_file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace culprit;
  using namespace culprit::ingest;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const auto text = [&] { return Decompressor::over(bytes, Compression::kNone, "fuzz"); };
  const JobFile job;
  InspectorJob found(job);
  LimitedLines lines(text());
  InspectorLine one;
  for (std::string_view line; lines.next(line);)
    if (parse_inspector_line(line, one) == InspectorPiece::kOperation) found.add_line(one);
  found.settle();
  (void)found.problems();
  const auto reader = InspectorFile::over(text(), found);
  std::vector<CommRecord> records;
  for (reader->next(records, 16); !records.empty(); reader->next(records, 16))
    for (const CommRecord& record : records)
      if (record.rank >= limits::kCommRanks) std::abort();
  return 0;
}
