#include "core/detect/flight/teams.h"

#include <algorithm>
#include <charconv>
#include <map>

#include "base/text.h"

namespace culprit::flight {
namespace {

// "PIPELINE_MODEL_PARALLEL_GROUP", "mesh_pp", "pp".
bool is_pipeline(std::string_view text) {
  std::string lower;
  for (const char c : text) lower += c >= 'A' && c <= 'Z' ? static_cast<char>(c | 0x20) : c;
  // Megatron groups that combine pipeline with other dimensions in the name only have collectives.
  if (lower.starts_with("pipeline") || lower == "pp") return true;
  return lower.ends_with("_pp") || lower.starts_with("pp_") || lower.find("_pp_") != lower.npos;
}

struct GroupCounts {
  int64_t last = -1, done = -1, pending = -1;  // of collectives
  bool any = false, p2p = false;
};

std::vector<GroupCounts> look_over(const FlightDump& dump) {
  std::vector<GroupCounts> out(dump.groups.size());
  for (const FlightOp& op : dump.ops) {
    if (op.group >= out.size()) continue;
    GroupCounts& seen = out[op.group];
    if (op.p2p) {
      seen.p2p = true;
      continue;
    }
    seen.any = true;
    seen.last = std::max(seen.last, op.seq);
    if (op.done)
      seen.done = std::max(seen.done, op.seq);
    else if (seen.pending < 0 || op.seq < seen.pending)
      seen.pending = op.seq;
  }
  return out;
}

// Entries give the state at the dump; counters give the state at the watchdog's last check.
void set_progress(GroupProgress& at, const GroupCounts& seen, const FlightGroup* counters) {
  at.enqueued = seen.last;
  if (counters) at.enqueued = std::max(at.enqueued, counters->enqueued.value_or(-1));
  at.completed = seen.done;
  if (counters) at.completed = std::max(at.completed, counters->completed.value_or(-1));
  if (seen.pending >= 0) at.completed = seen.pending - 1;
  at.completed = std::min(at.completed, at.enqueued);
}

}  // namespace

std::vector<FlightTeam> teams_of(std::span<const FlightDump> dumps) {
  std::map<std::pair<std::string, RankList>, FlightTeam> teams;
  std::vector<std::vector<GroupCounts>> seen;
  for (uint32_t d = 0; d < dumps.size(); ++d) {
    seen.push_back(look_over(dumps[d]));
    for (uint32_t g = 0; g < dumps[d].groups.size(); ++g) {
      const FlightGroup& group = dumps[d].groups[g];
      FlightTeam& team = teams[{group.name, group.ranks}];
      team.mixed = team.mixed || seen[d][g].p2p;
      team.progress.push_back({d, g, -1, -1});
      if (!team.name.empty()) continue;
      team.name = group.name;
      team.description = group.description;
      team.ranks = group.ranks.all();
    }
  }
  std::vector<FlightTeam> out;
  for (auto& [key, team] : teams) {
    team.pipeline = is_pipeline(team.description) || is_pipeline(team.name);
    for (GroupProgress& at : team.progress) {
      const FlightGroup& group = dumps[at.dump].groups[at.group];
      const GroupCounts& own = seen[at.dump][at.group];
      set_progress(at, own, team.mixed ? nullptr : &group);
      // If the counters are unusable, entries in other groups prove that the rank enqueued nothing in this
      // group.
      if (!own.any && !(group.enqueued && !team.mixed) && dumps[at.dump].ops.empty()) at.group = UINT32_MAX;
    }
    std::erase_if(team.progress, [](const GroupProgress& at) { return at.group == UINT32_MAX; });
    if (team.ranks.empty())
      for (const GroupProgress& at : team.progress) team.ranks.push_back(dumps[at.dump].rank);
    out.push_back(std::move(team));
  }
  std::sort(out.begin(), out.end(),
            [](const FlightTeam& a, const FlightTeam& b) { return natural_less(a.name, b.name); });
  return out;
}

std::string op_name(std::span<const FlightDump> dumps, const FlightTeam& team, int64_t seq) {
  for (const GroupProgress& at : team.progress)
    for (const FlightOp& op : dumps[at.dump].ops)
      if (op.group == at.group && op.seq == seq && !op.p2p) return dumps[at.dump].words[op.name];
  return "operation";
}

bool synchronises(std::string_view op) {
  while (op.starts_with('_')) op.remove_prefix(1);
  for (const std::string_view one_sided : {"broadcast", "reduce_oop", "gather", "scatter", "send", "recv"})
    if (op.starts_with(one_sided)) return false;
  return op != "reduce";
}

std::optional<uint32_t> source_of_recv(const FlightDump& dump, const FlightOp& op) {
  const std::string& name = dump.words[op.name];
  const size_t arrow = name.find("<-");
  if (!name.starts_with("recv ") || arrow == name.npos) return std::nullopt;
  uint32_t place = 0;
  const auto [stop, error] = std::from_chars(name.data() + arrow + 2, name.data() + name.size(), place);
  return error == std::errc() ? dump.groups[op.group].ranks.at(place) : std::nullopt;
}

}  // namespace culprit::flight
