// Any text as the JSON of stacks: read, added and judged.
#include <string_view>

#include "core/detect/stacks/stacks.h"
#include "core/detect/stacks/tree.h"
#include "ingest/stack_json.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace culprit;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const ingest::StackJson read = ingest::parse_stack_json(text);
  stacks::Samples samples;
  uint32_t rank = 0;
  for (StackDump dump : read.dumps) {
    dump.rank = rank++ / 2;
    samples.add(dump);
  }
  const stacks::GroupLayout layout{JobFile{}};
  const auto answer = stacks::analyse_stacks({samples, layout, {}, true});
  stacks::make_tree(answer.clusters);
  return 0;
}
