#include "core/logs/retained_lines.h"

#include <algorithm>
#include <limits>
#include <tuple>
#include <utility>

#include "base/hash.h"
#include "base/text.h"

namespace culprit::logs {
namespace {

// Limits on parts. Writers: 65,536 ranks with one and a half rules each. Forms: in total and per rule, since
// a program with ever new messages must not fill the memory. Lines of further parts are retained only among
// their rule's earliest and latest lines.
constexpr size_t kWriterParts = 100'000;
constexpr size_t kFormParts = 32'768;
constexpr uint32_t kFormPartsOfRule = 1024;
// Number of recent lines that are searched for a line. Sources are read in parallel, so lines of other
// sources may have arrived after it.
constexpr size_t kLookBack = 1000;
// Longer lines retained only as first or last of their part are cut. The limits: bytes of the line, and of
// its text after the cut.
constexpr uint32_t kCutLine = 512;
constexpr size_t kCutText = 100;
constexpr uint64_t kAllFit = std::numeric_limits<uint64_t>::max();

// Memory of a line including its Slot. A short string is stored within its object.
uint32_t bytes_of(const RuleLine& line) {
  const auto heap = [](const std::string& text) { return text.size() > 15 ? text.size() + 16 : 0; };
  size_t size = sizeof(RuleLine) + 64 + heap(line.text) + heap(line.about);
  if (line.code) size += heap(line.code->file) + heap(line.code->function);
  for (const std::string& hole : line.holes) size += sizeof(hole) + heap(hole);
  return static_cast<uint32_t>(size);
}

// The largest level such that the needs, each capped at the level, fit into `room`.
uint64_t fill_level(std::vector<uint64_t> needs, uint64_t room) {
  std::sort(needs.begin(), needs.end());
  for (size_t i = 0; i < needs.size(); ++i) {
    const uint64_t level = room / (needs.size() - i);
    if (needs[i] > level) return level;
    room -= needs[i];
  }
  return kAllFit;
}

bool retained_at(const RuleLine& line, const LogPlace& place) {
  return line.place.source == place.source && line.place.line == place.line;
}

}  // namespace

void RetainedLines::add(RuleLine line, uint64_t form) {
  const uint32_t rule = rule_of(line);
  if (rule >= rules_.size()) rules_.resize(rule + 1);
  OfRule& of_rule = rules_[rule];
  Slot slot;
  slot.number = added_++;
  slot.bytes = bytes_of(line);
  const uint64_t source = line.place.source;
  slot.by_writer =
      place_in(writers_, mix64((source << 32) | line.place.writer, 0), line, writers_.size() < kWriterParts);
  const size_t forms = forms_.size();
  slot.by_form =
      place_in(forms_, mix64(form, source + 1), line, forms < kFormParts && of_rule.forms < kFormPartsOfRule);
  of_rule.forms += forms_.size() > forms;
  for (const auto& [parts, place] : {std::pair(&writers_, slot.by_writer), std::pair(&forms_, slot.by_form)})
    if (place.part != kNone) (*parts)[place.part].bytes += slot.bytes;
  of_rule.bytes += slot.bytes;
  bytes_added_ += slot.bytes;
  bytes_ += slot.bytes;
  lines_.push_back(std::move(line));
  slots_.push_back(slot);
  if (bytes_ > next_trim_) trim();
}

RetainedLines::Place RetainedLines::place_in(Parts& parts, uint64_t of, const RuleLine& line, bool room) {
  const uint64_t key = mix64(of, rule_of(line));
  if (const uint32_t* known = part_ids_.find(key)) return {*known, parts[*known].bytes};
  if (!room) return {kNone, 0};
  const auto id = static_cast<uint32_t>(parts.size());
  part_ids_.try_emplace(key, id);
  parts.push_back({of, rule_of(line), 0});
  return {id, 0};
}

void RetainedLines::trim() {
  if (bytes_added_ <= bytes_max_ || trimmed_at_ == added_) return;
  trimmed_at_ = added_;
  const std::vector<Quota> quotas = this->quotas();
  std::vector<LineUse> outcomes(lines_.size(), LineUse::kWhole);
  judge_ends(quotas, outcomes);
  for (size_t i = 0; i < lines_.size(); ++i) {
    if (outcomes[i] == LineUse::kWhole) continue;
    const Quota& quota = quotas[rule_of(lines_[i])];
    const Slot& slot = slots_[i];
    outcomes[i] = std::max(outcome_in(writers_, slot.by_writer, quota.writer, slot.bytes),
                           outcome_in(forms_, slot.by_form, quota.form, slot.bytes));
  }
  keep(outcomes);
  next_trim_ = std::max<uint64_t>(bytes_, bytes_max_) * 3 / 2;
}

// A rule above its share gets a quarter each for its earliest lines, latest lines, writers and forms.
std::vector<RetainedLines::Quota> RetainedLines::quotas() const {
  std::vector<uint64_t> needs(rules_.size());
  for (size_t rule = 0; rule < needs.size(); ++rule) needs[rule] = rules_[rule].bytes;
  const uint64_t share = fill_level(needs, bytes_max_);
  std::vector<Quota> out(needs.size(), {kAllFit, kAllFit, kAllFit});
  std::vector<std::vector<uint64_t>> of_writers(needs.size()), of_forms(needs.size());
  for (const Part& part : writers_)
    if (part.rule != kNone) of_writers[part.rule].push_back(part.bytes);
  for (const Part& part : forms_)
    if (part.rule != kNone) of_forms[part.rule].push_back(part.bytes);
  for (size_t rule = 0; rule < needs.size(); ++rule)
    if (needs[rule] > share)
      out[rule] = {share / 4, fill_level(std::move(of_writers[rule]), share / 4) / 2,
                   fill_level(std::move(of_forms[rule]), share / 4) / 2};
  return out;
}

// Marks the lines retained as earliest or latest of their rule, or because all lines of the rule fit. Only
// the bytes of lines nearer the end count against the quota, so dropping a line never changes the result for
// another.
void RetainedLines::judge_ends(const std::vector<Quota>& quotas, std::vector<LineUse>& outcomes) const {
  std::vector<uint32_t> order;
  for (uint32_t i = 0; i < lines_.size(); ++i) {
    if (quotas[rule_of(lines_[i])].ends == kAllFit) continue;
    outcomes[i] = LineUse::kDropped;
    order.push_back(i);
  }
  const auto key = [&](uint32_t i) {
    const LogPlace& place = lines_[i].place;
    return std::tuple(rule_of(lines_[i]), place.time_ns, place.source, place.line, i);
  };
  std::ranges::sort(order, {}, key);
  const auto walk = [&](auto begin, auto end) {
    uint32_t rule = kNone;
    uint64_t used = 0;
    for (; begin != end; ++begin) {
      if (const uint32_t of = rule_of(lines_[*begin]); of != rule) rule = of, used = 0;
      if (used >= quotas[rule].ends) continue;
      used += slots_[*begin].bytes;
      outcomes[*begin] = LineUse::kWhole;
    }
  };
  walk(order.begin(), order.end());
  walk(order.rbegin(), order.rend());
}

RetainedLines::LineUse RetainedLines::outcome_in(const Parts& parts, const Place& place, uint64_t quota,
                                                 uint32_t bytes) {
  if (place.part == kNone) return LineUse::kDropped;
  const uint64_t behind = parts[place.part].bytes - place.before - bytes;
  const bool stays = std::min(place.before, behind) < std::max<uint64_t>(quota, 1);
  if (!stays) return LineUse::kDropped;
  return bytes <= std::max<uint64_t>(quota, kCutLine) ? LineUse::kWhole : LineUse::kCut;
}

void RetainedLines::keep(const std::vector<LineUse>& outcomes) {
  size_t retained = 0;
  bytes_ = 0;
  for (size_t i = 0; i < outcomes.size(); ++i) {
    RuleLine& line = lines_[i];
    if (outcomes[i] == LineUse::kDropped) {
      ++dropped_;
      rules_[rule_of(line)].dropped += !line.handled;
      continue;
    }
    if (outcomes[i] == LineUse::kCut) {
      line.text = shorten(line.text, kCutText);
      line.holes = {};
    }
    bytes_ += bytes_of(line);
    if (retained < i) lines_[retained] = std::move(line), slots_[retained] = slots_[i];
    ++retained;
  }
  lines_.resize(retained);
  slots_.resize(retained);
}

void RetainedLines::renumber(const std::vector<uint32_t>& to) {
  const auto changed = [&](uint32_t rule) { return rule < to.size() ? to[rule] : JobLog::kNoRule; };
  std::vector<OfRule> rules;
  for (uint32_t rule = 0; rule < rules_.size(); ++rule) {
    const uint32_t now = changed(rule);
    if (now == JobLog::kNoRule) continue;
    if (now >= rules.size()) rules.resize(now + 1);
    rules[now] = rules_[rule];
  }
  rules_ = std::move(rules);
  bytes_added_ = 0;
  for (const OfRule& rule : rules_) bytes_added_ += rule.bytes;
  part_ids_ = FlatMap<uint32_t>(256);
  for (Parts* parts : {&writers_, &forms_})
    for (uint32_t id = 0; id < parts->size(); ++id) {
      Part& part = (*parts)[id];
      part.rule = part.rule == kNone ? kNone : changed(part.rule);
      if (part.rule != kNone) part_ids_.try_emplace(mix64(part.of, part.rule), id);
    }
  static_assert(kNone == JobLog::kNoRule);
  std::vector<bool> removed(lines_.size());
  for (size_t i = 0; i < lines_.size(); ++i) {
    lines_[i].rule = changed(lines_[i].rule);
    removed[i] = lines_[i].rule == JobLog::kNoRule;
  }
  size_t i = 0;
  std::erase_if(slots_, [&](const Slot&) { return removed[i++]; });
  std::erase_if(lines_, [](const RuleLine& line) { return line.rule == JobLog::kNoRule; });
}

void RetainedLines::discard(const std::function<bool(const RuleLine&)>& removed) {
  const size_t first = lines_.size() - std::min(lines_.size(), kLookBack);
  size_t retained = first;
  for (size_t i = first; i < lines_.size(); ++i) {
    if (removed(lines_[i])) continue;
    if (retained < i) lines_[retained] = std::move(lines_[i]), slots_[retained] = slots_[i];
    ++retained;
  }
  for (size_t i = retained; i < slots_.size(); ++i) bytes_ -= std::min<uint64_t>(bytes_, slots_[i].bytes);
  lines_.resize(retained);
  slots_.resize(retained);
}

bool RetainedLines::mark_death(const LogPlace& place) {
  bool marked = false;
  for (size_t i = lines_.size(), n = 0; i-- > 0 && n < kLookBack; ++n)
    if (retained_at(lines_[i], place)) marked = lines_[i].death = true;
  return marked;
}

void RetainedLines::name_code(const LogPlace& place, const CodePlace& code) {
  for (size_t i = lines_.size(), n = 0; i-- > 0 && n < kLookBack; ++n)
    if (retained_at(lines_[i], place)) lines_[i].code = code;
}

std::span<const RuleLine> RetainedLines::since(uint64_t added) const {
  const auto first = std::ranges::lower_bound(slots_, added, {}, &Slot::number);
  return std::span(lines_).subspan(static_cast<size_t>(first - slots_.begin()));
}

}  // namespace culprit::logs
