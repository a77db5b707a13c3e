// Any text as a dump of stacks: read, added and judged.
#include <string_view>

#include "core/detect/stacks/stacks.h"
#include "core/detect/stacks/tree.h"
#include "ingest/stack_reader.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace culprit;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto read = ingest::parse_stacks(text, "stacks/node-0/rank_0.txt");
  if (!read) return 0;
  stacks::Samples samples;
  uint32_t rank = 0;
  for (StackDump dump : read->dumps) {
    dump.rank = rank++ / 2;
    samples.add(dump);
  }
  for (const auto& refusal : read->refusals) samples.add_silent(refusal.rank, refusal.reason);
  const stacks::GroupLayout layout{JobFile{}};
  const auto answer = stacks::analyse_stacks({samples, layout, {}, true});
  stacks::make_tree(answer.clusters);
  return 0;
}
