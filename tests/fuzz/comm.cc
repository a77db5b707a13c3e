// A communication trace of any bytes: read, analysed, reported. Nothing that stands in one may crash or hang.
#include <cstdint>
#include <string_view>

#include "core/detect/comm/findings.h"
#include "ingest/comm_file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace culprit;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  auto reader =
      ingest::CommFile::over(ingest::Decompressor::over(bytes, ingest::Compression::kNone, "fuzz"), "fuzz");
  if (!reader) return 0;
  const JobFile job;
  for (const bool live : {false, true}) {
    comm::CommTrace trace(&job, live);
    auto again =
        ingest::CommFile::over(ingest::Decompressor::over(bytes, ingest::Compression::kNone, "fuzz"), "fuzz");
    std::vector<CommRecord> records;
    do {
      again->next(records, 16);
      trace.take(again->header().host, records);
    } while (!records.empty());
    const comm::TraceFindings told = comm::report_findings(trace);
    (void)told;
    (void)trace.told_drops();
  }
  return 0;
}
