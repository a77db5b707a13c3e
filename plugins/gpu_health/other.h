// GPUs and accelerators of other makers, read in the child process: AMD by sysfs, Ascend by the table that
// `npu-smi info` prints.
#pragma once

#include <string>
#include <vector>

namespace gpu {

struct AmdSample {
  bool present = false;
  bool readable = false;
  unsigned long long corrected = 0, uncorrected = 0;
  unsigned long long pages_pending = 0, pages_retired = 0;
  double temperature_c = -1, critical_c = -1;  // the hottest sensor, relative to its own limit
  char bus[32] = {};
};

// Names of the folders of AMD's cards below root/sys/class/drm: "card0", …
std::vector<std::string> amd_cards(const std::string& root);
AmdSample amd_sample(const std::string& root, const std::string& card);

struct Npu {
  int number = 0;
  std::string name, health, bus;
  double power_w = -1, temperature_c = -1;
};

// The table of `npu-smi info`, tolerant of its widths: rows of two lines, columns between "|".
std::vector<Npu> parse_npu_smi(const std::string& text);
// What the program prints; empty if it is not there.
std::string run_npu_smi(const std::string& program);

}  // namespace gpu
