// Any bytes as a communication trace: read, analysed, reported. No content may cause a crash or a hang.
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
      trace.add_records(again->header().host, records);
    } while (!records.empty());
    const comm::TraceFindings reported = comm::report_findings(trace);
    (void)reported;
    (void)trace.drop_sentences();
  }
  return 0;
}
