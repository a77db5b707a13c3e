// Decides which evidence frames go to the collector, and at which rate: all, those around findings, or
// none. With "findings", a frame is decided when it is twice `around` old, so that the time before a
// finding can still be sent. Skipped frames are reported as a gap, and stay on the agent within its own
// limit. Frames that declare streams are always sent, because later frames depend on them.
//
// A plain value of the loop's thread. Time is an argument: wall clock to select frames, monotonic to count
// bytes.
#pragma once

#include <cstdint>
#include <vector>

#include "base/time.h"
#include "forward/frame_source.h"

namespace culprit::forward {

enum class EvidenceMode : uint8_t { kAll, kFindings, kNone };

struct EvidenceOptions {
  EvidenceMode mode = EvidenceMode::kAll;
  uint64_t bytes_per_second = 0;  // 0: no limit
  TimeNs around_ns = 600 * kNsPerSecond;
};

class EvidencePolicy {
 public:
  explicit EvidencePolicy(EvidenceOptions options) : options_(options) {}
  void set(EvidenceOptions options) { options_ = options; }

  void finding(TimeNs at_ns) { around(at_ns, at_ns); }
  // Adds the span of a finding, extended at both ends by this host's `around`.
  void around(TimeNs from_ns, TimeNs to_ns);
  void want(TimeNs from_ns, TimeNs to_ns);
  Selection selection(TimeNs wall_ns) const;
  // Frames packed before `packed_ns` are sent or skipped for good: drops the spans for them.
  void decided(TimeNs packed_ns);
  // Whether frames wait until they are old enough for a decision.
  bool waits_for_time() const { return options_.mode == EvidenceMode::kFindings; }

  // Bytes that may be sent now. One larger frame is permitted; its excess is subtracted later.
  uint64_t allowance(TimeNs mono_ns);
  void sent(uint64_t bytes) { owed_ += static_cast<double>(bytes); }

 private:
  EvidenceOptions options_;
  std::vector<Selection::Span> spans_;  // sorted, disjoint
  double owed_ = 0;
  TimeNs paid_ns_ = kNoTime;
};

}  // namespace culprit::forward
