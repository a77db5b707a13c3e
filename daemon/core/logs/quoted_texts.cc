#include "core/logs/quoted_texts.h"

#include <algorithm>
#include <tuple>

namespace culprit::logs {

void discount_quoted(const std::vector<QuotedLines>& quoted, std::vector<TemplateStats>& templates) {
  if (quoted.empty()) return;
  std::vector<QuotedLines> sorted = quoted;
  const auto key = [](const QuotedLines& lines) {
    return std::tuple(lines.source, lines.writer, lines.begin);
  };
  std::ranges::sort(sorted, {}, key);
  const auto is_quoted = [&](const LogPlace& place) {
    const auto behind =
        std::ranges::upper_bound(sorted, std::tuple(place.source, place.writer, place.line), {}, key);
    if (behind == sorted.begin()) return false;
    const QuotedLines& lines = *std::prev(behind);
    return lines.source == place.source && lines.writer == place.writer && place.line <= lines.end;
  };
  for (TemplateStats& t : templates) {
    if (t.places.empty() || t.places.size() != t.count || !std::ranges::all_of(t.places, is_quoted)) continue;
    t.shape.kind = ShapeKind::kPlain;
    t.shape.words = 0;
    t.shape.advice = true;
    t.known = Meaning::kNothing;
  }
}

}  // namespace culprit::logs
