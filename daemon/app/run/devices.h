// The GPUs of this host, to leave some of them out of the next attempt of `culprit run --retries`. CUDA's own
// numbers follow speed, logs of the driver give PCI addresses, and a UUID means the same device to all: the
// command gets UUIDs. Reads files of the drivers only. Any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "app/run/launch.h"
#include "model/report.h"

namespace culprit::app {

struct Gpu {
  std::string uuid;     // "GPU-…" as CUDA_VISIBLE_DEVICES and ROCR_VISIBLE_DEVICES take it
  std::string address;  // PCI, "0000:9b:00.0"
  std::string model;    // empty: unknown
};

// Devices of one vendor, in the order of the numbers that the command sees.
struct VisibleGpus {
  std::string variable;  // "CUDA_VISIBLE_DEVICES" or "ROCR_VISIBLE_DEVICES"
  std::vector<Gpu> gpus;
  bool numbered = false;  // a number names a device: CUDA orders devices of one model by their address
};

// The GPUs that a command with these variables may use, NVIDIA's or else AMD's; empty without a driver, or
// where the variables cannot be understood. `root`: "/", or the folder that plays it.
VisibleGpus visible_gpus(const Lookup& variable, const std::string& root = "/");

// The devices that remain without `names` ("GPU 5", "device 5", "0000:9b:00", "GPU-…"). Nothing: a name is
// not one of these devices.
std::optional<VisibleGpus> without(const VisibleGpus& visible, const std::vector<std::string>& names);

// The GPUs that remain without those that the advice names. Nothing: they are none of `visible`, or fewer
// than `least` would remain. The advice gets their UUIDs, since numbers change with each device that
// is left out.
std::optional<VisibleGpus> leave_out(const VisibleGpus& visible, RestartAdvice& advice, uint32_t least);

bool contains(const VisibleGpus& visible, const Gpu& gpu);

// "GPU-a,GPU-b"
std::string uuid_list(const VisibleGpus& visible);

}  // namespace culprit::app
