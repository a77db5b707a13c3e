#include "ingest/live/rotated_name.h"

#include <algorithm>

namespace culprit::ingest {
namespace {

using Style = RotatedName::Style;

constexpr std::string_view kSeparators = "._-";
// Longer runs of digits are dates, times or process ids.
constexpr size_t kNumberDigits = 4;
constexpr size_t kMarkBytes = 40;  // a date and time to the nanosecond, and a process id

bool is_digit(char c) { return c >= '0' && c <= '9'; }

std::optional<Style> style_of(std::string_view mark, bool inner) {
  if (mark.empty() || mark.size() > kMarkBytes) return std::nullopt;
  if (!inner && (mark == "old" || mark == "bak" || mark == "prev")) return Style::kWord;
  if (!is_digit(mark[0])) return std::nullopt;
  const bool number = mark.size() <= kNumberDigits && std::all_of(mark.begin(), mark.end(), is_digit);
  if (number) return inner ? Style::kInnerNumber : Style::kNumber;
  size_t digits = 0;
  for (const char c : mark) {
    digits += is_digit(c);
    if (!is_digit(c) && std::string_view("-_.:TZ+").find(c) == std::string_view::npos) return std::nullopt;
  }
  // A date has at least six digits (2026-11).
  if (digits < 6) return std::nullopt;
  return inner ? Style::kInnerDate : Style::kDate;
}

}  // namespace

Compression compression_of_name(std::string_view name) {
  if (name.ends_with(".gz")) return Compression::kGzip;
  if (name.ends_with(".zst")) return Compression::kZstd;
  if (name.ends_with(".xz")) return Compression::kXz;
  return Compression::kNone;
}

std::vector<RotatedName> rotated_forms(std::string_view name) {
  std::vector<RotatedName> forms;
  if (compression_of_name(name) != Compression::kNone) {
    name = name.substr(0, name.rfind('.'));
    forms.push_back({std::string(name), Style::kWord, ""});
  }
  const size_t extension = name.rfind('.');
  for (size_t at = 1; at + 1 < name.size(); ++at) {
    if (kSeparators.find(name[at]) == kSeparators.npos) continue;
    const std::string_view rest = name.substr(at + 1);
    if (const auto style = style_of(rest, false))
      forms.push_back({std::string(name.substr(0, at)), *style, std::string(rest)});
    if (extension == name.npos || extension <= at + 1 || extension + 1 == name.size()) continue;
    const std::string_view mark = name.substr(at + 1, extension - at - 1);
    if (const auto style = style_of(mark, true)) {
      std::string base(name.substr(0, at));
      base += name.substr(extension);
      forms.push_back({std::move(base), *style, std::string(mark)});
    }
  }
  return forms;
}

bool older_mark(const RotatedName& a, const RotatedName& b) {
  const auto number = [](const RotatedName& form) {
    return form.style == Style::kNumber || form.style == Style::kInnerNumber;
  };
  if (number(a) && number(b)) return std::stoul(a.mark) > std::stoul(b.mark);
  return a.mark < b.mark;
}

}  // namespace culprit::ingest
