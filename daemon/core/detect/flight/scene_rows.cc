#include "core/detect/flight/scene_rows.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

namespace culprit::flight {
namespace {

constexpr size_t kRows = 200;

struct Awaited {
  const FlightTeam* team = nullptr;
  int64_t seq = -1;
  size_t accused = 0;  // of the ranks named, those that have not entered or finished it
  std::vector<uint32_t> waiting;
};

// The operation of a team in which most of its ranks wait.
Awaited awaited_in(const FlightScene& scene, const FlightTeam& team, const std::set<uint32_t>& named) {
  std::map<int64_t, std::vector<uint32_t>> by_seq;
  for (const Standing& at : team.standings)
    if (at.waits()) by_seq[at.awaited()].push_back(scene.dumps()[at.dump].rank);
  Awaited out;
  for (auto& [seq, ranks] : by_seq) {
    std::erase_if(ranks, [&](uint32_t rank) { return named.contains(rank); });
    if (ranks.size() <= out.waiting.size()) continue;
    out.team = &team;
    out.seq = seq;
    out.waiting = ranks;
  }
  std::set<uint32_t> entered;
  for (const Standing& at : team.standings)
    if (at.enqueued >= out.seq && !(at.waits() && at.awaited() == out.seq))
      entered.insert(scene.dumps()[at.dump].rank);
  for (const uint32_t rank : team.ranks) out.accused += named.contains(rank) && !entered.contains(rank);
  std::ranges::sort(out.waiting);
  return out;
}

}  // namespace

void add_scene(const FlightScene& scene, Hang& hang) {
  const std::set<uint32_t> named(hang.waited_for.begin(), hang.waited_for.end());
  Awaited best;
  for (const FlightTeam& team : scene.teams()) {
    Awaited one = awaited_in(scene, team, named);
    if (one.team &&
        std::tuple(one.accused, one.waiting.size()) > std::tuple(best.accused, best.waiting.size()))
      best = std::move(one);
  }
  if (best.team) {
    hang.op = op_name(scene.dumps(), *best.team, best.seq);
    hang.seq = best.seq;
    hang.group = best.team->description.empty() ? best.team->name : best.team->description;
    hang.waiting = std::move(best.waiting);
  }
  std::map<std::tuple<std::string, std::string, int64_t, ScenePlace>, std::vector<uint32_t>> rows;
  for (uint32_t d = 0; d < scene.dumps().size(); ++d) {
    const FlightDump& dump = scene.dumps()[d];
    if (scene.older(d)) continue;
    const FlightUnder& under = scene.under(d);
    const uint32_t last =
        under.first != UINT32_MAX ? under.first : static_cast<uint32_t>(dump.ops.size()) - 1;
    const bool known = last < dump.ops.size();
    const FlightGroup* group = known ? &dump.groups[dump.ops[last].group] : nullptr;
    const std::string title = !group                       ? std::string()
                              : group->description.empty() ? group->name
                                                           : group->description;
    const ScenePlace place = under.first != UINT32_MAX ? ScenePlace::kWaits
                             : under.none() && known   ? ScenePlace::kFinished
                                                       : ScenePlace::kUnknown;
    rows[{title, known ? dump.words[dump.ops[last].name] : "", known ? dump.ops[last].seq : -1, place}]
        .push_back(dump.rank);
  }
  for (auto& [key, ranks] : rows) {
    const auto& [group, op, seq, place] = key;
    std::ranges::sort(ranks);
    hang.scene.push_back({group, op, seq, place, {}, std::move(ranks)});
  }
  std::ranges::stable_sort(hang.scene, std::ranges::greater{},
                           [](const SceneRow& row) { return row.ranks.size(); });
  if (hang.scene.size() > kRows) hang.scene.resize(kRows);
}

}  // namespace culprit::flight
