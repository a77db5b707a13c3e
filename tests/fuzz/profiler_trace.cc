// Any bytes as a trace of PyTorch's profiler. No content may cause a crash or a hang, and no record has a
// rank beyond the limits.
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "base/limits.h"
#include "ingest/profiler_trace.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace culprit;
  using namespace culprit::ingest;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const std::atomic<bool> stop{false};
  const auto trace = ProfilerTrace::over(Decompressor::over(bytes, Compression::kNone, "fuzz"),
                                         "fuzz_rank_3.json", {"host", 3}, SIZE_MAX, stop);
  std::vector<CommRecord> records;
  for (trace->next(records, 16); !records.empty(); trace->next(records, 16))
    for (const CommRecord& record : records)
      if (record.rank >= limits::kCommRanks) std::abort();
  return 0;
}
