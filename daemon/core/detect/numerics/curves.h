// Time series of well-known metrics and the outlier score of each rank, downsampled for display. Owned by one
// detector; one thread.
#pragma once

#include <vector>

#include "core/detect/numerics/window.h"
#include "model/report.h"

namespace culprit::numerics {

class Curves {
 public:
  // `odd`: outlier score by slot, 0..1.
  void add(const Frame& frame, const Window& window, const std::vector<float>& odd);
  NumericCurves result(const Window& window) const;

 private:
  struct Point {
    int64_t step = 0;
    std::vector<float> median, worst;  // by index into columns_
    std::vector<bool> not_finite;
    std::vector<uint8_t> odd;  // by slot, in 254ths; 255: not seen
  };
  std::vector<uint32_t> columns_;
  std::vector<Point> points_;
  uint64_t every_ = 1, taken_ = 0;  // one step of every_ is kept
  std::vector<double> room_;
};

}  // namespace culprit::numerics
