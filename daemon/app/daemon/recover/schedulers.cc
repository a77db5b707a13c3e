#include "app/daemon/recover/schedulers.h"

#include "base/clock.h"
#include "respond/slurm/backend.h"
#include "respond/slurm/look.h"

namespace culprit::app {
namespace {

// A view has no steps to wait for; its commands have time limits of their own.
class LookPace final : public respond::Pace {
 public:
  TimeNs now() const override { return steady_now(); }
  TimeNs wall() const override { return wall_now(); }
  bool pause(TimeNs) override { return false; }
  const std::atomic<bool>& stop() const override { return never_; }

 private:
  std::atomic<bool> never_{false};
};

}  // namespace

SchedulerParts scheduler_parts(const Config& config) {
  SchedulerParts out;
  if (config.act.scheduler != Scheduler::kSlurm) return out;
  respond::slurm::SlurmOptions options;
  options.conf = config.act.slurm_conf;
  out.backend = std::make_unique<respond::slurm::SlurmBackend>(options);
  struct Look {
    explicit Look(const respond::slurm::SlurmOptions& o) : slurm(o, pace) {}
    LookPace pace;
    respond::slurm::SlurmLook slurm;
  };
  out.look = [look = std::make_shared<Look>(options)] { return look->slurm.look(); };
  return out;
}

}  // namespace culprit::app
