#include "check/devices.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <vector>

#include "base/clock.h"
#include "base/text.h"
#include "check/text_file.h"

namespace culprit::check {
namespace {

namespace fs = std::filesystem;

constexpr size_t kDevicesMost = 4096;

enum class Kind { kOther, kAccelerator, kNetwork, kStorage };

// PCI classes: 0x03 display, 0x12 processing accelerators, 0x02 network, 0x0108 NVMe. A display adapter of
// class 0x0300 may be the board's own.
Kind kind_of(uint64_t pci_class) {
  const uint64_t base = pci_class >> 16, sub = (pci_class >> 8) & 0xff;
  if (base == 0x12 || (base == 0x03 && sub == 0x02)) return Kind::kAccelerator;
  if (base == 0x02) return Kind::kNetwork;
  return base == 0x01 && sub == 0x08 ? Kind::kStorage : Kind::kOther;
}

constexpr const char* kNames[] = {"device", "accelerator", "network device", "disk"};

std::vector<std::string> entries_of(const std::string& folder) {
  std::vector<std::string> out;
  std::error_code error;
  for (auto at = fs::directory_iterator(folder, error); !error && at != fs::directory_iterator();
       at.increment(error))
    if (out.size() < kDevicesMost) out.push_back(at->path().string());
  std::ranges::sort(out);
  return out;
}

Kind kind_at(const std::string& device) {
  const auto text = read_text(device + "/class");
  return text ? kind_of(std::strtoull(text->c_str(), nullptr, 16)) : Kind::kOther;
}

// "16.0 GT/s PCIe" -> 16; nothing: unknown.
std::optional<double> speed_in(const std::string& path) {
  const auto text = read_text(path);
  if (!text) return std::nullopt;
  const double out = std::strtod(text->c_str(), nullptr);
  return out > 0 ? std::optional(out) : std::nullopt;
}

std::optional<double> width_in(const std::string& path) {
  const auto lanes = read_number(path);  // 255 and 0: unknown
  return lanes && *lanes > 0 && *lanes <= 32 ? std::optional(static_cast<double>(*lanes)) : std::nullopt;
}

struct Property {
  const char *current, *most, *unit;
  std::optional<double> (*read)(const std::string&);
};
constexpr Property kWidth = {"current_link_width", "max_link_width", "lanes", width_in};
constexpr Property kSpeed = {"current_link_speed", "max_link_speed", "GT/s", speed_in};

// A sentence if the link has less than both of its ends allow.
std::string shortfall(const std::string& device, const Property& property) {
  const auto now = property.read(fmt::format("{}/{}", device, property.current));
  auto most = property.read(fmt::format("{}/{}", device, property.most));
  std::error_code error;
  const fs::path parent = fs::canonical(device, error).parent_path();
  if (!error)
    if (const auto above = property.read((parent / property.most).string()); above && most)
      most = std::min(*most, *above);
  if (!now || !most || *now >= *most) return {};
  return fmt::format("{:g} of {:g} {}", *now, *most, property.unit);
}

// All bits are one where nothing answers.
bool is_absent(const std::string& device) {
  const auto bytes = read_text(device + "/config", 4);
  return bytes && *bytes == std::string(4, '\xff');
}

uint64_t fatal_errors(const std::string& device) {
  const auto text = read_text(device + "/aer_dev_fatal");
  constexpr std::string_view kTotal = "TOTAL_ERR_FATAL ";
  const size_t at = text ? text->find(kTotal) : std::string::npos;
  return at == std::string::npos ? 0 : std::strtoull(text->c_str() + at + kTotal.size(), nullptr, 10);
}

// What is wrong with the device, or may be.
struct Trouble {
  Answer answer = Answer::kPassed;
  std::string text = {};
};
Trouble trouble_of(const std::string& device, Kind kind) {
  if (is_absent(device)) return {Answer::kFailed, "does not answer on the bus"};
  if (const uint64_t errors = fatal_errors(device); errors > 0)
    return {Answer::kFailed, fmt::format("had {} of PCIe since boot", counted(errors, "fatal error"))};
  // The chips allow more; whether the slot is wired for it is not known here.
  if (const std::string width = shortfall(device, kWidth); !width.empty())
    return {Answer::kNoAnswer, "has " + width};
  // An idle accelerator lowers the speed of its link.
  if (kind == Kind::kAccelerator) return {};
  if (const std::string speed = shortfall(device, kSpeed); !speed.empty())
    return {Answer::kNoAnswer, "has " + speed};
  return {};
}

}  // namespace

Part check_pcie(const std::string& sys) {
  const TimeNs began = steady_now();
  Part out{"pcie", Answer::kPassed, "", 0, "", 0};
  size_t seen = 0, troubled = 0;
  for (const std::string& device : entries_of(sys + "/bus/pci/devices")) {
    const Kind kind = kind_at(device);
    if (kind == Kind::kOther) continue;
    ++seen;
    const Trouble trouble = trouble_of(device, kind);
    const bool worse = trouble.answer == Answer::kFailed && out.answer != Answer::kFailed;
    if (trouble.answer == Answer::kPassed || (troubled++ > 0 && !worse)) continue;
    out.answer = trouble.answer;
    out.text = fmt::format("{} {} {}", kNames[static_cast<size_t>(kind)],
                           fs::path(device).filename().string(), trouble.text);
  }
  if (troubled > 1) out.text += fmt::format(", and {} more", troubled - 1);
  if (out.answer == Answer::kPassed)
    out.text = fmt::format("{} at full width, without fatal errors", counted(seen, "PCIe device"));
  out.took_ns = steady_now() - began;
  return out;
}

Part check_memory_errors(const std::string& sys) {
  const TimeNs began = steady_now();
  Part out{"memory errors", Answer::kNoAnswer, "the kernel counts none here", 0, "", 0};
  uint64_t uncorrected = 0, corrected = 0;
  for (const std::string& controller : entries_of(sys + "/devices/system/edac/mc")) {
    const auto count = read_number(controller + "/ue_count");
    if (!count) continue;
    out.answer = Answer::kPassed;
    uncorrected += *count;
    corrected += read_number(controller + "/ce_count").value_or(0);
  }
  if (out.answer == Answer::kPassed)
    out.text = fmt::format("{} uncorrected and {} corrected since boot", uncorrected, corrected);
  if (uncorrected > 0) out.answer = Answer::kFailed;
  out.took_ns = steady_now() - began;
  return out;
}

size_t count_accelerators(const std::string& sys) {
  size_t out = 0;
  for (const std::string& device : entries_of(sys + "/bus/pci/devices"))
    out += kind_at(device) == Kind::kAccelerator;
  return out;
}

}  // namespace culprit::check
