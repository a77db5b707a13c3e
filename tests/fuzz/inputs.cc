// Any bytes as condensed blocks: they are refused, or an engine ingests them and reports. First byte 'L': the
// rest is lines, which must arrive as without condensing.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "core/wire/inputs.h"
#include "model/report_json.h"

namespace {

using namespace culprit;

const std::shared_ptr<rules::Ruleset>& shipped() {
  static const auto set = rules::Ruleset::shipped();
  return set;
}

struct Sink final : wire::InputSink {
  core::Engine engine{{{}, {}, {}, shipped()}};
  SourceId next = 0;
  SourceId open(SourceInfo info, TimeNs now) override {
    core::Input input = core::SourceOpened{std::move(info)};
    engine.step({&input, 1}, now);
    return next++;
  }
  void on_input(core::Input input, TimeNs now) override { engine.step({&input, 1}, now); }
  void ends(bool, TimeNs) override {}
  void alive(bool, TimeNs) override {}
};

void lines(std::string_view text) {
  core::Engine engine({{}, {}, {}, shipped()});
  wire::InputWriter writer(1);
  writer.set_rules(shipped().get());
  logs::LineParser parser{logs::ParseOptions{}, engine.make_scanner()};
  wire::InputReader reader(wire::rule_finder(shipped().get()));
  Sink sink;
  core::Input opened = core::SourceOpened{{}};
  writer.add(opened, kNoTime);
  engine.step({&opened, 1}, kNoTime);
  logs::LogBatch batch;
  const size_t middle = text.find('\n', text.size() / 2);
  const size_t cut = middle == std::string_view::npos ? 0 : middle + 1;
  for (const bool last : {false, true}) {
    const std::string_view part = last ? text.substr(cut) : text.substr(0, cut);
    parser.parse({0, last, 0, part, part.size(), last}, {}, batch);
    core::Input input = core::LogInput{&batch};
    writer.add(input, kNoTime);
    engine.step({&input, 1}, kNoTime);
    if (!reader.read(writer.flush(kNoTime), sink)) std::abort();
  }
  if (sink.engine.log().lines() != engine.log().lines() ||
      sink.engine.log().events() != engine.log().events())
    std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  if (bytes.starts_with('L')) return lines(bytes.substr(1)), 0;
  Sink sink;
  wire::InputReader reader(wire::rule_finder(shipped().get()));
  (void)reader.read(bytes, sink);
  if (to_json(sink.engine.report()).empty()) std::abort();
  return 0;
}
