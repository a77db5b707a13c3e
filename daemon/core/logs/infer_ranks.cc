#include "core/logs/infer_ranks.h"

#include <map>
#include <optional>
#include <set>
#include <string>

namespace culprit::logs {

void infer_ranks(std::vector<WriterStats>& writers) {
  struct RankSightings {
    std::set<uint32_t> ranks;
    std::set<int64_t> differences;
  };
  std::map<std::optional<std::string>, RankSightings> by_host;
  for (const WriterStats& w : writers) {
    if (!w.rank || w.key.task || w.key.local == kNoRank) continue;
    RankSightings& seen = by_host[w.host];
    seen.ranks.insert(*w.rank);
    seen.differences.insert(int64_t{*w.rank} - w.key.local);
  }
  for (WriterStats& w : writers) {
    const auto seen = w.rank || w.key.local == kNoRank ? by_host.end() : by_host.find(w.host);
    if (seen == by_host.end() || seen->second.ranks.size() < 2 || seen->second.differences.size() > 1)
      continue;
    const int64_t rank = w.key.local + *seen->second.differences.begin();
    if (rank >= 0 && rank < kNoRank) w.rank = static_cast<uint32_t>(rank);
  }
}

}  // namespace culprit::logs
