#include "app/plugins/words.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <string_view>

#include "core/rules/keys.h"
#include "model/report.h"

namespace culprit::app {

std::vector<std::string> faults_of_words(const PluginFinding& finding) {
  const struct {
    const char* member;
    std::string_view word;
    std::span<const std::string_view> known;
  } members[] = {{"category", finding.category, words_of<Category>()},
                 {"component", finding.component, words_of<Component>()},
                 {"symptom", finding.symptom, words_of<Symptom>()},
                 {"action", finding.action, words_of<ActionKind>()},
                 {"restart", finding.restart, words_of<Restart>()}};
  std::vector<std::string> out;
  for (const auto& [member, word, known] : members) {
    if (word.empty() || std::ranges::find(known, word) != known.end()) continue;
    const std::string_view best = rules::nearest(word, known);
    out.push_back(fmt::format("finding {}: {} '{}' is not defined in plugin.h{}", finding.id, member, word,
                              best.empty() ? "" : fmt::format("; did you mean '{}'?", best)));
  }
  return out;
}

}  // namespace culprit::app
