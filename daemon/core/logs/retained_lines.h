// Lines that match rules, within a limit on memory. If all fit, all are retained. Otherwise the rules share
// the memory: a rule below its share retains all its lines. A rule above its share retains its earliest and
// latest lines, and the first and last lines of each writer and of each form, at least one of each. The lines
// between are dropped and counted.
//
// After trim() the result depends only on the added lines and their order within each source: not on batches,
// on the order of sources, or on earlier trims. Owned by RuleLines; one thread; pure.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "base/flat_map.h"
#include "core/logs/job_log.h"

namespace culprit::logs {

class RetainedLines {
 public:
  // `bytes_max`: limit on the lines that the rules share. First and last lines of writers and forms may
  // exceed it.
  explicit RetainedLines(size_t bytes_max) : bytes_max_(bytes_max), next_trim_(bytes_max + bytes_max / 2) {}

  // `form`: hash of the line's form. A line of JobLog::kNoRule is counted under rule 0.
  void add(RuleLine line, uint64_t form);
  // Drops lines beyond the limit. Call before lines(); repeatable.
  void trim();
  // See JobLog::renumber_rules.
  void renumber(const std::vector<uint32_t>& to);
  // Discards those of the most recent lines for which `dropped` is true; they do not count as dropped.
  void discard(const std::function<bool(const RuleLine&)>& dropped);
  // Marks the lines at a place as fatal to their process. Returns whether there are any.
  bool mark_death(const LogPlace& place);
  // Sets the code place at which the lines at a place were raised.
  void name_code(const LogPlace& place, const CodePlace& code);

  const std::vector<RuleLine>& lines() const { return lines_; }  // in order of arrival
  uint64_t added() const { return added_; }                      // lines ever added
  // The retained lines, without the first `added` ones ever added.
  std::span<const RuleLine> since(uint64_t added) const;
  uint64_t dropped() const { return dropped_; }
  // Without lines that state that their fault was handled.
  uint64_t dropped_of(uint32_t rule) const { return rule < rules_.size() ? rules_[rule].dropped : 0; }

 private:
  // Lines of one rule by one writer, or of one form, within one source.
  struct Part {
    uint64_t of = 0;  // hash of source and writer, or of source and form
    uint32_t rule = 0;
    uint64_t bytes = 0;  // bytes of all added lines
  };
  using Parts = std::vector<Part>;

  struct Place {
    uint32_t part = 0;    // kNone: beyond the limit of parts
    uint64_t before = 0;  // bytes of the part's earlier lines
  };

  // For each line of lines_.
  struct Slot {
    uint64_t number = 0;  // lines added before it
    uint32_t bytes = 0;   // size when added: the text may be cut later
    Place by_writer, by_form;
  };

  struct OfRule {
    uint64_t bytes = 0;    // of all added lines
    uint64_t dropped = 0;  // dropped lines, except handled ones
    uint32_t forms = 0;    // number of its parts by form
  };

  // Bytes that a rule above its share retains.
  struct Quota {
    uint64_t ends = 0;              // for its earliest lines, and again for its latest
    uint64_t writer = 0, form = 0;  // for the first lines of a part, and again for the last
  };

  enum class LineUse : uint8_t { kDropped, kCut, kWhole };

  static constexpr uint32_t kNone = 0xffffffff;

  static uint32_t rule_of(const RuleLine& line) { return line.rule == JobLog::kNoRule ? 0 : line.rule; }
  Place place_in(Parts& parts, uint64_t of, const RuleLine& line, bool room);
  std::vector<Quota> quotas() const;  // by rule; kAllFit: all its lines are retained
  void judge_ends(const std::vector<Quota>& quotas, std::vector<LineUse>& outcomes) const;
  static LineUse outcome_in(const Parts& parts, const Place& place, uint64_t quota, uint32_t bytes);
  void keep(const std::vector<LineUse>& outcomes);

  const size_t bytes_max_;
  std::vector<RuleLine> lines_;
  std::vector<Slot> slots_;
  std::vector<OfRule> rules_;
  Parts writers_, forms_;
  FlatMap<uint32_t> part_ids_{256};  // by hash of a part and its rule
  uint64_t added_ = 0, dropped_ = 0, trimmed_at_ = 0;
  uint64_t bytes_added_ = 0;  // all added lines of all rules
  uint64_t bytes_ = 0;        // retained lines
  uint64_t next_trim_;        // value of bytes_ that triggers the next trim()
};

}  // namespace culprit::logs
