#include "core/logs/quoted_texts.h"

#include <algorithm>

namespace culprit::logs {

void discount_quoted(const std::vector<QuotedLines>& quoted, std::vector<TemplateStats>& templates) {
  const auto is_quoted = [&](const LogPlace& place) {
    return std::ranges::any_of(quoted, [&](const QuotedLines& lines) {
      return lines.source == place.source && lines.writer == place.writer && lines.begin <= place.line &&
             place.line <= lines.end;
    });
  };
  if (quoted.empty()) return;
  for (TemplateStats& t : templates) {
    if (t.places.empty() || t.places.size() != t.count || !std::ranges::all_of(t.places, is_quoted)) continue;
    t.shape.kind = ShapeKind::kPlain;
    t.shape.words = 0;
    t.shape.advice = true;
    t.known = Known::kNothing;
  }
}

}  // namespace culprit::logs
