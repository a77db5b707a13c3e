// Any changes and cuts of an answer of NCCL's RAS, through the reader and what follows answers: each member
// that a state names has a process of its table, and no list exceeds its limit.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "base/limits.h"
#include "core/detect/ras/follow.h"
#include "core/detect/ras/judge.h"
#include "ingest/ras_reader.h"

namespace {

void check(bool holds) {
  if (!holds) std::abort();
}

void check_member(const culprit::RasState& state, const culprit::RasMember& member) {
  check(member.process == culprit::kRasUnknown || member.process < state.processes.size());
}

void check_groups(const culprit::RasState& state, const std::vector<culprit::RasGroup>& groups) {
  for (const culprit::RasGroup& group : groups) {
    check(group.listed.size() <= culprit::limits::kRasListed);
    for (const culprit::RasMember& member : group.listed) check_member(state, member);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  culprit::ras::Follower follower;
  culprit::TimeNs at = 0;
  // The whole, the whole again, and without its last third.
  for (const size_t length : {size, size, size - size / 3}) {
    const auto answer = culprit::ingest::parse_ras(text.substr(0, length));
    if (!answer) continue;
    const culprit::RasState state = follower.add(*answer, at += 10 * culprit::kNsPerSecond);
    check(state.comms.size() <= culprit::limits::kRasCommsMax);
    for (const culprit::RasCommState& comm : state.comms) {
      for (const culprit::RasMissing& missing : comm.missing) check_member(state, missing.member);
      for (const culprit::RasSpread& spread : comm.spreads) check_groups(state, spread.groups);
      check_groups(state, comm.phases);
    }
    for (const culprit::Finding& finding : culprit::ras::judge(state, {}).findings)
      check(finding.confidence >= 0 && finding.confidence <= 1 && !finding.title.empty());
  }
  return 0;
}
