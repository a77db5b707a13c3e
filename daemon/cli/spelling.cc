#include "cli/spelling.h"

#include <algorithm>

#include "core/rules/keys.h"

namespace culprit::cli {

std::string did_you_mean(std::string_view word, const std::vector<std::string>& names,
                         std::string_view quote) {
  const auto bare = [](std::string_view text) {
    return text.substr(std::min(text.find_first_not_of('-'), text.size()));
  };
  std::vector<std::string_view> candidates;
  for (const std::string& name : names) candidates.push_back(bare(name));
  const std::string_view best = rules::nearest(bare(word), candidates);
  for (size_t i = 0; i < names.size(); ++i)
    if (!best.empty() && candidates[i] == best && names[i] != word)
      return "; did you mean " + std::string(quote) + names[i] + std::string(quote) + "?";
  return "";
}

}  // namespace culprit::cli
