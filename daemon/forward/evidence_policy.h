// Which frames of the evidence go to the collector, and how fast: all; those around findings; none. With
// "findings" nothing is decided before it is twice `around` old, so that what came before a finding is still
// there when it comes; the rest is skipped, told as a gap, and stays on the agent within its own bound.
// Frames that declare streams always go: they are what later ones are understood by.
//
// A plain value of the loop's thread; time is an argument: wall clock where frames are chosen, monotonic
// where bytes are counted.
#pragma once

#include <cstdint>
#include <vector>

#include "base/time.h"
#include "forward/frame_source.h"

namespace culprit::forward {

enum class EvidenceMode : uint8_t { kAll, kFindings, kNone };

struct EvidenceOptions {
  EvidenceMode mode = EvidenceMode::kAll;
  uint64_t bytes_per_second = 0;  // 0: as fast as it goes
  TimeNs around_ns = 600 * kNsPerSecond;
};

class EvidencePolicy {
 public:
  explicit EvidencePolicy(EvidenceOptions options) : options_(options) {}
  void set(EvidenceOptions options) { options_ = options; }

  void finding(TimeNs at_ns) { around(at_ns, at_ns); }
  // Something happened within this time; how much before and behind it is wanted too is this host's to say.
  void around(TimeNs from_ns, TimeNs to_ns);
  void want(TimeNs from_ns, TimeNs to_ns);
  Selection selection(TimeNs wall_ns) const;
  // Frames packed before this are the collector's, or skipped for good: what was wanted of them is forgotten.
  void decided(TimeNs packed_ns);
  // Whether frames become old enough to be decided as time passes.
  bool waits_for_time() const { return options_.mode == EvidenceMode::kFindings; }

  // Bytes that may be sent now; a frame that is larger than what is left may still go, and is owed.
  uint64_t allowance(TimeNs mono_ns);
  void sent(uint64_t bytes) { owed_ += static_cast<double>(bytes); }

 private:
  EvidenceOptions options_;
  std::vector<Selection::Span> spans_;  // sorted, apart from one another
  double owed_ = 0;
  TimeNs paid_ns_ = kNoTime;
};

}  // namespace culprit::forward
