// Any bytes as a rank's dump: read, read in part, or refused with a sentence that names the file.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "ingest/flight_reader.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto read = culprit::ingest::parse_flight({reinterpret_cast<const char*>(data), size}, "x_dump_3");
  if (!read) {
    if (!read.error().text.starts_with("x_dump_3: ")) std::abort();
    return 0;
  }
  const culprit::FlightDump& dump = read->dump;
  if (dump.rank != 3) std::abort();
  for (const culprit::FlightOp& op : dump.ops) {
    if (op.group >= dump.groups.size() || op.stack >= dump.stacks.size()) std::abort();
    for (const uint32_t word : {op.name, op.in_sizes, op.out_sizes, op.dtypes})
      if (word >= dump.words.size()) std::abort();
    for (const uint32_t frame : dump.stacks[op.stack])
      if (frame >= dump.words.size()) std::abort();
  }
  return 0;
}
