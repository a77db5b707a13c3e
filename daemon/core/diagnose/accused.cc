#include "core/diagnose/accused.h"

#include <algorithm>
#include <array>
#include <span>
#include <utility>

#include "base/text.h"
#include "core/diagnose/subject.h"

namespace culprit::diagnose {
namespace {

constexpr size_t kHosts = 16, kDevices = 16;  // names per finding

constexpr std::array<std::string_view, 4> kHostHoles = {"host", "host2", "host3", "node"};
constexpr std::array<std::string_view, 2> kOtherEnds = {"peer", "server"};
// Holes with a device of the accused host, and the prefix for a bare number in each.
constexpr std::array<std::pair<std::string_view, std::string_view>, 8> kDeviceHoles = {{{"pci", "GPU "},
                                                                                        {"pci2", "GPU "},
                                                                                        {"address", ""},
                                                                                        {"uuid", ""},
                                                                                        {"gpu", "GPU "},
                                                                                        {"gpu2", "GPU "},
                                                                                        {"device", "device "},
                                                                                        {"card", "card "}}};

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_name_char(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' || c == '_' || c == '.';
}

// "10.0.0.3<4791>", "node-7:29500", "'node-7',": removes the port and the surrounding characters.
std::string_view bare(std::string_view text) {
  constexpr std::string_view kEdge = " \t'\"`()<>,;.";
  const size_t begin = text.find_first_not_of(kEdge);
  if (begin == text.npos) return {};
  text = text.substr(begin);
  text = text.substr(0, text.find_first_of("<:/"));
  const size_t end = text.find_last_not_of(kEdge);
  return end == text.npos ? std::string_view() : text.substr(0, end + 1);
}

// Whether the text may be the name or address of one host. A number alone is an index.
bool is_name(std::string_view text) {
  if (text.empty() || text.size() > 253 || !std::ranges::all_of(text, is_name_char)) return false;
  return !std::ranges::all_of(text, is_digit);
}

bool is_address(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return is_digit(c) || c == '.'; });
}

std::string_view without_domain(std::string_view name) {
  return is_address(name) ? name : name.substr(0, name.find('.'));
}

void add(std::vector<std::string>& names, size_t max, std::string name) {
  if (names.size() < max && std::ranges::find(names, name) == names.end()) names.push_back(std::move(name));
}

std::string device_name(std::string_view before, std::string_view value) {
  const bool number = !value.empty() && std::ranges::all_of(value, is_digit);
  return number ? std::string(before) + std::string(value) : std::string(value);
}

void name_devices(const rules::Rule& rule, const logs::RuleLine& line, Finding& f) {
  for (const auto& [hole, before] : kDeviceHoles)
    if (const std::string_view value = trim(hole_of(rule, line, hole)); !value.empty())
      add(f.named_devices, kDevices, device_name(before, value));
}

}  // namespace

NamedHost host_in(const rules::Rule& rule, const logs::RuleLine& line) {
  // srun reports tasks on other hosts: "srun: error: node-3: task 25: Killed".
  constexpr std::string_view kSrun = "srun: error: ", kTask = ": task";
  if (const std::string_view text = line.text; text.starts_with(kSrun)) {
    const std::string_view rest = text.substr(kSrun.size());
    const std::string_view name = rest.substr(0, rest.find(':'));
    if (is_name(name) && rest.substr(name.size()).starts_with(kTask)) return {name, true, true};
  }
  for (const bool is_host : {true, false}) {
    const auto holes = is_host ? std::span<const std::string_view>(kHostHoles)
                               : std::span<const std::string_view>(kOtherEnds);
    for (const std::string_view hole : holes) {
      const std::string_view value = hole_of(rule, line, hole);
      if (value.empty()) continue;
      const std::string_view name = bare(value);
      if (!name.empty() && std::ranges::all_of(name, is_digit)) continue;  // an index
      return {is_name(name) ? name : std::string_view(), true, is_host && is_name(name)};
    }
  }
  return {};
}

uint32_t unit_called(const detect::View& view, std::string_view name) {
  if (const uint32_t host = view.host_named(name); host != detect::kNowhere) return host;
  const std::string_view alone = without_domain(name);
  if (alone != name) return view.host_named(alone);
  const auto same = [&](const detect::Unit& unit) { return without_domain(unit.name) == alone; };
  const auto at = std::ranges::find_if(view.hosts, same);
  return at == view.hosts.end() ? detect::kNowhere : static_cast<uint32_t>(at - view.hosts.begin());
}

void name_left_out(const detect::View& view, const AccusedBy& by, Finding& f) {
  for (const logs::RuleLine* line : by.lines) name_devices(*by.rule, *line, f);
  for (const std::string& name : by.absent) add(f.named_hosts, kHosts, name);
  if (view.hosts.size() > 1 && by.hosts.size() * 2 > view.hosts.size()) return;
  for (const uint32_t unit : by.hosts) {
    if (!view.by_rank) {
      add(f.named_hosts, kHosts, view.hosts[unit].name);
      continue;
    }
    for (const uint32_t writer : view.hosts[unit].writers)
      if (const auto& host = view.log->writers()[writer].host) add(f.named_hosts, kHosts, *host);
  }
}

}  // namespace culprit::diagnose
