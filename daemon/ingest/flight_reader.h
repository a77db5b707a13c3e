// Parses Flight Recorder dumps: PyTorch's pickle or JSON of one rank. Pure except for read_flight(), which
// reads the file; any thread. A damaged or truncated dump is parsed up to the damage.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"
#include "ingest/source_list.h"
#include "model/flight.h"
#include "model/report.h"

namespace culprit::ingest {

struct ReadFlight {
  FlightDump dump;
  std::optional<Problem> problem;  // why a part could not be parsed
};

// The rank at the end of a dump's name ("_dump_7", "nccl_trace_rank_7.json", "rank3_dump.pickle.zst").
std::optional<uint32_t> rank_in_name(std::string_view path);
// The host in "nccl_trace_rank_<host>_<rank>"; empty if absent.
std::string host_in_name(std::string_view path);

// `path` is for messages, and gives the rank. The error is a sentence with the path as its subject. Memory is
// bounded by the bytes (ReadBudget) and by `held_max`.
Result<ReadFlight> parse_flight(std::string_view bytes, const std::string& path,
                                uint64_t held_max = UINT64_MAX);
Result<ReadFlight> read_flight(const SourceFile& file);

}  // namespace culprit::ingest
