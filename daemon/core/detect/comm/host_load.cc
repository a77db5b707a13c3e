#include "core/detect/comm/host_load.h"

#include <fmt/format.h>

#include <vector>

#include "base/time.h"
#include "core/detect/comm/robust.h"

namespace culprit::comm {
namespace {

constexpr std::string_view kSwitches = "host/nonvoluntary_ctxt_switches";
constexpr std::string_view kWaited = "host/core_wait_ms";
constexpr std::string_view kPressure = "host/psi_cpu_some_avg10";
constexpr std::string_view kRunnable = "host/runnable_per_core";
// Overload: more runnable tasks than cores, or a task waits for a core a fifth of the time. Hosts whose cores
// only load data and launch work show a few percent.
constexpr double kRunnableMost = 1, kPressureMost = 20;
// A process with a dedicated core waits for less than 1 % of the time; each of two processes on one core
// waits half of the time.
constexpr double kStarved = 0.2, kMoreThanOthers = 3;
constexpr double kMsPerSecond = 1'000;
constexpr size_t kLeast = 3;  // minimum number of samples; a single sample is a snapshot

double middle(std::vector<double> values) { return values.size() < kLeast ? -1 : lower_median(values); }

}  // namespace

bool CoreUse::starved() const { return waits >= kStarved && waits > kMoreThanOthers * others_wait; }

bool CoreUse::contended() const { return starved() || runnable > kRunnableMost || pressure >= kPressureMost; }

std::string CoreUse::sentence() const {
  if (runnable < 0 && pressure < 0 && !starved()) return "";
  std::string out = "on its host";
  if (runnable >= 0) out += fmt::format(" {:.1f} tasks per core run or want to", runnable);
  if (pressure >= 0)
    out += fmt::format("{} some task waits for a core in {:.0f} % of the time", runnable >= 0 ? ", and" : "",
                       pressure);
  if (starved()) {
    out += fmt::format("; this rank was ready and had no core in {:.0f} % of the time", 100 * waits);
    if (others_wait >= 0) out += fmt::format(", others in {:.0f} %", 100 * others_wait);
  }
  if (switches >= 0 && others >= 0)
    out += fmt::format("; the kernel takes a core from this rank {:.0f} times a second, from others {:.0f}",
                       switches, others);
  return out;
}

void HostLoad::add(const MetricRow& row) {
  Sample sample;
  sample.time_ns = row.time_ns;
  for (const MetricValue& v : row.values) {
    if (v.name == kSwitches) sample.switches = v.value;
    if (v.name == kWaited) sample.waited_ms = v.value;
    if (v.name == kPressure) sample.pressure = v.value;
    if (v.name == kRunnable) sample.runnable = v.value;
  }
  if (sample.switches < 0 && sample.waited_ms < 0 && sample.pressure < 0 && sample.runnable < 0) return;
  if (samples_.size() >= kRanks && !samples_.contains(row.rank)) return;
  std::deque<Sample>& samples = samples_[row.rank];
  // A restarted process counts from zero.
  if (!samples.empty() && sample.switches >= 0 && sample.switches < samples.back().switches) samples.clear();
  samples.push_back(sample);
  if (samples.size() > kSamples) samples.pop_front();
}

double HostLoad::rate(const std::deque<Sample>& samples, double Sample::*counter) {
  if (samples.size() < kLeast || samples.front().*counter < 0 || samples.back().*counter < 0) return -1;
  const TimeNs from = samples.front().time_ns, to = samples.back().time_ns;
  if (from == kNoTime || to == kNoTime || to <= from) return -1;
  return (samples.back().*counter - samples.front().*counter) * static_cast<double>(kNsPerSecond) /
         static_cast<double>(to - from);
}

CoreUse HostLoad::of(uint32_t rank) const {
  CoreUse out;
  const auto at = samples_.find(rank);
  if (at == samples_.end()) return out;
  std::vector<double> pressure, runnable, others, others_wait;
  for (const Sample& s : at->second) {
    if (s.pressure >= 0) pressure.push_back(s.pressure);
    if (s.runnable >= 0) runnable.push_back(s.runnable);
  }
  out.pressure = middle(std::move(pressure));
  out.runnable = middle(std::move(runnable));
  out.switches = rate(at->second, &Sample::switches);
  const auto waits = [](const std::deque<Sample>& samples) {
    return rate(samples, &Sample::waited_ms) / kMsPerSecond;
  };
  out.waits = waits(at->second);
  for (const auto& [other, samples] : samples_) {
    if (other == rank) continue;
    if (const double r = rate(samples, &Sample::switches); r >= 0) others.push_back(r);
    if (const double w = waits(samples); w >= 0) others_wait.push_back(w);
  }
  if (!others.empty()) out.others = lower_median(others);
  if (!others_wait.empty()) out.others_wait = lower_median(others_wait);
  return out;
}

}  // namespace culprit::comm
