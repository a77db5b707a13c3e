#include "core/detect/comm/host_load.h"

#include <fmt/format.h>

#include <vector>

#include "base/time.h"
#include "core/detect/comm/robust.h"

namespace culprit::comm {
namespace {

constexpr std::string_view kSwitches = "host/nonvoluntary_ctxt_switches";
constexpr std::string_view kPressure = "host/psi_cpu_some_avg10";
constexpr std::string_view kRunnable = "host/runnable_per_core";
// Overload: more runnable tasks than cores, or a task waits for a core a fifth of the time. Hosts whose cores
// only load data and launch work show a few percent.
constexpr double kRunnableMost = 1, kPressureMost = 20;
constexpr size_t kLeast = 3;  // minimum number of samples; a single one only shows a moment

double middle(std::vector<double> values) { return values.size() < kLeast ? -1 : lower_median(values); }

}  // namespace

bool CoreUse::contended() const { return runnable > kRunnableMost || pressure >= kPressureMost; }

std::string CoreUse::sentence() const {
  if (runnable < 0 && pressure < 0) return "";
  std::string out = "on its host";
  if (runnable >= 0) out += fmt::format(" {:.1f} tasks per core run or want to", runnable);
  if (pressure >= 0)
    out += fmt::format("{} some task waits for a core in {:.0f} % of the time", runnable >= 0 ? ", and" : "",
                       pressure);
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
    if (v.name == kPressure) sample.pressure = v.value;
    if (v.name == kRunnable) sample.runnable = v.value;
  }
  if (sample.switches < 0 && sample.pressure < 0 && sample.runnable < 0) return;
  if (samples_.size() >= kRanks && !samples_.contains(row.rank)) return;
  std::deque<Sample>& samples = samples_[row.rank];
  // A restarted process counts from zero.
  if (!samples.empty() && sample.switches >= 0 && sample.switches < samples.back().switches) samples.clear();
  samples.push_back(sample);
  if (samples.size() > kSamples) samples.pop_front();
}

double HostLoad::rate(const std::deque<Sample>& samples) {
  if (samples.size() < kLeast || samples.front().switches < 0 || samples.back().switches < 0) return -1;
  const TimeNs from = samples.front().time_ns, to = samples.back().time_ns;
  if (from == kNoTime || to == kNoTime || to <= from) return -1;
  return (samples.back().switches - samples.front().switches) * static_cast<double>(kNsPerSecond) /
         static_cast<double>(to - from);
}

CoreUse HostLoad::of(uint32_t rank) const {
  CoreUse out;
  const auto at = samples_.find(rank);
  if (at == samples_.end()) return out;
  std::vector<double> pressure, runnable, others;
  for (const Sample& s : at->second) {
    if (s.pressure >= 0) pressure.push_back(s.pressure);
    if (s.runnable >= 0) runnable.push_back(s.runnable);
  }
  out.pressure = middle(std::move(pressure));
  out.runnable = middle(std::move(runnable));
  out.switches = rate(at->second);
  for (const auto& [other, samples] : samples_)
    if (const double r = rate(samples); other != rank && r >= 0) others.push_back(r);
  if (!others.empty()) out.others = lower_median(others);
  return out;
}

}  // namespace culprit::comm
