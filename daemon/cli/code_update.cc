#include "cli/code_update.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "base/text.h"
#include "cli/verbs.h"

namespace culprit::cli {

app::CodeFile CodeUpdate::read() {
  if (path_.empty()) return {};
  auto file = app::read_code(path_);
  if (!file) say(fmt::format("--code: {}; the revision stays as it is", file.error().text));
  return file ? std::move(*file) : app::CodeFile();
}

void CodeUpdate::say(const std::string& line) {
  if (line != std::exchange(told_, line)) report_error(line);
}

std::string CodeUpdate::next_revision(const std::vector<app::Attempt>& attempts) {
  if (attempts.empty()) return read().revision;
  const app::Attempt& last = attempts.back();
  return last.decision.revision.empty() ? last.revision : last.decision.revision;
}

recover::CodeChoice CodeUpdate::choice(const std::vector<app::Attempt>& attempts) {
  return path_.empty() ? recover::CodeChoice() : app::code_choice(attempts, read());
}

bool CodeUpdate::is_due(const std::vector<app::Attempt>& attempts, const std::function<TimeNs()>& saved_ns) {
  if (within_ <= 0 || attempts.empty()) return false;
  const app::CodeFile file = read();
  const TimeNs due = app::pending_due(attempts, file, within_);
  if (due == kNoTime || wall_now() < due) return false;
  if (!saved_ns) {
    say(fmt::format("revision {} has been pending for {}: without --checkpoints it waits for a failure",
                    file.pending, format_duration(within_)));
    return false;
  }
  if (saved_ns() <= std::max(due, attempts.back().begin_ns)) return false;
  ended_ = attempts.back().number;
  report_error(fmt::format("attempt {} ends after its checkpoint: revision {} has been pending for {}",
                           ended_, file.pending, format_duration(within_)));
  return true;
}

}  // namespace culprit::cli
