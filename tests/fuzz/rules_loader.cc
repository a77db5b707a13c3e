// Any bytes as rule files: a load ends, reports each error with its lines, and the loaded rules can be
// scanned and run. NUL bytes of the input separate files.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "base/text.h"
#include "core/rules/ruleset.h"
#include "core/rules/run.h"

namespace {

using namespace culprit;
using namespace culprit::rules;

void require(bool condition) {
  if (!condition) std::abort();
}

void check(const RuleError& error, const std::vector<RuleText>& files) {
  require(!error.code.empty());
  require(error.width == 0 || (error.line > 0 && error.column > 0));
  const std::string text = format_error(error);
  require(text.ends_with('\n') && text.find('\x1b') == text.npos);
  for (const RuleText& file : files)
    if (file.file == error.file) return;
  require(false);
}

void use(const std::shared_ptr<Ruleset>& set, std::string_view text) {
  Scanner scanner(set->matcher());
  RuleRun run(set);
  const std::string line(text.substr(0, text.find('\n')));
  scanner.begin(line);
  for (const RuleMatch& m : scanner.match(0, line.size(), line, TextSource::kLog)) {
    RuleHit hit;
    hit.rule = m.rule;
    hit.text = line;
    for (std::string_view hole : m.holes) hit.holes.emplace_back(hole);
    for (int i = 0; i < 4; ++i) run.add(hit);
  }
  for (const RuleTrouble& t : run.troubles()) require(!t.what.empty() && set->find(t.rule).has_value());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view all(reinterpret_cast<const char*>(data), size);
  std::vector<RuleText> files;
  for (std::string_view part : split(all, '\0')) {
    if (files.size() == 4) break;
    files.push_back({"f" + std::to_string(files.size()), std::string(part)});
  }
  if (const auto loaded = Ruleset::load(files)) {
    for (size_t i = 1; i < (*loaded)->rules().size(); ++i)
      require((*loaded)->rules()[i - 1].id < (*loaded)->rules()[i].id);
    use(*loaded, all);
  } else {
    require(!loaded.error().empty());
    for (const RuleError& e : loaded.error()) check(e, files);
  }
  return 0;
}
