// Any changes and cuts of a JSON dump, through the reader and the rules: each statement accuses ranks.
#include <cstdint>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "core/detect/flight/flight.h"
#include "ingest/flight_reader.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  std::vector<culprit::FlightDump> dumps;
  // Two ranks: the text, and the text without its last third.
  for (const char* name : {"nccl_trace_rank_0", "nccl_trace_rank_1"}) {
    auto read = culprit::ingest::parse_flight(dumps.empty() ? text : text.substr(0, size - size / 3), name);
    if (read) dumps.push_back(std::move(read->dump));
  }
  const auto answer = culprit::flight::analyse_flight(dumps, {});
  if (!answer.waits && !answer.claims.empty()) std::abort();
  for (const culprit::hang::HangClaim& output : answer.claims)
    if (output.ranks.empty() || output.confidence <= 0 || output.confidence > 1) std::abort();
  return 0;
}
