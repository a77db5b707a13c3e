#include "core/rules/block_scanner.h"

namespace culprit::rules {

logs::Meaning known_by(const Rule& rule) {
  // A window or a function may still reject the match.
  if (rule.severity < Severity::kError || rule.window || rule.when) return logs::Meaning::kNote;
  return rule.role == Role::kCascade ? logs::Meaning::kEcho : logs::Meaning::kFault;
}

BlockScanner::BlockScanner(const Ruleset& ruleset) : scanner_(ruleset.matcher()) {
  for (const Rule& rule : ruleset.rules()) known_.push_back(known_by(rule));
}

void BlockScanner::begin(std::string_view block) {
  scanner_.begin(block);
  next_ = scanner_.next();
}

void BlockScanner::on_line(const logs::ScannedText& line, logs::LogBatch& batch) {
  const TextSource source = line.whole    ? TextSource::kFatal
                            : line.event  ? TextSource::kEvent
                            : line.kernel ? TextSource::kKernel
                                          : TextSource::kLog;
  const bool known = line.whole && !batch.hits.empty() && batch.hits.back().line == line.index;
  if (known) return;
  const TimeNs time = batch.lines[line.index].time_ns;
  for (const RuleMatch& m : scanner_.match(line.begin, line.end, line.message, source, time)) {
    const auto first = static_cast<uint32_t>(batch.holes.size());
    batch.holes.insert(batch.holes.end(), m.holes.begin(), m.holes.end());
    const logs::Meaning meaning = m.mentioned ? logs::Meaning::kNothing : known_[m.rule];
    batch.hits.push_back({line.index, m.rule, first, static_cast<uint32_t>(m.holes.size()), meaning,
                          line.level, m.general, line.kernel, line.event, line.service});
  }
  next_ = scanner_.next();
}

}  // namespace culprit::rules
