// NVIDIA's management library, loaded at run time and called in the child process only: any call may hang.
// Every function but those that name a device is optional: an old driver lacks some, a new GPU does not
// support others.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "gpu_health/sample.h"

namespace gpu {

class Nvml {
 public:
  explicit Nvml(std::string library) : library_(std::move(library)) {}

  Devices devices();
  // By its bus id if that is known, since indices move when a device is gone.
  Sample sample(unsigned index, const std::string& bus);
  std::vector<Xid> xids();

 private:
  struct Functions;
  int open();
  void* handle(unsigned index, const std::string& bus, int32_t& status);
  void watch_xids(void* device);
  void memory(void* device, Sample& out);
  void clocks(void* device, Sample& out);
  void links(void* device, Sample& out);
  uint64_t field(void* device, unsigned id, unsigned scope);

  std::string library_;
  const Functions* functions_ = nullptr;
  int status_ = 1;  // of open; 1: not tried
  void* events_ = nullptr;
  std::map<void*, bool> watched_;
};

}  // namespace gpu
