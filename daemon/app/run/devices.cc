#include "app/run/devices.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <filesystem>
#include <fstream>

#include "base/ascii.h"
#include "base/text.h"

namespace culprit::app {
namespace {

namespace fs = std::filesystem;

constexpr size_t kGpus = 256, kFileBytes = 16 << 10;

std::string start_of(const fs::path& file) {
  std::string out(kFileBytes, '\0');
  std::ifstream in(file, std::ios::binary);
  in.read(out.data(), static_cast<std::streamsize>(out.size()));
  out.resize(static_cast<size_t>(in.gcount()));
  return out;
}

std::string lowered(std::string_view text) {
  std::string out(text.size(), '\0');
  lower_ascii(text, out.data());
  return out;
}

template <typename Number>
std::optional<Number> number_of(std::string_view text, int base = 10) {
  Number out = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out, base);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return out;
}

// The value behind `name` and its separator, in a file with a name and a value on each line.
std::string_view value_of(std::string_view text, std::string_view name) {
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (!line.starts_with(name) || line.size() == name.size()) continue;
    line.remove_prefix(name.size());
    if (line.front() == ':' || line.front() == ' ') return trim(line.substr(1));
  }
  return {};
}

// The entries of a folder of a driver; none if there is no such folder.
std::vector<fs::path> entries_of(const fs::path& folder) {
  std::vector<fs::path> out;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end && out.size() < kGpus;
       at.increment(error))
    out.push_back(at->path());
  return out;
}

// A driver that lost a device prints question marks for its UUID.
bool is_uuid(std::string_view text) {
  return text.starts_with("GPU-") && text.size() > 8 && text.size() <= 64 &&
         std::ranges::all_of(text.substr(4), [](char c) { return c == '-' || hex_value(c) >= 0; });
}

std::vector<Gpu> nvidia_gpus(const fs::path& root) {
  std::vector<Gpu> out;
  for (const fs::path& folder : entries_of(root / "proc/driver/nvidia/gpus")) {
    const std::string text = start_of(folder / "information");
    const std::string uuid(value_of(text, "GPU UUID"));
    if (is_uuid(uuid))
      out.push_back({uuid, lowered(value_of(text, "Bus Location")), std::string(value_of(text, "Model"))});
  }
  return out;
}

std::vector<Gpu> amd_gpus(const fs::path& root) {
  std::vector<Gpu> out;
  for (const fs::path& folder : entries_of(root / "sys/class/kfd/kfd/topology/nodes")) {
    const std::string text = start_of(folder / "properties");
    const auto id = number_of<uint64_t>(value_of(text, "unique_id"));
    const auto place = number_of<uint32_t>(value_of(text, "location_id"));
    if (!id || *id == 0 || !place) continue;  // a processor
    const uint32_t domain = number_of<uint32_t>(value_of(text, "domain")).value_or(0);
    out.push_back(
        {fmt::format("GPU-{:016x}", *id),
         fmt::format("{:04x}:{:02x}:{:02x}.{:x}", domain, *place >> 8 & 0xff, *place >> 3 & 0x1f, *place & 7),
         std::string(value_of(text, "gfx_target_version"))});
  }
  return out;
}

// "0000:9b:00.0", "9b:00", "PCI:00000000:9B:00": what is not written matches any.
struct Pci {
  std::optional<uint32_t> domain, bus, device, function;
};

