// What the library's rules read from a text, as from a line of a log.
#pragma once

#include <deque>
#include <optional>
#include <string_view>

#include "core/detect/hang/line_reader.h"
#include "core/detect/hang/meeting_lines.h"
#include "core/detect/hang/watchdog_lines.h"
#include "core/rules/matcher.h"
#include "core/rules/ruleset.h"

namespace culprit::hang {

class LibraryLines {
 public:
  std::optional<WatchdogLine> watchdog(std::string_view text) {
    read(text);
    return read_watchdog_line(operation_);
  }
  std::optional<MeetingLine> meeting(std::string_view text) {
    read(text);
    return read_meeting_line(meeting_);
  }

 private:
  void read(std::string_view text) {
    operation_ = meeting_ = {};
    lines_.clear();
    scanner_.begin(text);
    for (const rules::RuleMatch& m : scanner_.match(0, text.size(), text, rules::TextSource::kLog)) {
      const rules::Rule& rule = set_->rules()[m.rule];
      if (rule.observes == Observes::kNothing) continue;
      logs::RuleLine& line = lines_.emplace_back();
      line.text = text;
      line.holes.assign(m.holes.begin(), m.holes.end());
      (is_of_meeting(rule.observes) ? meeting_ : operation_).add(reader_.read(rule, line));
    }
  }

  std::shared_ptr<rules::Ruleset> set_ = rules::Ruleset::shipped();
  rules::Scanner scanner_{set_->matcher()};
  LineReader reader_;
  std::deque<logs::RuleLine> lines_;
  LineValues operation_, meeting_;
};

inline LibraryLines& library_lines() {
  static LibraryLines lines;
  return lines;
}

}  // namespace culprit::hang
