// An engine with counted memory: all that it allocates and retains. Calls that change the engine go through
// this class; results are copies, so that their memory is not counted.
//
// Owner: LiveJob. One thread: the engine's worker.
#pragma once

#include <memory>
#include <vector>

#include "base/heap_account.h"
#include "core/engine.h"

namespace culprit::app {

class MeteredEngine {
 public:
  // `make_options` is called within the engine's account, since the engine retains the options.
  template <class MakeOptions>
  explicit MeteredEngine(const MakeOptions& make_options) {
    const HeapScope counted(&account_);
    engine_ = std::make_unique<core::Engine>(make_options());
  }
  ~MeteredEngine();

  // See core::Engine.
  std::vector<core::Effect> step(const core::Input& input, TimeNs now);
  Report report(TimeNs now, const detect::Unheard& unheard);
  std::vector<comm::StepsWanted> drain_requests();
  bool settle_loop(TimeNs until);
  void set_hang(const detect::StallOptions& hang);
  void replace_rules(const std::shared_ptr<rules::Ruleset>& rules);
  void add_to(detect::Pool& pool) { engine_->add_to(pool); }
  void use_pool(const detect::Pool& pool);

  const core::Engine& read() const { return *engine_; }

  uint64_t bytes() const { return account_.bytes(); }
  // Temporary memory of the last report, in addition to the engine's.
  uint64_t report_bytes() const { return report_bytes_; }

 private:
  HeapAccount account_;
  uint64_t report_bytes_ = 0;
  std::unique_ptr<core::Engine> engine_;
};

}  // namespace culprit::app
