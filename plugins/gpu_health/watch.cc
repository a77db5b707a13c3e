#include "gpu_health/watch.h"

#include <algorithm>
#include <cstring>

#include "common/files.h"
#include "gpu_health/kinds.h"

namespace gpu {
namespace {

using health::Count;
using health::format;
using health::Seen;
using health::Subject;
using health::Values;

// nvmlClocksEventReasons. A software power cap is how a busy GPU runs: no fault.
constexpr uint64_t kHwSlowdown = 0x08, kSwThermal = 0x20, kHwThermal = 0x40, kHwBrake = 0x80;

// DCGM's health limits (dcgm_gpu_hardware_limits.h).
constexpr double kReplaysPerMinute = 8;     // "maximum recommended by RM"
constexpr double kLinkErrorsPerMinute = 1;  // of replays and recoveries
constexpr double kCrcPerMinute = 100 * 60;  // "CRC errors only matter at rates of 100+ per second"
constexpr uint64_t kRetiredPagesMax = 60;   // NVIDIA replaces the GPU from here (dynamic page retirement)
constexpr uint64_t kHotMargin_c = 2, kCoolMargin_c = 7;

bool known(uint64_t value) { return value != kUnknown; }

bool any(uint64_t value) { return known(value) && value != 0; }

Values values_of(const Sample& sample) {
  Values values;
  const auto add = [&values](const char* name, uint64_t value, double unit = 1) {
    if (known(value)) values.emplace_back(name, double(value) * unit);
  };
  add("temperature_c", sample.temperature_c);
  add("slowdown_c", sample.slowdown_c);
  add("sm_mhz", sample.sm_mhz);
  add("sm_max_mhz", sample.sm_max_mhz);
  add("power_w", sample.power_mw, 1e-3);
  add("power_limit_w", sample.power_limit_mw, 1e-3);
  add("reasons", sample.reasons);
  return values;
}

std::string name_of(const Subject& subject, const Sample& sample) {
  return format("GPU %lld (%s)", static_cast<long long>(subject.device), sample.bus);
}

std::string clocks_of(const Sample& sample) {
  std::string text;
  if (known(sample.temperature_c)) text += format(", %llu C", (unsigned long long)sample.temperature_c);
  if (known(sample.slowdown_c))
    text += format(" (slows down at %llu C)", (unsigned long long)sample.slowdown_c);
  if (known(sample.sm_mhz) && known(sample.sm_max_mhz)) {
    text += format(", %llu of %llu MHz", (unsigned long long)sample.sm_mhz,
                   (unsigned long long)sample.sm_max_mhz);
  }
  if (known(sample.power_mw)) text += format(", %.0f W", double(sample.power_mw) * 1e-3);
  return text;
}

const char* recovery_of(uint64_t action) {
  constexpr const char* kActions[] = {"none", "GPU reset", "reboot of the node",
                                      "drain of peer-to-peer traffic", "drain and reset"};
  return action < std::size(kActions) ? kActions[action] : "an action unknown to this version";
}

// As rules/nvidia/xid.lua sorts them, whose comments name the sources.
constexpr uint64_t kXidsOfPrograms[] = {11, 13, 25, 31, 32, 43, 45, 69};
constexpr uint64_t kXidsOfHardware[] = {46,  48,  54,  61,  62,  64,  74,  79,  94,  95,  110, 119, 120,
                                        136, 140, 143, 156, 157, 158, 161, 166, 167, 168, 169, 171, 172};

template <size_t Size>
bool contains(const uint64_t (&list)[Size], uint64_t value) {
  return std::find(std::begin(list), std::end(list), value) != std::end(list);
}

}  // namespace

std::array<Count, kLinksMax> Watch::Device::filled() {
  Count count{health::kMinute};
  std::array<Count, kLinksMax> all = {count, count, count, count, count, count, count, count, count,
                                      count, count, count, count, count, count, count, count, count};
  return all;
}

void Watch::nvml(int32_t status) {
  report_.state(kMismatch18, Subject(), status == kMismatch, [&] {
    return Seen{status == kMismatch
                    ? "NVML: the driver's kernel module and libnvidia-ml.so.1 differ in version"
                    : "NVML: driver and library fit again",
                {}};
  });
}

bool Watch::reachable(const Device& device, const Subject& subject, const Sample& sample) {
  // Not found counts for a device that was there: an index that never answered accuses nothing.
  const bool lost = sample.status == kLost || (sample.status == kNotFound && !device.bus.empty());
  report_.state(kFellOff, subject, lost, [&] {
    return Seen{name_of(subject, sample) + (lost ? ": NVML says that the GPU is lost" : ": answers again"),
                {{"nvml_status", double(sample.status)}}};
  });
  report_.state(kNeedsReset, subject, sample.status == kResetRequired, [&] {
    return Seen{name_of(subject, sample) + ": NVML asks for a reset",
                {{"nvml_status", double(sample.status)}}};
  });
  const bool fails = sample.status != kOk && !lost && sample.status != kResetRequired;
  report_.state(kQueryFails, subject, fails, [&] {
    return Seen{name_of(subject, sample) + format(": NVML returns %d", sample.status),
                {{"nvml_status", double(sample.status)}}};
  });
  return sample.status == kOk;
}

void Watch::nvidia(int64_t index, const Sample& sample, int64_t now_ns) {
  Device& device = devices_[index];
  const Subject subject{"", index};
  if (!reachable(device, subject, sample)) return;
  device.bus = sample.bus;
  device.name = sample.name;
  memory(device, subject, sample, now_ns);
  clocks(subject, sample);
  links(device, subject, sample, now_ns);
  if (known(sample.pcie_replays)) {
    device.replays.look(sample.pcie_replays, now_ns);
    const double recent = device.replays.recent(now_ns);
    report_.state(kReplays, subject, recent > kReplaysPerMinute, [&] {
      return Seen{name_of(subject, sample) + format(": %.0f PCIe replays within a minute", recent),
                  {{"replays_per_minute", recent}}};
    });
  }
  report_.state(kRecovery, subject, any(sample.recovery_action), [&] {
    return Seen{name_of(subject, sample) + ": the driver asks for: " + recovery_of(sample.recovery_action),
                {{"recovery_action", double(sample.recovery_action)}}};
  });
}

void Watch::memory(Device& device, const Subject& subject, const Sample& sample, int64_t now_ns) {
  const std::string name = name_of(subject, sample);
  if (known(sample.uncorrected)) {
    if (!device.uncorrected.known()) device.uncorrected_before = sample.uncorrected;
    const uint64_t grown = device.uncorrected.look(sample.uncorrected, now_ns);
    if (grown > 0) {
      report_.happened(kEccUncorrected, subject,
                       {name + format(": %llu uncorrectable memory errors", (unsigned long long)grown),
                        {{"errors", double(grown)}, {"since_driver_load", double(sample.uncorrected)}}});
    }
    const bool before = device.uncorrected_before > 0 && sample.uncorrected >= device.uncorrected_before;
    if (!before) device.uncorrected_before = 0;  // a reset cleared the count
    report_.state(kEccBefore, subject, before, [&] {
      return Seen{name + format(": %llu uncorrectable memory errors since the driver was loaded",
                                (unsigned long long)sample.uncorrected),
                  {{"since_driver_load", double(sample.uncorrected)}}};
    });
  }
  if (known(sample.corrected)) {
    device.corrected.look(sample.corrected, now_ns);
    errors(device, subject, now_ns);
  }
  const auto rows = [&] { return Seen{name, {{"rows_remapped", double(sample.remapped)}}}; };
  report_.state(kRemapPending, subject, any(sample.remap_pending), rows);
  report_.state(kRemapFailed, subject, any(sample.remap_failed), rows);
  const auto pages = [&] { return Seen{name, {{"pages_retired", double(sample.retired_pages)}}}; };
  report_.state(kRetirePending, subject, any(sample.retire_pending), pages);
  const bool many = known(sample.retired_pages) && sample.retired_pages >= kRetiredPagesMax;
  report_.state(kRetiredMany, subject, many, pages);
}

void Watch::errors(Device& device, const Subject& subject, int64_t now_ns) {
  const double recent = device.corrected.recent(now_ns);
  const double limit = limits_.corrected_per_hour * (report_.raised(kEccCorrected, subject) ? 0.25 : 1);
  report_.state(kEccCorrected, subject, recent >= limit, [&] {
    return Seen{format("GPU %lld (%s): %.0f corrected memory errors within an hour",
                       (long long)subject.device, device.bus.c_str(), recent),
                {{"errors_per_hour", recent}}};
  });
}

void Watch::clocks(const Subject& subject, const Sample& sample) {
  const auto seen = [&] { return Seen{name_of(subject, sample) + clocks_of(sample), values_of(sample)}; };
  if (known(sample.reasons)) {
    const uint64_t reasons = sample.reasons;
    report_.state(kThermal, subject, (reasons & (kHwThermal | kSwThermal)) != 0, seen);
    report_.state(kPowerBrake, subject, (reasons & kHwBrake) != 0, seen);
    const bool other = (reasons & kHwSlowdown) && !(reasons & (kHwThermal | kHwBrake));
    report_.state(kSlowdown, subject, other, seen);
  }
  if (known(sample.temperature_c) && known(sample.slowdown_c)) {
    const uint64_t margin = report_.raised(kHot, subject) ? kCoolMargin_c : kHotMargin_c;
    report_.state(kHot, subject, sample.temperature_c + margin >= sample.slowdown_c, seen);
  }
}

void Watch::links(Device& device, const Subject& subject, const Sample& sample, int64_t now_ns) {
  device.links_active = sample.links_active;
  for (int link = 0; link < kLinksMax; ++link) {
    const uint32_t bit = 1u << link;
    if (!(sample.links & bit)) continue;
    const Subject part{"nvlink " + std::to_string(link), subject.device};
    const std::string name = name_of(subject, sample) + ", " + part.part;
    const bool down = (device.links_seen & bit) && !(sample.links_active & bit);
    report_.state(kLinkDown, part, down, [&] { return Seen{name + (down ? ": inactive" : ": active"), {}}; });
    if (!(sample.links_active & bit)) continue;
    device.link_errors[link].look(sample.link_errors[link], now_ns);
    device.link_crc[link].look(sample.link_crc[link], now_ns);
    const double errors = device.link_errors[link].recent(now_ns), crc = device.link_crc[link].recent(now_ns);
    report_.state(kLinkErrors, part, errors >= kLinkErrorsPerMinute, [&] {
      return Seen{name + format(": %.0f replays and recoveries within a minute", errors),
                  {{"errors_per_minute", errors}}};
    });
    report_.state(kLinkCrc, part, crc >= kCrcPerMinute, [&] {
      return Seen{name + format(": %.0f checksum errors within a minute", crc), {{"crc_per_minute", crc}}};
    });
  }
  device.links_seen |= sample.links_active;
}

void Watch::compare() {
  for (const auto& [index, device] : devices_) {
    uint32_t peers = 0, most = 0, same = 0;
    for (const auto& [other_index, other] : devices_) {
      if (other_index == index || other.name != device.name) continue;
      const uint32_t active = uint32_t(__builtin_popcount(other.links_active));
      ++peers;
      most = std::max(most, active);
    }
    for (const auto& [other_index, other] : devices_) {
      if (other_index == index || other.name != device.name) continue;
      same += uint32_t(__builtin_popcount(other.links_active)) == most;
    }
    const uint32_t own = uint32_t(__builtin_popcount(device.links_active));
    // All others must agree: a host may be built with uneven links.
    const bool fewer = peers >= 2 && same == peers && own < most && device.links_active == device.links_seen;
    report_.state(kLinkFewer, Subject{"", index}, fewer, [&, index = index, &device = device] {
      return Seen{format("GPU %lld (%s): %u active NVLinks, each of its %u peers has %u", (long long)index,
                         device.bus.c_str(), own, peers, most),
                  {{"links", double(own)}, {"links_of_peers", double(most)}}};
    });
  }
}

void Watch::xid(const Xid& xid) {
  Subject subject;
  for (const auto& [index, device] : devices_) {
    if (device.bus == xid.bus) subject.device = index;
  }
  const Kind& kind = contains(kXidsOfPrograms, xid.number)   ? kXidUser
                     : contains(kXidsOfHardware, xid.number) ? kXidHardware
                                                             : kXidOther;
  report_.happened(
      kind, subject,
      {format("GPU %lld (%s): Xid %llu", (long long)subject.device, xid.bus, (unsigned long long)xid.number),
       {{"xid", double(xid.number)}}});
}

void Watch::amd(int64_t index, const AmdSample& sample, int64_t now_ns) {
  Device& device = amd_[index];
  const Subject subject{"", index};
  const bool lost = !device.bus.empty() && (!sample.present || !sample.readable);
  if (!lost) device.bus = sample.bus;
  const std::string name = format("GPU %lld (%s)", (long long)index, device.bus.c_str());
  report_.state(kFellOff, subject, lost, [&] {
    return Seen{name + (lost ? ": its files in sysfs cannot be read any more" : ": answers again"), {}};
  });
  if (lost || !sample.readable) return;
  Sample common;  // the judgement of memory is the same
  std::snprintf(common.bus, sizeof common.bus, "%s", sample.bus);
  common.corrected = sample.corrected;
  common.uncorrected = sample.uncorrected;
  common.retire_pending = sample.pages_pending;
  common.retired_pages = sample.pages_retired;
  memory(device, subject, common, now_ns);
  if (sample.critical_c <= 0) return;
  const double margin = report_.raised(kHot, subject) ? double(kCoolMargin_c) : double(kHotMargin_c);
  report_.state(kHot, subject, sample.temperature_c + margin >= sample.critical_c, [&] {
    return Seen{name + format(", %.0f C (limit %.0f C)", sample.temperature_c, sample.critical_c),
                {{"temperature_c", sample.temperature_c}, {"critical_c", sample.critical_c}}};
  });
}

void Watch::npu(const Npu& npu) {
  const Subject subject{"", npu.number};
  const auto seen = [&] {
    return Seen{format("NPU %d %s (%s): health %s, %.0f C", npu.number, npu.name.c_str(), npu.bus.c_str(),
                       npu.health.c_str(), npu.temperature_c),
                {{"temperature_c", npu.temperature_c}, {"power_w", npu.power_w}}};
  };
  report_.state(kNpuHealth, subject, npu.health == "Alarm" || npu.health == "Critical", seen);
  report_.state(kNpuWarning, subject, npu.health == "Warning", seen);
}

void Watch::hangs(int64_t device, const std::string& what, bool bad, double waited_s, size_t stuck) {
  report_.state(kQueryHangs, Subject{"", device}, bad, [&] {
    return Seen{
        bad ? format("%s: no answer for %.0f s; %zu query processes are stuck", what.c_str(), waited_s, stuck)
            : what + ": answers again",
        {{"waited_s", waited_s}, {"stuck_processes", double(stuck)}}};
  });
}

void Watch::dies(int64_t device, const std::string& what, bool bad) {
  report_.state(kQueryDies, Subject{"", device}, bad, [&] {
    return Seen{what + (bad ? ": the query ended its process" : ": answers again"), {}};
  });
}

}  // namespace gpu
