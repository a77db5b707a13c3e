#include "core/detect/numerics/detector.h"

#include <fmt/format.h>
#include <algorithm>

#include "core/detect/numerics/align.h"
#include "core/detect/numerics/curves.h"
#include "core/detect/numerics/findings.h"
#include "core/detect/numerics/judge.h"

namespace culprit::numerics {

struct Detector::Impl {
  explicit Impl(Layout layout) : judge(std::move(layout)) {}

  Window window;
  Judge judge;
  Curves curves;
  Alignment alignment;
  uint64_t unread_checks = 0;
  std::string first_unread;
  bool is_empty = true;
};

Detector::Detector(Layout layout) : impl_(std::make_unique<Impl>(std::move(layout))) {}
Detector::~Detector() = default;
Detector::Detector(Detector&&) noexcept = default;
Detector& Detector::operator=(Detector&&) noexcept = default;

void Detector::add(const MetricRow& row) {
  impl_->is_empty = false;
  Window::Ready ready = impl_->window.add(row);
  for (Frame& frame : ready.frames) {
    impl_->judge.step(frame, impl_->window);
    impl_->curves.add(frame, impl_->window, impl_->judge.odd());
    impl_->window.recycle(std::move(frame));
  }
  if (ready.restarted) impl_->judge.restart();
}

void Detector::add(const LoopEvent& event) {
  if (event.name == "restart" || event.name == "resume") impl_->judge.announce_restart();
  if (impl_->alignment.add(event)) return void(impl_->is_empty = false);
  const auto check = check_of(event);
  if (!check) return;
  impl_->is_empty = false;
  if (check->has_value()) {
    impl_->judge.add_check(**check, event.time_ns, impl_->window);
  } else if (impl_->unread_checks++ == 0) {
    impl_->first_unread = check->error().text;
  }
}
bool Detector::empty() const { return impl_->is_empty; }

NumericFindings Detector::findings() {
  const Window& window = impl_->window;
  // A copy judges incomplete steps as they are: missing rows may still arrive.
  Judge judge = impl_->judge;
  Curves curves = impl_->curves;
  for (const Frame& frame : window.open()) {
    judge.step(frame, window);
    curves.add(frame, window, judge.odd());
  }
  NumericFindings out;
  for (const Case& known : judge.cases().all()) {
    out.faults.push_back(fault_of(known, window));
    out.findings.push_back(finding_of(known, window));
  }
  std::stable_sort(out.faults.begin(), out.faults.end(),
                   [](const NumericFault& a, const NumericFault& b) { return a.step < b.step; });
  for (Finding& finding : impl_->alignment.findings()) out.findings.push_back(std::move(finding));
  out.curves = curves.result(window);
  out.problems = window.problems();
  for (std::string& problem : impl_->alignment.problems()) out.problems.push_back(std::move(problem));
  out.open = impl_->alignment.open();
  if (impl_->unread_checks > 0) {
    out.problems.push_back(fmt::format("{} events of checks could not be used; the first: {}",
                                       impl_->unread_checks, impl_->first_unread));
  }
  if (judge.cases().refused() > 0) {
    out.problems.push_back(fmt::format("{} numeric faults beyond the first {} are not listed",
                                       judge.cases().refused(), limits::kNumericFaults));
  }
  return out;
}

}  // namespace culprit::numerics
