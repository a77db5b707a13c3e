// Lines of one writer over time, in bins that double in width as the job grows. A job has thousands of
// writers, and most write little: a count takes one byte until it needs more. Owned by JobWriters; one
// thread; pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/time.h"

namespace culprit::logs {

// A list of counts that ends at its last non-zero count.
class BinCounts {
 public:
  size_t size() const { return bytes_.size() / width_; }
  uint32_t operator[](size_t bin) const {
    uint32_t out = 0;
    for (size_t i = 0; i < width_; ++i) out |= uint32_t{bytes_[bin * width_ + i]} << (8 * i);
    return out;
  }
  void add(size_t bin, uint32_t n);

 private:
  void put(size_t bin, uint32_t count);

  std::vector<uint8_t> bytes_;
  uint8_t width_ = 1;  // bytes of a count
};

struct ActivityBins {
  size_t bins = 256;  // a power of two
  TimeNs origin_ns = kNoTime, width_ns = 0;
  BinCounts counts;  // at most `bins` entries; missing ones are 0
  void add(TimeNs time, uint32_t n);
  double between(TimeNs from, TimeNs to) const;  // lines, if evenly distributed within bins
};

}  // namespace culprit::logs
