#include "app/jobs/metered_engine.h"

#include <algorithm>
#include <optional>

namespace culprit::app {

MeteredEngine::~MeteredEngine() {
  const HeapScope counted(&account_);
  engine_.reset();
}

std::vector<core::Effect> MeteredEngine::step(const core::Input& input, TimeNs now) {
  std::vector<core::Effect> out;
  const HeapScope counted(&account_);
  core::Input own = input;  // copied, since the engine moves from its input
  const std::vector<core::Effect> effects = engine_->step({&own, 1}, now);
  if (effects.empty()) return out;
  const HeapScope outside(nullptr);
  out = effects;
  return out;
}

Report MeteredEngine::report(TimeNs now, const detect::Unheard& unheard) {
  Report out;
  const HeapScope counted(&account_);
  account_.drain_peak();
  const Report made = engine_->report(now, unheard);
  report_bytes_ = account_.drain_peak();
  report_bytes_ -= std::min(report_bytes_, account_.bytes());
  const HeapScope outside(nullptr);
  out = made;
  return out;
}

std::vector<comm::StepsWanted> MeteredEngine::drain_requests() {
  std::vector<comm::StepsWanted> out;
  const HeapScope counted(&account_);
  const std::vector<comm::StepsWanted> wanted = engine_->drain_requests();
  if (wanted.empty()) return out;
  const HeapScope outside(nullptr);
  out = wanted;
  return out;
}

bool MeteredEngine::settle_loop(TimeNs until) {
  const HeapScope counted(&account_);
  return engine_->settle_loop(until);
}

void MeteredEngine::set_hang(const detect::StallOptions& hang) { engine_->set_hang(hang); }

void MeteredEngine::use_pool(const detect::Pool& pool) {
  const HeapScope counted(&account_);
  engine_->use_pool(pool);
}

void MeteredEngine::replace_rules(const std::shared_ptr<rules::Ruleset>& rules) {
  const HeapScope counted(&account_);
  engine_->replace_rules(rules);
}

}  // namespace culprit::app
