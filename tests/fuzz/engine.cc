// The whole path of a log: parse, mine, detect, report. Any bytes must give a report.
#include <cstdint>
#include <string>

#include "core/engine.h"
#include "model/report_json.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace culprit;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  core::Engine engine({});
  logs::LineParser parser{logs::ParseOptions{}};
  logs::LogBatch batch;
  // Two sources, so that there is something to compare; the cut is where the input's first byte says.
  const size_t cut = size ? size * data[0] / 256 : 0;
  for (uint32_t source = 0; source < 2; ++source) {
    SourceInfo info;
    info.file = source ? "b.log" : "a.log";
    core::Input opened = core::SourceOpened{info};
    engine.step({&opened, 1}, kNoTime);
    const std::string_view part = source ? text.substr(cut) : text.substr(0, cut);
    parser.parse({source, 0, 0, part, part.size(), true}, info, batch);
    core::Input lines = core::LogInput{&batch};
    engine.step({&lines, 1}, kNoTime);
  }
  if (to_json(engine.report()).empty()) __builtin_trap();
  return 0;
}
