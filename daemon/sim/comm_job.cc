#include "sim/comm_job.h"

#include <filesystem>
#include <fstream>
#include <map>

#include <fmt/format.h>

#include "sim/comm_fault.h"
#include "sim/comm_file.h"
#include "sim/files.h"

namespace culprit::sim {
namespace {

// Several variants of the same job, step by step: with all faults, with none, and without each fault in turn.
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

  // Duration of the step over all ranks in milliseconds; `each` sees the world after every phase.
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

// Chooses a severity that makes the step 1.08 to 2.5 times as long, if the faulty part is on the critical
// path. A weaker fault has no effect, and a stronger one is obvious.
void choose_severity(const CommSite& site, const Programs& programs, CommFault& fault, Random random) {
  CommSite calm = site;
  calm.gc_every = calm.checkpoint_every = calm.evaluation_every = 0;
  CommFault trial = fault;
  trial.active.assign(2, 1);
  const double without = time_of(calm, programs, {});
  const double goal = without * (1.08 + 1.42 * random.real() * random.real());
  double low = 1, high = fault.slow_channels.empty() && fault.kind != "nic" ? 64 : 256;
  for (int i = 0; i < 9; ++i) {
    // Bisects on a logarithmic scale approximately: no library function, so the result is equal on every
    // machine.
    trial.severity = i == 0 ? 4 : (low + high > 16 ? low + (high - low) / 4 : (low + high) / 2);
    const double ms = time_of(calm, programs, {&trial});
    (ms < goal ? low : high) = trial.severity;
    if (ms > goal * 0.97 && ms < goal * 1.05) break;
  }
  fault.severity = trial.severity;
}

struct CommRun {
  std::vector<double> with_ms, without_ms;
  std::vector<std::vector<double>> without_each;  // by fault
  bool stuck = false;
};

Result<CommRun> run(const CommSite& site, const std::vector<CommFault>& faults, CommFiles& files) {
  const Programs programs = make_programs(site);
  std::vector<const CommFault*> all;
  for (const CommFault& fault : faults) all.push_back(&fault);
  Variant real(site, all, true), none(site, {}, false);
  std::vector<std::unique_ptr<Variant>> each;
  for (size_t i = 0; i < faults.size() && faults.size() > 1; ++i) {
    auto others = all;
    others.erase(others.begin() + static_cast<int64_t>(i));
    each.push_back(std::make_unique<Variant>(site, others, false));
  }
  CommRun out;
  out.without_each.resize(faults.size());
  for (uint32_t step = 0; step < site.steps && !real.stuck(); ++step) {
    out.with_ms.push_back(
        real.step(programs, step, [&](const CommWorld& world) { return files.add(world); }));
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

std::string list_of(size_t n, auto item) {
  std::string out = "[";
  for (size_t i = 0; i < n; ++i) out += (i == 0 ? "" : ", ") + item(i);
  return out + "]";
}

std::string numbers(const std::vector<double>& list) {
  return list_of(list.size(), [&](size_t i) { return fmt::format("{:.3f}", list[i]); });
}

std::string fault_json(const CommSite& site, const CommFault& fault, const CommRun& run, size_t index) {
  std::vector<uint32_t> steps;
  std::vector<double> cost;
  double most = 0;
  for (uint32_t i = 0; i < run.with_ms.size(); ++i) {
    if (!is_of_job(fault) && fault.active[i] == 0) continue;
    steps.push_back(site.first_step + i);
    cost.push_back(is_of_job(fault) ? 0 : run.with_ms[i] - run.without_each[index][i]);
    if (run.without_each[index][i] > 0) most = std::max(most, cost.back() / run.without_each[index][i]);
  }
  const auto host = [&](uint32_t h) { return fmt::format("\"{}\"", site.host_names[h]); };
  const bool device = fault.ranks.size() == 1;
  // Faults below 5 % of every step, and faults without a detectable place, may be reported or not.
  const bool shows = is_hang(fault) || (most >= 0.05 && !fault.twin);
  const std::string_view named = !fault.somebody ? "no" : shows ? "yes" : "optional";
  const std::string link = fault.kind == "link"
                               ? fmt::format("[[{}, {}]]", host(fault.link.first), host(fault.link.second))
                               : "[]";
  return fmt::format(
      "{{\"fault\": \"{}\", \"kind\": \"{}\", \"named\": \"{}\", \"severity\": {:.4f}, \"ranks\": {}, "
      "\"hosts\": {}, \"devices\": {}, \"links\": {}, \"steps\": {}, \"cost_ms\": {}}}",
      fault.name, fault.kind, named, fault.severity,
      list_of(fault.ranks.size(), [&](size_t i) { return fmt::format("{}", fault.ranks[i]); }),
      list_of(fault.hosts.size(), [&](size_t i) { return host(fault.hosts[i]); }),
      device ? fmt::format("[{}]", fault.ranks[0] % site.ranks_per_host) : "[]", link,
      list_of(steps.size(), [&](size_t i) { return fmt::format("{}", steps[i]); }), numbers(cost));
}

std::string truth(const CommJobOptions& o, const CommSite& s, const std::vector<CommFault>& faults,
                  const CommRun& run) {
  std::string out = fmt::format(
      "{{\n  \"seed\": {}, \"world\": {}, \"hosts\": {}, \"ranks_per_host\": {},\n"
      "  \"parallel\": {{\"tp\": {}, \"cp\": {}, \"dp\": {}, \"pp\": {}, \"ep\": {}}},\n"
      "  \"schedule\": {{\"virtual_stages\": {}, \"layers\": {}, \"micro_batches\": {}}},\n",
      o.seed, s.world, s.hosts, s.ranks_per_host, s.tp, s.cp, s.dp, s.pp, s.ep, s.virtual_stages, s.blocks,
      s.micro_batches);
  out +=
      fmt::format("  \"steps\": {},\n  \"step_ms\": {},\n  \"without_ms\": {},\n  \"hangs\": {},\n",
                  list_of(run.with_ms.size(), [&](size_t i) { return fmt::format("{}", s.first_step + i); }),
                  numbers(run.with_ms), numbers(run.without_ms), run.stuck);
  const std::string rows =
      list_of(faults.size(), [&](size_t i) { return "\n    " + fault_json(s, faults[i], run, i); });
  return out + "  \"faults\": " + rows + "\n}\n";
}

}  // namespace

Status simulate_comm(const CommJobOptions& options, const std::string& out) {
  if (Status status = check_empty(out); !status) return status;
  Result<CommSite> site = make_comm_site(options);
  if (!site) return tl::unexpected(site.error());
  std::vector<CommFault> faults;
  const Random random(mix64(options.seed, 0x746c7566));
  for (const std::string& name : options.faults) {
    if (name == "none") continue;
    Result<CommFault> fault = make_comm_fault(name, options, *site, random.fork(faults.size()));
    if (!fault) return tl::unexpected(fault.error());
    faults.push_back(std::move(*fault));
  }
  const Programs programs = make_programs(*site);
  for (size_t i = 0; i < faults.size() && options.severity == 0; ++i)
    if (!is_of_job(faults[i]) && !is_hang(faults[i]))
      choose_severity(*site, programs, faults[i], random.fork(100 + i));
  std::vector<uint32_t> kept;
  for (const CommFault& fault : faults) kept.insert(kept.end(), fault.hosts.begin(), fault.hosts.end());
  CommFiles files(options, *site, kept, out + "/job");
  if (Status status = files.begin(); !status) return status;
  Result<CommRun> done = run(*site, faults, files);
  if (!done) return tl::unexpected(done.error());
  return write_text(out + "/truth.json", truth(options, *site, faults, *done));
}

}  // namespace culprit::sim
