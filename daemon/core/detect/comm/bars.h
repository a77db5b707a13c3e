// Thresholds for naming a rank, host or network part in a verdict (judge.cc) or as a suspect of single steps
// (odd_steps.cc), with their reasons.
#pragma once

#include <cstdint>

namespace culprit::comm {

// Limits for an excess: three standard deviations between ranks of this job, and a fiftieth of the step,
// below which no operator acts. Sound devices of one model differ in speed: by 8 % between the fastest and
// the slowest of most (Sinha et al., SC'22). So a twentieth of a rank's own work is no fault.
constexpr double kSigmas = 3, kWorth = 0.02, kDevicesDiffer = 0.05;
// An event stands out if it is this many times as large as the next one of any rank.
constexpr double kOutlies = 2;
// Events of one kind: within the same factor.
constexpr bool alike(double a, double b) { return a <= kOutlies * b && b <= kOutlies * a; }
// A pause must be far beyond nine of ten ranks. A delay of many ranks is uneven work, such as a checkpoint
// that all write.
constexpr double kPauseBeyond = 8;
// Shorter pauses may be full garbage collections, some hundred milliseconds in a training process. Megatron
// and TorchTitan therefore schedule garbage collection themselves. Collections occur in any process, and the
// first one in a trace looks like a fault.
constexpr double kCollectionMs = 300;
// Minimum number of slow places in a step that distinguishes a slow device from a pause.
constexpr uint32_t kGaps = 8;
// On a host that is slow as a whole, each rank has at least this share of the slowest rank's excess.
constexpr double kAlike = 0.4;
// Smallest cost, as a share of the step: for an irregular step, and for an accusation. kAccuseWorth is the
// variation between jobs from day to day. A cost below the scatter of the steps is no accusation either.
constexpr double kCostWorth = 0.01, kAccuseWorth = 0.045;
// Confidence in a single event: never a verdict (0.5).
constexpr double kPauseConfidence = 0.45;

}  // namespace culprit::comm
