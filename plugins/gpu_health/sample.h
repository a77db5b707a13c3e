// What one query of a GPU returns: plain bytes, since it crosses a pipe from the child to the detector.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>

namespace gpu {

constexpr uint64_t kUnknown = ~uint64_t(0);
constexpr int kLinksMax = 18;  // NVML_NVLINK_MAX_LINKS

// NVML's return codes that mean more than "not supported".
enum Status : int32_t {
  kOk = 0,
  kNotFound = 6,
  kDriverNotLoaded = 9,
  kLost = 15,
  kResetRequired = 16,
  kMismatch = 18,
  kNoLibrary = -1,
};

struct Sample {
  int32_t status = kOk;
  char bus[32] = {};  // "00000000:9B:00.0"
  char name[64] = {};
  uint64_t corrected = kUnknown, uncorrected = kUnknown;  // since the driver was loaded
  uint64_t remap_pending = kUnknown, remap_failed = kUnknown, remapped = kUnknown;
  uint64_t retired_pages = kUnknown, retire_pending = kUnknown;
  uint64_t temperature_c = kUnknown, slowdown_c = kUnknown;
  uint64_t reasons = kUnknown, sm_mhz = kUnknown, sm_max_mhz = kUnknown;
  uint64_t power_mw = kUnknown, power_limit_mw = kUnknown;
  uint64_t pcie_replays = kUnknown, recovery_action = kUnknown;
  uint32_t links = 0, links_active = 0;  // bits: has a link of this number, and it is active
  uint64_t link_errors[kLinksMax] = {};  // replays and recoveries
  uint64_t link_crc[kLinksMax] = {};
};

struct Devices {
  int32_t status = kOk;
  uint32_t count = 0;
};

struct Xid {
  char bus[32] = {};
  uint64_t number = 0;
};

template <class T>
std::string bytes_of(const T& value) {
  return std::string(reinterpret_cast<const char*>(&value), sizeof value);
}
template <class T>
bool from_bytes(const std::string& bytes, T& value) {
  if (bytes.size() != sizeof value) return false;
  std::memcpy(static_cast<void*>(&value), bytes.data(), sizeof value);
  return true;
}

}  // namespace gpu
