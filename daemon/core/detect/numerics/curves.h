// The course of well-known metrics and the oddness of ranks over steps, thinned to what a page shows. Owned
// by one detector; one thread.
#pragma once

#include <vector>

#include "core/detect/numerics/window.h"
#include "model/report.h"

namespace culprit::core::numerics {

class Curves {
 public:
  // `odd` by slot, 0..1.
  void take(const Frame& frame, const Window& window, const std::vector<float>& odd);
  NumericCurves told(const Window& window) const;

 private:
  struct Point {
    int64_t step = 0;
    std::vector<float> median, worst;  // by column of columns_
    std::vector<bool> not_finite;
    std::vector<uint8_t> odd;  // by slot, in 254ths; 255: not seen
  };
  std::vector<uint32_t> columns_;
  std::vector<Point> points_;
  uint64_t every_ = 1, taken_ = 0;  // one step in so many is kept
  std::vector<double> room_;
};

}  // namespace culprit::core::numerics
