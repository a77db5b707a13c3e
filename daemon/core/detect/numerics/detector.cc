#include "core/detect/numerics/detector.h"

namespace culprit::core::numerics {

struct Detector::Impl {
  Layout layout;
  uint64_t rows = 0;
};

Detector::Detector(Layout layout) : impl_(std::make_unique<Impl>(Impl{std::move(layout)})) {}
Detector::~Detector() = default;
Detector::Detector(Detector&&) noexcept = default;
Detector& Detector::operator=(Detector&&) noexcept = default;

void Detector::take(const MetricRow&) { ++impl_->rows; }
void Detector::take(const LoopEvent&) { ++impl_->rows; }
bool Detector::empty() const { return impl_->rows == 0; }
Told Detector::told() { return {}; }

}  // namespace culprit::core::numerics
