#include "core/detect/hang/sentence.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"

namespace culprit::hang {

std::string shown_ranks(std::span<const uint32_t> ranks) {
  constexpr size_t kShown = 8;
  std::string out = ranks.size() == 1 ? "rank " : "ranks ";
  for (size_t i = 0; i < std::min(ranks.size(), kShown); ++i)
    out += fmt::format("{}{}", i > 0 ? ", " : "", ranks[i]);
  if (ranks.size() > kShown) out += fmt::format(" and {} more", ranks.size() - kShown);
  return out;
}

std::string shown_span(TimeNs span_ns) {
  const int64_t seconds = std::max<int64_t>(0, (span_ns + kNsPerSecond / 2) / kNsPerSecond);
  if (seconds < 60) return fmt::format("{} s", seconds);
  if (seconds % 60 == 0 && seconds < 3600) return fmt::format("{} min", seconds / 60);
  if (seconds < 3600) return fmt::format("{}:{:02}", seconds / 60, seconds % 60);
  return fmt::format("{}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60);
}

std::string waiting_words(const Hang& hang) {
  if (hang.waiting.empty()) return {};
  std::string out = fmt::format("; {} {}", counted(hang.waiting.size(), "rank"),
                                hang.waiting.size() == 1 ? "waits" : "wait");
  if (hang.since_ns != kNoTime) out += " since " + format_time(hang.since_ns).substr(11, 8) + " UTC";
  return out;
}

std::string sentence_of(const Hang& hang, const NameOfRank& name) {
  if (hang.op.empty() && hang.seq < 0) return {};
  std::string op = hang.op.empty() ? "an operation" : hang.op;
  if (hang.seq >= 0) op += fmt::format(" #{}", hang.seq);
  if (!hang.group.empty()) op += " of group " + hang.group;
  std::string who = hang.waited_for.empty() ? std::string("a rank") : shown_ranks(hang.waited_for);
  if (hang.waited_for.size() == 1 && name) who = name(hang.waited_for[0]);
  std::string out;
  switch (hang.answer) {
    case HangAnswer::kMissing:
      out = who + " never joined " + op;
      break;
    case HangAnswer::kMismatch:
      out = who + " called something else than " + op;
      break;
    case HangAnswer::kUnfinished:
      out = hang.waited_for.empty() ? "all ranks entered " + op + ", and none finished it"
                                    : who + " did not finish " + op + ", which the peers finished";
      break;
    case HangAnswer::kLeft:
      out = who + " left before " + op;
      break;
    case HangAnswer::kNoSingle:
    case HangAnswer::kUnknown:
      out = "ranks wait in " + op;
      break;
  }
  if (out[0] >= 'a' && out[0] <= 'z') out[0] = static_cast<char>(out[0] - 0x20);
  return out + waiting_words(hang);
}

}  // namespace culprit::hang
