// Judges samples of GPUs. No clock, file or process in here: the detector calls it with what was read, when.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>

#include "common/report.h"
#include "gpu_health/other.h"
#include "gpu_health/sample.h"

namespace gpu {

struct Limits {
  double corrected_per_hour = 1000;
};

class Watch {
 public:
  Watch(health::Report& report, Limits limits) : report_(report), limits_(limits) {}

  // `status` of NVML itself.
  void nvml(int32_t status);
  void nvidia(int64_t device, const Sample& sample, int64_t now_ns);
  // After a round: compares the GPUs of one model with each other.
  void compare();
  void xid(const Xid& xid);
  void amd(int64_t device, const AmdSample& sample, int64_t now_ns);
  void npu(const Npu& npu);
  // A query that did not end, or ended its process. `device` CULPRIT_NONE: of the library itself.
  void hangs(int64_t device, const std::string& what, bool bad, double waited_s, size_t stuck);
  void dies(int64_t device, const std::string& what, bool bad);

 private:
  struct Device {
    std::string bus, name;
    health::Count corrected{health::kHour}, uncorrected{365 * 24 * health::kHour};
    health::Count replays{health::kMinute};
    uint64_t uncorrected_before = 0;
    uint32_t links_seen = 0, links_active = 0;
    std::array<health::Count, kLinksMax> link_errors = filled(), link_crc = filled();
    static std::array<health::Count, kLinksMax> filled();
  };
  bool reachable(const Device& device, const health::Subject& subject, const Sample& sample);
  void memory(Device& device, const health::Subject& subject, const Sample& sample, int64_t now_ns);
  void clocks(const health::Subject& subject, const Sample& sample);
  void links(Device& device, const health::Subject& subject, const Sample& sample, int64_t now_ns);
  void errors(Device& device, const health::Subject& subject, int64_t now_ns);

  health::Report& report_;
  Limits limits_;
  std::map<int64_t, Device> devices_, amd_;
};

}  // namespace gpu
