#include "sim/comm_play.h"

#include <memory>
#include <utility>

namespace culprit::sim {
namespace {

// Runs variants of the same job in parallel, step by step: with all faults, with none, and without each
// fault in turn.
struct Programs {
  std::vector<CommProgram> train, evaluation, checkpoint;
};

Programs make_programs(const CommSite& site) {
  Programs out;
  for (uint32_t stage = 0; stage < site.pp; ++stage) {
    out.train.push_back(train_program(site, stage));
    out.evaluation.push_back(evaluation_program(site, stage));
    out.checkpoint.push_back(checkpoint_program(site));
  }
  return out;
}

std::vector<CommPhase> phases_of(const CommSite& site, const Programs& programs, uint32_t step) {
  std::vector<CommPhase> out = {{step, 0, programs.train}};
  const auto every = [step](uint32_t n) { return n != 0 && (step + 1) % n == 0; };
  if (every(site.checkpoint_every)) out.push_back({step, 1, programs.checkpoint});
  if (every(site.evaluation_every)) out.push_back({step, 2, programs.evaluation});
  return out;
}

class Variant {
 public:
  Variant(const CommSite& site, std::vector<const CommFault*> faults, bool keep)
      : site_(site), faults_(std::move(faults)), world_(site, keep) {}

  // Returns the duration of the step over all ranks in milliseconds; calls `each` with the world after
  // every phase.
  template <class Each>
  double step(const Programs& programs, uint32_t number, Each each) {
    CommEffects effects;
    for (const CommFault* fault : faults_) add_effects(*fault, site_, number, effects);
    uint64_t end = last_;
    for (const CommPhase& phase : phases_of(site_, programs, number)) {
      end = world_.run(phase, effects);
      if (Status status = each(world_); !status) failed_ = status;
      if (world_.stuck()) break;
    }
    const double ms = static_cast<double>(end - last_) / 1e6;
    last_ = end;
    return ms;
  }
  const Status& failed() const { return failed_; }
  bool stuck() const { return world_.stuck(); }

 private:
  const CommSite& site_;
  const std::vector<const CommFault*> faults_;
  CommWorld world_;
  uint64_t last_ = 0;
  Status failed_;
};

constexpr auto kNothing = [](const CommWorld&) -> Status { return {}; };

double time_of(const CommSite& site, const Programs& programs, std::vector<const CommFault*> faults) {
  Variant variant(site, std::move(faults), false);
  variant.step(programs, 0, kNothing);
  return variant.step(programs, 1, kNothing);
}

}  // namespace

// Default: the step takes 1.08 to 2.5 times as long, if the faulty part is on the critical path. A weaker
// fault has no effect, and a stronger one is obvious.
void choose_severity(const CommSite& site, CommFault& fault, Random random, double least, double most) {
  const Programs programs = make_programs(site);
  CommSite calm = site;
  calm.gc_every = calm.checkpoint_every = calm.evaluation_every = 0;
  CommFault trial = fault;
  trial.active.assign(2, 1);
  trial.levels.clear();
  const double without = time_of(calm, programs, {});
  const double goal = without * (least + (most - least) * random.real() * random.real());
  double low = 1, high = fault.slow_channels.empty() && fault.kind != "nic" ? 64 : 256;
  for (int i = 0; i < 9; ++i) {
    // Approximate bisection on a logarithmic scale, without library functions, so that the result is equal
    // on every machine.
    trial.severity = i == 0 ? 4 : (low + high > 16 ? low + (high - low) / 4 : (low + high) / 2);
    const double ms = time_of(calm, programs, {&trial});
    (ms < goal ? low : high) = trial.severity;
    if (ms > goal * 0.97 && ms < goal * 1.05) break;
  }
  fault.severity = trial.severity;
}

Result<CommPlay> play_comm(const CommSite& site, const std::vector<CommFault>& faults, CommFiles* files) {
  const Programs programs = make_programs(site);
  std::vector<const CommFault*> all;
  for (const CommFault& fault : faults) all.push_back(&fault);
  Variant real(site, all, files != nullptr), none(site, {}, false);
  std::vector<std::unique_ptr<Variant>> each;
  for (size_t i = 0; i < faults.size() && faults.size() > 1; ++i) {
    auto others = all;
    others.erase(others.begin() + static_cast<int64_t>(i));
    each.push_back(std::make_unique<Variant>(site, others, false));
  }
  CommPlay out;
  out.without_each.resize(faults.size());
  for (uint32_t step = 0; step < site.steps && !real.stuck(); ++step) {
    out.with_ms.push_back(real.step(
        programs, step, [&](const CommWorld& world) { return files ? files->add(world) : Status{}; }));
    if (!real.failed()) return tl::unexpected(real.failed().error());
    out.without_ms.push_back(none.step(programs, step, kNothing));
    for (size_t i = 0; i < faults.size(); ++i)
      out.without_each[i].push_back(each.empty()       ? out.without_ms.back()
                                    : each[i]->stuck() ? 0
                                                       : each[i]->step(programs, step, kNothing));
  }
  out.stuck = real.stuck();
  return out;
}

}  // namespace culprit::sim
