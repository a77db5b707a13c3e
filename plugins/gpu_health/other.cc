#include "gpu_health/other.h"

#include <cstdio>
#include <optional>

#include "common/files.h"

namespace gpu {
namespace {

using health::list;
using health::read_number;
using health::read_text;

constexpr size_t kCardsMax = 64;

// "ue: 2\nce: 10", one file per block of the chip (amdgpu RAS).
void add_errors(const std::string& text, AmdSample& out) {
  for (const std::string_view line : health::split(text, '\n')) {
    const auto parts = health::words(line);
    if (parts.size() < 2) continue;
    const auto count = health::number(parts[1]);
    if (parts[0] == "ue:" && count) out.uncorrected += *count;
    if (parts[0] == "ce:" && count) out.corrected += *count;
  }
}

// "0x00000001 : 0x00001000 : R": retired, P: pending, F: could not be retired.
void add_pages(const std::string& text, AmdSample& out) {
  for (const std::string_view line : health::split(text, '\n')) {
    const auto parts = health::words(line);
    if (parts.empty()) continue;
    out.pages_pending += parts.back() == "P";
    out.pages_retired += parts.back() == "R" || parts.back() == "F";
  }
}

void add_temperatures(const std::string& folder, AmdSample& out) {
  for (const std::string& monitor : list(folder)) {
    for (int i = 1; i <= 3; ++i) {  // edge, junction, memory
      const std::string sensor = folder + "/" + monitor + "/temp" + std::to_string(i);
      const auto now = read_number(sensor + "_input"), critical = read_number(sensor + "_crit");
      if (!now || !critical || *critical == 0) continue;
      const bool nearer = double(*now) - double(*critical) > (out.temperature_c - out.critical_c) * 1000;
      if (out.critical_c >= 0 && !nearer) continue;
      out.temperature_c = double(*now) / 1000;
      out.critical_c = double(*critical) / 1000;
    }
  }
}

}  // namespace

std::vector<std::string> amd_cards(const std::string& root) {
  std::vector<std::string> cards;
  for (const std::string& name : list(root + "/sys/class/drm")) {
    if (name.compare(0, 4, "card") != 0 || name.find('-') != std::string::npos) continue;
    const auto vendor = read_text(root + "/sys/class/drm/" + name + "/device/vendor");
    if (vendor == "0x1002" && cards.size() < kCardsMax) cards.push_back(name);
  }
  return cards;
}

AmdSample amd_sample(const std::string& root, const std::string& card) {
  AmdSample out;
  const std::string device = root + "/sys/class/drm/" + card + "/device";
  out.present = health::exists(device);
  std::snprintf(out.bus, sizeof out.bus, "%s", health::link_name(device).c_str());
  const auto vendor = read_text(device + "/vendor");
  out.readable = vendor.has_value();
  for (const std::string& name : list(device + "/ras")) {
    if (name.find("_err_count") == std::string::npos) continue;
    if (const auto text = read_text(device + "/ras/" + name)) add_errors(*text, out);
  }
  if (const auto text = read_text(device + "/ras/gpu_vram_bad_pages")) add_pages(*text, out);
  add_temperatures(device + "/hwmon", out);
  return out;
}

std::vector<Npu> parse_npu_smi(const std::string& text) {
  std::vector<Npu> found;
  std::optional<Npu> first_line;
  for (const std::string_view line : health::split(text, '\n')) {
    const auto columns = health::split(line, '|');
    if (columns.size() < 5) continue;
    const auto left = health::words(columns[1]), middle = health::words(columns[2]),
               right = health::words(columns[3]);
    if (left.empty() || middle.empty()) continue;
    const auto number = health::number(left[0]);
    if (!number || *number > 1023) continue;  // a heading
    if (first_line) {
      first_line->bus = std::string(middle[0]);
      found.push_back(*first_line);
      first_line.reset();
    } else if (left.size() >= 2 && right.size() >= 2) {
      first_line = Npu();
      first_line->number = int(*number);
      first_line->name = std::string(left[1]);
      first_line->health = std::string(middle[0]);
      first_line->power_w = health::real(right[0]).value_or(-1);
      first_line->temperature_c = health::real(right[1]).value_or(-1);
    }
  }
  return found;
}

std::string run_npu_smi(const std::string& program) {
  if (!health::exists(program) || program.find('\'') != std::string::npos) return {};
  FILE* pipe = popen(("'" + program + "' info 2>/dev/null").c_str(), "re");
  if (!pipe) return {};
  std::string text;
  char buffer[4096];
  size_t got = 0;
  while (text.size() < (60u << 10) && (got = fread(buffer, 1, sizeof buffer, pipe)) > 0)
    text.append(buffer, got);
  pclose(pipe);
  return text;
}

}  // namespace gpu
