#include "sim/comm_event.h"

#include <algorithm>

namespace culprit::sim {
namespace {

constexpr uint64_t kMs = 1'000'000;
constexpr uint64_t kStoppedNs = 60'000 * kMs;  // a process that gets SIGSTOP, and SIGCONT a minute later

bool moves(const CommFault& fault) { return fault.name == "pause-moves" || fault.name == "loader-moves"; }

// Chooses `count` steps at random. Excludes the first step, which has no previous one, and steps with a
// checkpoint or an evaluation, which hide concurrent events.
void choose_some(CommFault& fault, const CommSite& site, uint32_t count, Random& random) {
  std::vector<uint32_t> usual;
  const auto every = [](uint32_t step, uint32_t n) { return n != 0 && (step + 1) % n == 0; };
  for (uint32_t step = 1; step < site.steps; ++step)
    if (!every(step, site.checkpoint_every) && !every(step, site.evaluation_every)) usual.push_back(step);
  for (; count > 0 && !usual.empty(); --count) {
    const auto at = usual.begin() + static_cast<std::ptrdiff_t>(random.below(usual.size()));
    fault.active[*at] = 1;
    usual.erase(at);
  }
}

// Chooses every n-th step: rank 0 saves, logs or evaluates; frameworks count steps from 1.
void choose_every(CommFault& fault, const CommSite& site, Random& random) {
  static constexpr uint32_t kPeriods[] = {4, 5, 6, 8, 10, 20};
  const uint32_t period = kPeriods[random.below(std::size(kPeriods))];
  for (uint32_t step = 0; step < site.steps; ++step)
    fault.active[step] = (site.first_step + step + 1) % period == 0;
}

// The fault is active in a seventh to half of the steps, with half to all of its severity.
void choose_fluctuation(CommFault& fault, const CommSite& site, Random& random) {
  const uint32_t steps = site.steps;
  const int64_t percent = random.range(15, 51);
  fault.levels.assign(steps, kUnit);
  for (uint32_t step = 1; step < steps; ++step) {
    fault.active[step] = random.chance(static_cast<uint32_t>(percent));
    fault.levels[step] = random.range(kUnit / 2, kUnit);
  }
  if (std::ranges::count(fault.active, 1) < 2) choose_some(fault, site, 2, random);
}

}  // namespace

bool is_pause(const CommFault& fault) {
  return fault.name == "stop-once" || fault.name == "pause-once" || fault.name == "pause-twice" ||
         fault.name == "pause-all" || fault.name == "rank0-saves" || moves(fault);
}

bool is_event(const CommFault& fault) {
  return is_pause(fault) || fault.name.starts_with("spike-") || fault.name.starts_with("fluctuation");
}

void choose_event(CommFault& fault, const CommSite& site, Random random) {
  fault.active.assign(site.steps, 0);
  if (fault.name == "rank0-saves")
    choose_every(fault, site, random);
  else if (fault.name.starts_with("fluctuation"))
    choose_fluctuation(fault, site, random);
  else if (fault.name == "stop-once" || fault.name == "pause-once")
    choose_some(fault, site, 1, random);
  else if (fault.name == "pause-all" || moves(fault))
    choose_some(fault, site, static_cast<uint32_t>(random.range(2, 6)), random);
  else  // spikes, and a pause that comes twice
    choose_some(fault, site, fault.name == "pause-twice" || random.chance(70) ? 2 : 3, random);
  if (fault.name == "stop-once")
    fault.pause_ns = kStoppedNs;
  else if (fault.name == "pause-twice")
    fault.pause_ns = static_cast<uint64_t>(random.range(120, 300)) * kMs;
  else if (is_pause(fault))
    fault.pause_ns = static_cast<uint64_t>(random.range(200, 900)) * kMs;
}

void add_pauses(const CommFault& fault, const CommSite& site, uint32_t step, CommEffects& effects) {
  const uint64_t key = mix64(fault.key, step);
  const uint64_t ns = scaled(fault.pause_ns, lognormal_unit(mix64(key, 1), kUnit / 8));
  if (fault.name == "pause-all") {
    for (uint32_t r = 0; r < site.world; ++r)
      effects.pauses.push_back({r, 0, scaled(ns, lognormal_unit(mix64(key, 2 + r), kUnit / 8))});
  } else if (moves(fault)) {
    // Each time another rank, on another host.
    const auto number =
        static_cast<uint64_t>(std::count(fault.active.begin(), fault.active.begin() + step, 1));
    const auto stride = uint64_t{site.ranks_per_host} + 1;
    const auto rank = static_cast<uint32_t>((fault.key + number * stride) % site.world);
    if (fault.name == "pause-moves") {
      effects.pauses.push_back({rank, mix64(key, 3), ns});
    } else {  // the data loader of a host: all its ranks start late
      const uint32_t first = site.host_of(rank) * site.ranks_per_host;
      for (uint32_t r = first; r < std::min(first + site.ranks_per_host, site.world); ++r)
        effects.pauses.push_back({r, 0, ns});
    }
  } else if (fault.name == "rank0-saves") {
    effects.pauses.push_back({0, 0, ns});
  } else {
    effects.pauses.push_back({fault.ranks[0], mix64(key, 3), ns});
  }
}

}  // namespace culprit::sim
