// Any changes and cuts of a watchdog's lines, of those about meetings and of bars, through the library's
// rules and the hang state: an answer that names a class has a title, and a rank is not both waiting and
// waited for.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "core/detect/hang/judge.h"
#include "core/detect/hang/line_reader.h"
#include "core/detect/hang/meeting_lines.h"
#include "core/detect/hang/watchdog_lines.h"
#include "core/rules/ruleset.h"

namespace {

using namespace culprit::hang;

// The values that all rules read from a text, those of meetings apart.
struct Values {
  LineValues operation, meeting;
};

Values values_of(std::string_view text) {
  static const auto set = culprit::rules::Ruleset::shipped();
  static LineReader reader;
  Values out;
  for (const culprit::rules::Rule& rule : set->rules()) {
    if (rule.reads.empty()) continue;
    (is_of_meeting(rule.observes) ? out.meeting : out.operation).add(reader.read(rule, text));
  }
  return out;
}

void add(std::string_view text, HangInput& input) {
  if (names_preparation(text)) input.preparing = read_preparing(text, {});
  const Values values = values_of(text);
  if (const auto meeting = read_meeting_line(values.meeting)) {
    if (meeting->came && meeting->all && *meeting->came > *meeting->all) std::abort();
    return;
  }
  auto line = read_watchdog_line(values.operation);
  // As if a rule's hole had all of the line.
  LineValues whole;
  whole.add(ObservedHole::kJoined, text);
  whole.add(ObservedHole::kSeq, text);
  whole.add(ObservedHole::kOp, text);
  if (const auto named = read_watchdog_line(whole); named && !line) line = named;
  if (!line) return;
  if (line->kind == WatchdogKind::kBehind || line->kind == WatchdogKind::kMismatch) {
    const bool mismatch = line->kind == WatchdogKind::kMismatch;
    input.claims.push_back({mismatch ? culprit::HangAnswer::kMismatch : culprit::HangAnswer::kMissing,
                            line->group,
                            line->call,
                            line->ranks,
                            line->calls,
                            {}});
    return;
  }
  Observation observation;
  observation.rank = line->rank;
  observation.group_rank = line->group_rank;
  observation.group = line->group;
  observation.enqueued = line->enqueued;
  observation.completed = line->completed;
  observation.waited_ns = line->waited_ns;
  observation.evidence.text = text;
  if (line->call.seq >= 0 || !line->call.op.empty()) observation.call = line->call;
  input.observations.push_back(std::move(observation));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view text(reinterpret_cast<const char*>(data), size);
  HangInput input;
  input.world = 4;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    add(text.substr(0, end), input);
    text.remove_prefix(std::min(text.size(), end + 1));
  }
  const HangJudgement output = answer(input);
  if (output.hang.answer != culprit::HangAnswer::kUnknown && output.title.empty()) std::abort();
  for (const uint32_t rank : output.hang.waited_for)
    if (std::ranges::binary_search(output.hang.waiting, rank) &&
        output.hang.answer == culprit::HangAnswer::kMissing)
      std::abort();
  return 0;
}
