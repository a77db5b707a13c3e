#include "net_health/readings.h"

#include <stdlib.h>

#include <algorithm>
#include <climits>

#include "common/files.h"
#include "net_health/counters.h"

namespace net {
namespace {

using health::list;
using health::read_text;

constexpr size_t kDevicesMax = 64, kPciMax = 256;

void add(std::string& out, const std::string& name, const std::string& path) {
  auto text = read_text(path, 256);
  if (!text) return;
  text->resize(std::min(text->find('\n'), text->size()));
  out += name + '=' + *text + '\n';
}

// The last line of an AER file: "TOTAL_ERR_COR 12".
void add_total(std::string& out, const std::string& name, const std::string& path) {
  const auto text = read_text(path, 4096);
  const size_t at = text ? text->find("TOTAL_ERR_") : std::string::npos;
  if (at == std::string::npos) return;
  const auto parts = health::words(std::string_view(*text).substr(at));
  if (parts.size() >= 2) out += name + '=' + std::string(parts[1]) + '\n';
}

double value_of(const std::optional<std::string>& text) {
  return text ? health::real(*text).value_or(0) : 0;  // "Unknown" of a device that sleeps
}

const char* what_is(uint64_t code) {
  switch (code >> 8) {
    case 0x0200:
    case 0x0207:
      return "network adapter";
    case 0x0300:
    case 0x0302:
      return "GPU";
    case 0x0108:
      return "NVMe disk";
    case 0x1200:
      return "accelerator";
    default:
      return nullptr;
  }
}

void add_pci(std::string& out, const std::string& folder, const std::string& name) {
  const auto code = health::read_number(folder + "/class");
  const char* what = code ? what_is(*code) : nullptr;
  if (!what) return;
  char real[PATH_MAX];
  if (!realpath(folder.c_str(), real)) return;
  const std::string device = real, slot = device.substr(0, device.rfind('/'));
  const auto width = value_of(read_text(device + "/current_link_width"));
  const auto speed = value_of(read_text(device + "/current_link_speed"));
  double width_max = value_of(read_text(device + "/max_link_width"));
  double speed_max = value_of(read_text(device + "/max_link_speed"));
  // A slot with fewer lanes than the device is how the host is built.
  const double slot_width = value_of(read_text(slot + "/max_link_width"));
  const double slot_speed = value_of(read_text(slot + "/max_link_speed"));
  if (slot_width > 0) width_max = std::min(width_max, slot_width);
  if (slot_speed > 0) speed_max = std::min(speed_max, slot_speed);
  out += health::format("%s/what=%s\n%s/width=%g\n%s/width_max=%g\n%s/speed=%g\n%s/speed_max=%g\n",
                        name.c_str(), what, name.c_str(), width, name.c_str(), width_max, name.c_str(), speed,
                        name.c_str(), speed_max);
  add_total(out, name + "/correctable", device + "/aer_dev_correctable");
  add_total(out, name + "/nonfatal", device + "/aer_dev_nonfatal");
  add_total(out, name + "/fatal", device + "/aer_dev_fatal");
}

}  // namespace

Reading parse(const std::string& text) {
  Reading reading;
  for (const std::string_view line : health::split(text, '\n')) {
    const size_t equals = line.find('=');
    if (equals == std::string_view::npos) continue;
    reading.emplace(line.substr(0, equals), line.substr(equals + 1));
  }
  return reading;
}

std::string read_rdma(const std::string& root, const std::string& device, bool counters) {
  std::string out;
  const std::string ports = root + "/sys/class/infiniband/" + device + "/ports";
  for (const std::string& port : list(ports)) {
    const std::string folder = ports + "/" + port + "/";
    add(out, port + "/state", folder + "state");
    add(out, port + "/rate", folder + "rate");
    add(out, port + "/link_downed", folder + "counters/link_downed");
    for (const Threshold& threshold : kThresholds) {
      if (!counters || threshold.place == Place::kInterface) continue;
      const char* place = threshold.place == Place::kPort ? "counters/" : "hw_counters/";
      add(out, port + "/" + threshold.file, folder + place + threshold.file);
    }
  }
  return out;
}

std::string read_interface(const std::string& root, const std::string& name) {
  std::string out;
  const std::string folder = root + "/sys/class/net/" + name + "/";
  add(out, "operstate", folder + "operstate");
  add(out, "carrier_changes", folder + "carrier_changes");
  add(out, "speed", folder + "speed");
  for (const Threshold& threshold : kThresholds) {
    if (threshold.place == Place::kInterface)
      add(out, threshold.file, folder + "statistics/" + threshold.file);
  }
  return out;
}

std::string read_pci(const std::string& root) {
  std::string out;
  const std::string folder = root + "/sys/bus/pci/devices";
  size_t count = 0;
  for (const std::string& name : list(folder)) {
    if (++count > kPciMax * 8) break;
    add_pci(out, folder + "/" + name, name);
  }
  return out;
}

std::vector<std::string> rdma_devices(const std::string& root) {
  auto names = list(root + "/sys/class/infiniband");
  names.resize(std::min(names.size(), kDevicesMax));
  return names;
}

std::vector<std::string> interfaces(const std::string& root, const std::string& chosen) {
  const auto wanted = health::words(chosen);
  std::vector<std::string> names;
  for (const std::string& name : list(root + "/sys/class/net")) {
    const bool named = std::find(wanted.begin(), wanted.end(), name) != wanted.end();
    const bool hardware = health::exists(root + "/sys/class/net/" + name + "/device");
    if ((wanted.empty() ? hardware : named) && names.size() < kDevicesMax) names.push_back(name);
  }
  return names;
}

}  // namespace net
