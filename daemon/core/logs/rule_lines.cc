#include "core/logs/rule_lines.h"

#include <algorithm>
#include <utility>

#include "base/text.h"

namespace culprit::logs {
namespace {

// Limits on kept lines: of one rule and writer, of one rule, of all, and on the bytes of their texts. A storm
// must neither fill the memory nor displace other rules. The largest window of a rule fits.
constexpr uint32_t kOfWriter = 1000;
constexpr uint32_t kOfRule = 5000;
constexpr size_t kLines = 50'000;
constexpr size_t kBytes = 16 << 20;
// Lines per rule and writer that are kept beyond the limits of a rule and of texts. So a storm on some hosts
// hides neither other hosts nor other rules.
constexpr uint32_t kFirstLines = 2;
constexpr size_t kFirstLinesTotal = 200'000;
constexpr size_t kFirstText = 100;  // bytes of such a line
constexpr size_t kUncaught = 4096;  // exceptions without a rule: the first ones are enough

uint64_t key_of(const RuleLine& line) { return (uint64_t{line.place.writer} << 32) | line.rule; }

size_t bytes_of(const RuleLine& line) {
  size_t size = line.text.size();
  for (const std::string& hole : line.holes) size += hole.size();
  return size;
}

bool is_at(const RuleLine& line, const LogPlace& place) {
  return line.place.source == place.source && line.place.line == place.line;
}

}  // namespace

bool RuleLines::add(RuleLine line) {
  if (line.rule == JobLog::kNoRule) {
    if (uncaught_.size() >= kUncaught) return false;
    uncaught_.push_back(std::move(line));
    return true;
  }
  const uint32_t of_rule = line.rule < of_rule_.size() ? of_rule_[line.rule] : 0;
  const uint32_t* seen = of_writer_.find(key_of(line));
  const uint32_t of_writer = seen ? *seen : 0;
  const size_t size = bytes_of(line);
  const bool room =
      lines_.size() < kLines && bytes_ + size <= kBytes && of_rule < kOfRule && of_writer < kOfWriter;
  const bool early = of_writer < kFirstLines && lines_.size() < kFirstLinesTotal;
  if (!room && !early) return false;
  if (!room && bytes_ + size > kBytes) {
    line.text = shorten(line.text, kFirstText);
    line.holes.clear();
  }
  count(line);
  lines_.push_back(std::move(line));
  return true;
}

void RuleLines::renumber(const std::vector<uint32_t>& to) {
  logs::renumber(lines_, to);
  of_rule_.clear();
  of_writer_ = FlatMap<uint32_t>(256);
  bytes_ = 0;
  for (const RuleLine& line : lines_) count(line);
}

bool RuleLines::mark_death(const LogPlace& place) {
  bool marked = false;
  for (size_t i = lines_.size(), n = 0; i-- > 0 && n < kOfWriter; ++n)
    if (is_at(lines_[i], place)) marked = lines_[i].death = true;
  return marked || (!uncaught_.empty() && is_at(uncaught_.back(), place));
}

void RuleLines::drop(const LogPlace& place) { drop_quoted(place, place.line); }

void RuleLines::drop_quoted(const LogPlace& end, uint64_t begin) {
  const auto quoted = [&](const RuleLine& line) {
    return line.place.source == end.source && line.place.writer == end.writer && line.place.line >= begin &&
           line.place.line <= end.line;
  };
  // The sources of a job are read in parallel, so the lines may have lines of other sources between: searches
  // the last ones of all.
  const auto last = [](std::vector<RuleLine>& lines) {
    return lines.end() - static_cast<ptrdiff_t>(std::min<size_t>(lines.size(), kOfWriter));
  };
  const auto kept =
      std::stable_partition(last(lines_), lines_.end(), [&](const RuleLine& line) { return !quoted(line); });
  for (auto line = kept; line != lines_.end(); ++line) {
    --*of_writer_.try_emplace(key_of(*line), 1).first;
    if (line->rule < of_rule_.size()) --of_rule_[line->rule];
    bytes_ -= bytes_of(*line);
  }
  lines_.erase(kept, lines_.end());
  uncaught_.erase(std::remove_if(last(uncaught_), uncaught_.end(), quoted), uncaught_.end());
}

void RuleLines::count(const RuleLine& line) {
  if (line.rule >= of_rule_.size()) of_rule_.resize(line.rule + 1);
  ++*of_writer_.try_emplace(key_of(line), 0).first;
  ++of_rule_[line.rule];
  bytes_ += bytes_of(line);
}

void renumber(std::vector<RuleLine>& lines, const std::vector<uint32_t>& to) {
  for (RuleLine& line : lines) line.rule = line.rule < to.size() ? to[line.rule] : JobLog::kNoRule;
  std::erase_if(lines, [](const RuleLine& line) { return line.rule == JobLog::kNoRule; });
}

}  // namespace culprit::logs
