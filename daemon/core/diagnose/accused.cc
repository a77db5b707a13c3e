#include "core/diagnose/accused.h"

#include <re2/re2.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <span>
#include <utility>

#include "base/text.h"
#include "core/diagnose/subject.h"

namespace culprit::diagnose {
namespace {

constexpr size_t kHosts = 16, kDevices = 16;  // names per finding

constexpr std::array<std::string_view, 4> kHostHoles = {"host", "host2", "host3", "node"};
constexpr std::array<std::string_view, 2> kOtherEnds = {"peer", "server"};
// The host of the shell whose command wrote the lines below; a host that a runtime has lost.
constexpr std::string_view kShellHost = "shell_host", kLostHost = "lost_host";
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

bool is_root_of_elsewhere(const rules::Rule& rule) {
  return rule.role == rules::Role::kRoot &&
         (rule.restart == Restart::kElsewhere || rule.restart_after_steps == Restart::kElsewhere);
}

bool is_of_gpu(Component c) {
  return c == Component::kGpu || c == Component::kGpuMemory || c == Component::kNvlink ||
         c == Component::kDriver || c == Component::kCudaRuntime;
}

// Devices of the accused host in the words of a line whose rule has no hole for them: "0000:83:00.0",
// "GPU id 3", "device_id=3", "mlx5_3". A number of a memory module or disk is none.
void name_devices_in_text(const rules::Rule& rule, std::string_view text, Finding& f) {
  static const RE2 kAddress(
      R"re(\b((?:[0-9A-Fa-f]{4}|[0-9A-Fa-f]{8}):[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-7])\b)re");
  static const RE2 kUuid(R"re(\b(GPU-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})\b)re");
  static const std::string kEnd = R"re((\d{1,3})(?:[^\w.:]|[.:](?:\s|$)|$))re";
  static const RE2 kGpu(R"re((?i)\bGPU(?: ?id| index)?[ :#=]{0,2})re" + kEnd);
  static const RE2 kDevice(R"re((?i)\b(?:device|NPU|accelerator)(?:[ _]?id)?[ \[:#=]{1,2})re" + kEnd);
  static const RE2 kAdapter(
      R"re(\b(mlx[45]_(?:ib|bond_)?\d+|hfi1_\d+|bnxt_re\d+|irdma\d+|cxi\d+|hsn\d+|efa_\d+)\b)re");
  const bool gpu = is_of_gpu(rule.component), network = rule.component == Component::kNetwork;
  if (!gpu && !network && rule.component != Component::kPcie) return;
  const struct {
    const RE2& pattern;
    std::string_view before;
    bool applies;
  } forms[] = {{kAddress, "", true},
               {kUuid, "", gpu},
               {kGpu, "GPU ", gpu},
               {kDevice, "device ", gpu},
               {kAdapter, "", network}};
  for (const auto& form : forms) {
    re2::StringPiece value;
    if (!form.applies || !RE2::PartialMatch({text.data(), text.size()}, form.pattern, &value)) continue;
    return add(f.named_devices, kDevices, device_name(form.before, {value.data(), value.size()}));
  }
}

void name_devices(const rules::Rule& rule, const logs::RuleLine& line, Finding& f) {
  bool named = false;
  for (const auto& [hole, before] : kDeviceHoles)
    if (const std::string_view value = trim(hole_of(rule, line, hole)); !value.empty()) {
      add(f.named_devices, kDevices, device_name(before, value));
      named = true;
    }
  if (!named && is_root_of_elsewhere(rule)) name_devices_in_text(rule, line.text, f);
}

// The host in the words of a line whose rule has no hole for it: "offline this node (gpu-7)",
// "hostname=gpu-7". A name has a digit: a word behind "the host" is none.
std::string_view host_in_text(std::string_view text) {
  static const RE2 kField(R"re(\b(?:hostname|nodename|node_name)\W{1,3}([A-Za-z][\w.-]*))re");
  static const RE2 kWords(R"re((?i)\b(?:node|host|machine)(?:[ :=] ?| ?\())re"
                          R"re(((?:[a-z][\w.]*-[\w.-]*\d|[a-z]+\d)[\w.-]*|\d+\.\d+\.\d+\.\d+)\b)re");
  re2::StringPiece value;
  const re2::StringPiece all(text.data(), text.size());
  if (!RE2::PartialMatch(all, kField, &value) && !RE2::PartialMatch(all, kWords, &value)) return {};
  return {value.data(), value.size()};
}

// The global rank that a line names. A local rank counts as global if at most one host is known.
std::optional<uint32_t> rank_in(const detect::View& view, const rules::Rule& rule,
                                const logs::RuleLine& line) {
  for (const std::string_view name : {"rank", "rank2", "failed_rank"})
    if (const auto rank = number_in(hole_of(rule, line, name))) return rank;
  if (view.known_hosts > 1) return std::nullopt;
  for (const std::string_view name : {"local_rank", "worker"})
    if (const auto rank = number_in(hole_of(rule, line, name))) return rank;
  return std::nullopt;
}

About about_rank(const detect::View& view, uint32_t rank) {
  const uint32_t unit = view.rank_numbered(rank);
  if (unit == detect::kNowhere) return {detect::kNowhere, rank};
  if (view.by_rank) return {unit, {}};
  return {view.ranks[unit].host, rank};
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
  if (is_root_of_elsewhere(rule))
    if (const std::string_view name = bare(host_in_text(line.text)); is_name(name)) return {name, true, true};
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

About accused_by(const detect::View& view, const rules::Rule& rule, const logs::RuleLine& line) {
  if (!line.about.empty())
    if (const uint32_t host = view.host_named(line.about); host != detect::kNowhere)
      return {host, view.by_rank ? std::nullopt : line.about_rank};
  if (line.about_rank) return about_rank(view, *line.about_rank);
  const NamedHost named = host_in(rule, line);
  const uint32_t host = named.name.empty() ? detect::kNowhere : unit_called(view, named.name);
  if (host != detect::kNowhere) return {host, {}};
  if (const auto rank = rank_in(view, rule, line)) return about_rank(view, *rank);
  // A line that names another host or rank does not accuse its writer.
  if (named.accuses) return {detect::kNowhere, {}, named.is_host ? std::string(named.name) : std::string()};
  return {view.host_of_writer[line.place.writer], {}};
}

ShellHosts::ShellHosts(const logs::JobLog& log, const rules::Ruleset& rules) {
  for (const logs::RuleLine& line : log.rule_lines())
    if (const auto name = hole_of(rules.rules()[line.rule], line, kShellHost); is_name(name))
      hosts_.try_emplace({line.place.source, line.place.line}, name);
}

std::string_view ShellHosts::at(const logs::LogPlace& place) const {
  const auto below = hosts_.upper_bound({place.source, place.line});
  if (below == hosts_.begin() || std::prev(below)->first.first != place.source) return {};
  return std::prev(below)->second;
}

void name_left_out(const detect::View& view, const AccusedBy& by, Finding& f) {
  for (const logs::RuleLine* line : by.lines) name_devices(*by.rule, *line, f);
  for (const std::string& name : by.absent) add(f.named_hosts, kHosts, name);
  for (const logs::RuleLine* line : by.lines)
    if (const std::string_view name = bare(hole_of(*by.rule, *line, kLostHost)); is_name(name))
      add(f.lost_hosts, kHosts, std::string(name));
  // A command's output has no header: the shell's prompt above it names the host.
  if (by.hosts.empty() && by.absent.empty() && by.typed_on.size() == 1 && is_root_of_elsewhere(*by.rule))
    add(f.named_hosts, kHosts, *by.typed_on.begin());
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