std::optional<Pci> pci_of(std::string_view text) {
  if (lowered(text.substr(0, 4)) == "pci:") text.remove_prefix(4);
  std::vector<std::string_view> parts;
  for (size_t at = 0; at <= text.size() && parts.size() < 4;) {
    const size_t end = std::min(text.find(':', at), text.size());
    parts.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  if (parts.size() < 2 || parts.size() > 3) return std::nullopt;
  Pci out;
  std::string_view last = parts.back();
  if (const size_t dot = last.find('.'); dot != last.npos) {
    if (!(out.function = number_of<uint32_t>(last.substr(dot + 1), 16))) return std::nullopt;
    last = last.substr(0, dot);
  }
  out.device = number_of<uint32_t>(last, 16);
  out.bus = number_of<uint32_t>(parts[parts.size() - 2], 16);
  if (parts.size() == 3 && !(out.domain = number_of<uint32_t>(parts.front(), 16))) return std::nullopt;
  return out.device && out.bus ? std::optional(out) : std::nullopt;
}

bool is_address_of(const std::string& address, std::string_view name) {
  const auto whole = pci_of(address), wanted = pci_of(name);
  if (!whole || !wanted) return false;
  return whole->bus == wanted->bus && whole->device == wanted->device &&
         (!wanted->domain || whole->domain == wanted->domain) &&
         (!wanted->function || whole->function == wanted->function);
}

std::optional<size_t> index_of(const VisibleGpus& visible, std::string_view name) {
  const auto at = std::ranges::find_if(visible.gpus, [&](const Gpu& gpu) {
    return lowered(gpu.uuid) == lowered(name) || is_address_of(gpu.address, name);
  });
  if (at != visible.gpus.end()) return static_cast<size_t>(at - visible.gpus.begin());
  for (const std::string_view before : {"GPU ", "device "})
    if (visible.numbered && name.starts_with(before))
      if (const auto n = number_of<size_t>(name.substr(before.size())); n && *n < visible.gpus.size())
        return n;
  return std::nullopt;
}

// Applies "2,3" or "GPU-a,GPU-b" to all GPUs of the host; false: an entry names none of them.
bool choose(VisibleGpus& all, std::string_view list) {
  std::vector<Gpu> out;
  while (!list.empty()) {
    const size_t end = std::min(list.find(','), list.size());
    const std::string_view entry = trim(list.substr(0, end));
    list.remove_prefix(std::min(end + 1, list.size()));
    const auto n = number_of<size_t>(entry);
    const auto begins = [&](const Gpu& gpu) { return entry.size() > 4 && gpu.uuid.starts_with(entry); };
    const auto at = n ? all.gpus.end() : std::ranges::find_if(all.gpus, begins);
    if (n && all.numbered && *n < all.gpus.size())
      out.push_back(all.gpus[*n]);
    else if (at != all.gpus.end())
      out.push_back(*at);
    else
      return false;
  }
  all.gpus = std::move(out);
  all.numbered = true;  // the list is the order
  return true;
}

}  // namespace

VisibleGpus visible_gpus(const Lookup& variable, const std::string& root) {
  VisibleGpus out{"CUDA_VISIBLE_DEVICES", nvidia_gpus(root)};
  if (out.gpus.empty()) out = {"ROCR_VISIBLE_DEVICES", amd_gpus(root)};
  std::ranges::sort(out.gpus, {}, &Gpu::address);
  const auto other = [&](const Gpu& gpu) { return gpu.model != out.gpus.front().model; };
  out.numbered = std::ranges::none_of(out.gpus, other) || variable("CUDA_DEVICE_ORDER") == "PCI_BUS_ID";
  if (const auto list = variable(out.variable); list && !choose(out, *list)) out.gpus.clear();
  return out;
}

std::optional<VisibleGpus> without(const VisibleGpus& visible, const std::vector<std::string>& names) {
  std::vector<bool> left_out(visible.gpus.size());
  for (const std::string& name : names) {
    const auto at = index_of(visible, name);
    if (!at) return std::nullopt;
    left_out[*at] = true;
  }
  VisibleGpus out{visible.variable, {}, visible.numbered};
  for (size_t i = 0; i < visible.gpus.size(); ++i)
    if (!left_out[i]) out.gpus.push_back(visible.gpus[i]);
  return out;
}

std::optional<VisibleGpus> leave_out(const VisibleGpus& visible, RestartAdvice& advice, uint32_t least) {
  if (advice.devices.empty()) return std::nullopt;
  auto remaining = without(visible, advice.devices);
  if (!remaining) return std::nullopt;
  advice.devices.clear();
  for (const Gpu& gpu : visible.gpus)
    if (!contains(*remaining, gpu)) advice.devices.push_back(gpu.uuid);
  if (remaining->gpus.size() < least) return std::nullopt;
  return remaining;
}

bool contains(const VisibleGpus& visible, const Gpu& gpu) {
  return std::ranges::any_of(visible.gpus, [&](const Gpu& one) { return one.uuid == gpu.uuid; });
}

std::string uuid_list(const VisibleGpus& visible) {
  std::vector<std::string> out;
  for (const Gpu& gpu : visible.gpus) out.push_back(gpu.uuid);
  return fmt::format("{}", fmt::join(out, ","));
}

}  // namespace culprit::app
