#include "core/detect/hang/line_reader.h"

#include <algorithm>
#include <bitset>
#include <charconv>
#include <string>

#include "core/detect/hang/line_text.h"
#include "core/rules/matcher.h"

namespace culprit::hang {
namespace {

constexpr size_t kRanksOfLine = 1 << 16;  // a list of more ranks is damage
constexpr int64_t kRankEnd = 1 << 20;

}  // namespace

void LineValues::add(ObservedHole hole, std::string_view value) {
  std::string_view& own = values_[static_cast<size_t>(hole)];
  if (own.empty()) own = value;
  any_ = any_ || !value.empty();
}

void LineValues::add(const LineValues& other) {
  for (size_t i = 0; i < values_.size(); ++i)
    if (values_[i].empty()) values_[i] = other.values_[i];
  any_ = any_ || other.any_;
}

std::optional<int64_t> LineValues::number(ObservedHole hole) const {
  std::string_view value = text(hole);
  value.remove_prefix(std::min(value.find_first_not_of(' '), value.size()));
  int64_t out = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), out);
  return error == std::errc() ? std::optional(out) : std::nullopt;
}

std::optional<uint32_t> LineValues::rank(ObservedHole hole) const {
  const auto value = number(hole);
  if (!value || *value < 0 || *value >= kRankEnd) return std::nullopt;
  return static_cast<uint32_t>(*value);
}

std::vector<uint32_t> LineValues::ranks(ObservedHole hole) const {
  std::vector<uint32_t> out;
  std::string_view list = text(hole);
  const bool cut = list.ends_with("…");
  while (!list.empty() && out.size() < kRanksOfLine) {
    const size_t at = static_cast<size_t>(std::ranges::find_if(list, is_digit) - list.begin());
    list.remove_prefix(at);
    int64_t value = 0;
    const auto [end, error] = std::from_chars(list.data(), list.data() + list.size(), value);
    if (error == std::errc() && value < kRankEnd) out.push_back(static_cast<uint32_t>(value));
    list.remove_prefix(static_cast<size_t>(std::ranges::find_if_not(list, is_digit) - list.begin()));
  }
  if (cut && !out.empty()) out.pop_back();
  return out;
}

const std::vector<LineReader::Reading>& LineReader::readings_of(const rules::Rule& rule) {
  const auto [at, added] = readings_.try_emplace(&rule);
  if (!added) return at->second;
  for (const rules::Pattern& pattern : rule.reads) {
    Reading reading{std::make_unique<re2::RE2>(pattern.regex, rules::regex_options()), {}};
    if (!reading.regex->ok()) continue;
    for (const auto& [index, name] : reading.regex->CapturingGroupNames())
      if (const auto hole = rules::observed_hole(name)) reading.groups.emplace_back(*hole, index);
    at->second.push_back(std::move(reading));
  }
  return at->second;
}

LineValues LineReader::read(const rules::Rule& rule, std::string_view text) {
  LineValues out;
  std::bitset<rules::kObservedHoles> taken;
  const re2::StringPiece piece(text.data(), text.size());
  for (const Reading& reading : readings_of(rule)) {
    const auto count = static_cast<size_t>(reading.regex->NumberOfCapturingGroups()) + 1;
    groups_.assign(count, {});
    if (!reading.regex->Match(piece, 0, text.size(), re2::RE2::UNANCHORED, groups_.data(),
                              static_cast<int>(count)))
      continue;
    for (const auto& [hole, index] : reading.groups) {
      const re2::StringPiece& value = groups_[static_cast<size_t>(index)];
      if (value.data() == nullptr || taken.test(static_cast<size_t>(hole))) continue;
      taken.set(static_cast<size_t>(hole));
      out.add(hole, {value.data(), value.size()});
    }
  }
  return out;
}

LineValues LineReader::read(const rules::Rule& rule, const logs::RuleLine& line) {
  LineValues out;
  for (size_t i = 0; i < std::min(rule.holes.size(), line.holes.size()); ++i)
    if (const auto hole = rules::observed_hole(rule.holes[i])) out.add(*hole, line.holes[i]);
  out.add(read(rule, line.text));
  return out;
}

}  // namespace culprit::hang
