#include "core/detect/numerics/events.h"

#include <fmt/format.h>
#include <charconv>

namespace culprit::numerics {

namespace {

std::string_view field(const LoopEvent& event, std::string_view name) {
  for (const EventField& f : event.fields) {
    if (f.name == name) return f.json;
  }
  return {};
}

std::optional<uint32_t> rank_in(std::string_view json) {
  uint32_t rank = 0;
  const auto [end, error] = std::from_chars(json.data(), json.data() + json.size(), rank);
  if (json.empty() || error != std::errc{} || end != json.data() + json.size()) return {};
  return rank;
}

std::optional<bool> bool_in(std::string_view json) {
  if (json == "true") return true;
  if (json == "false") return false;
  return {};
}

}  // namespace

std::optional<Result<Check>> check_of(const LoopEvent& event) {
  const bool is_replay = event.name == "replay";
  if (!is_replay && event.name != "audit") return {};
  const auto missing = [&](std::string_view what) {
    return Result<Check>(fail(ErrorCode::kInvalid, fmt::format("event {}: {} is missing", event.name, what)));
  };
  Check check;
  if (!event.step) return missing("step");
  if (!event.rank) return missing("rank");
  check.step = *event.step;
  check.rank = *event.rank;
  const auto equal = bool_in(field(event, "equal"));
  if (!equal) return missing("equal");
  check.equal = *equal;
  if (is_replay) {
    const std::string_view where = field(event, "where");
    if (where != "\"same\"" && where != "\"elsewhere\"") return missing("where (same or elsewhere)");
    check.undone = bool_in(field(event, "undone")).value_or(false);
    check.kind = where == "\"same\"" ? Check::Kind::kReplaySame : Check::Kind::kReplayElsewhere;
    return check;
  }
  const auto by = rank_in(field(event, "by"));
  if (!by || *by == check.rank) return missing("by (another rank)");
  check.by = *by;
  check.odd = rank_in(field(event, "odd"));
  if (check.odd && *check.odd != check.rank && *check.odd != check.by) return missing("odd (one of the two)");
  return check;
}

}  // namespace culprit::numerics
