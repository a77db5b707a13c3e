// The whole path of a log: parse, mine, detect, report. Any bytes must give a report.
#include <cstdint>
#include <string>

#include "core/engine.h"
#include "model/report_json.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace culprit;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  static const auto shipped = rules::Ruleset::shipped();
  core::Engine engine({{}, {}, {}, shipped});
  logs::LineParser parser{logs::ParseOptions{}, engine.make_scanner()};
  logs::LogBatch batch;
  // Two sources, for a comparison; the first byte of the input determines the cut.
  const size_t cut = size ? size * data[0] / 256 : 0;
  // Each is read in two pieces: records continue over the cut.
  for (uint32_t source = 0; source < 2; ++source) {
    SourceInfo info;
    info.file = source ? "b.log" : "a.log";
    core::Input opened = core::SourceOpened{info};
    engine.step({&opened, 1}, kNoTime);
    const std::string_view part = source ? text.substr(cut) : text.substr(0, cut);
    const size_t middle = part.find('\n', part.size() / 2);
    const size_t end = middle == std::string_view::npos ? 0 : middle + 1;
    for (const bool last : {false, true}) {
      const std::string_view piece = last ? part.substr(end) : part.substr(0, end);
      parser.parse({source, last, last ? end : 0, piece, piece.size(), last}, info, batch);
      core::Input lines = core::LogInput{&batch};
      engine.step({&lines, 1}, kNoTime);
    }
  }
  if (to_json(engine.report()).empty()) __builtin_trap();
  return 0;
}
