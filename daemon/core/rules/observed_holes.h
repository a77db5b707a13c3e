// The holes by which rules with `observes` hand values of a line to the judge of a hang. The loader checks
// the names in `reads` against them, `culprit rules keys` prints them, and core/detect/hang/line_reader reads
// lines by them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace culprit::rules {

enum class ObservedHole : uint8_t {
  kOwnRank,
  kGroupRank,
  kGroup,
  kGroupName,
  kGroupLocal,
  kWorld,
  kOp,
  kSeq,
  kIn,
  kOut,
  kSizes,
  kTypes,
  kSite,
  kLibrarySite,
  kFunction,
  kWaitedMs,
  kWaitedS,
  kTimedOut,
  kEnqueued,
  kCompleted,
  kStore,
  kStuck,
  kJoined,
  kAbsent,
  kAsks,
  kCaller,
  kCaller2,
  kOp2,
  kSeq2,
  kSizes2,
  kTypes2,
  kClosed,
  kClosedBy,
  kAtExit,
  kMeeting,
  kBarrier,
  kRendezvous,
  kGroupStart,
  kMeets,
  kStarts,
  kLost,
  kTasks,
  kCame,
  kAll,
  kAbsentTasks,
  kStarted,
  kTensorWait,
  kTensorsAbsent,
  kTensorsJoined,
  kTensors,
  kLacks,
};
constexpr size_t kObservedHoles = static_cast<size_t>(ObservedHole::kLacks) + 1;

enum class HoleType : uint8_t { kNumber, kText, kList, kMark };

struct HoleKey {
  ObservedHole hole;
  std::string_view name;
  HoleType type;
  std::string_view doc;
};

std::span<const HoleKey> observed_holes();  // in the order of ObservedHole
std::optional<ObservedHole> observed_hole(std::string_view name);
std::string_view type_name(HoleType type);

}  // namespace culprit::rules
