#include "core/detect/numerics/detector.h"

#include <fmt/format.h>
#include <algorithm>

#include "core/detect/numerics/judge.h"
#include "core/detect/numerics/tell.h"

namespace culprit::core::numerics {

struct Detector::Impl {
  explicit Impl(Layout layout) : judge(std::move(layout)) {}

  Window window;
  Judge judge;
  bool is_empty = true;
};

Detector::Detector(Layout layout) : impl_(std::make_unique<Impl>(std::move(layout))) {}
Detector::~Detector() = default;
Detector::Detector(Detector&&) noexcept = default;
Detector& Detector::operator=(Detector&&) noexcept = default;

void Detector::take(const MetricRow& row) {
  impl_->is_empty = false;
  Window::Ready ready = impl_->window.take(row);
  for (Frame& frame : ready.frames) {
    impl_->judge.step(frame, impl_->window);
    impl_->window.give_back(std::move(frame));
  }
  if (ready.restarted) impl_->judge.restart();
}

void Detector::take(const LoopEvent&) { impl_->is_empty = false; }
bool Detector::empty() const { return impl_->is_empty; }

Told Detector::told() {
  const Window& window = impl_->window;
  // What is not whole yet is judged as it is, by a copy: the rows that are missing may still come.
  Judge judge = impl_->judge;
  for (const Frame& frame : window.open()) judge.step(frame, window);
  Told told;
  for (const Case& known : judge.cases().all()) {
    told.faults.push_back(fault_of(known, window));
    told.findings.push_back(finding_of(known, window));
  }
  std::stable_sort(told.faults.begin(), told.faults.end(),
                   [](const NumericFault& a, const NumericFault& b) { return a.step < b.step; });
  told.problems = window.problems();
  if (judge.cases().refused() > 0) {
    told.problems.push_back(fmt::format("{} faults of numbers beyond the first {} are not told",
                                        judge.cases().refused(), limits::kNumericFaults));
  }
  return told;
}

}  // namespace culprit::core::numerics
