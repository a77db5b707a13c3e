#include "plughost/plugins.h"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <limits>

#include "culprit/plugin.h"
#include "io/installed.h"
#include "plughost/clock.h"
#include "plughost/supervisor.h"

namespace culprit::plughost {
namespace {

// Limit of remembered error sentences, each logged once. A user who may write to a folder must not fill
// memory and log.
constexpr size_t kErrorsReportedMax = 256;

}  // namespace

Plugins::Plugins(PluginsOptions options, std::function<void(PluginFinding&&)> found, PluginLog log)
    : options_(std::move(options)), found_(std::move(found)), log_(std::move(log)) {
  if (options_.host_program.empty()) options_.host_program = default_host_program();
}

Plugins::~Plugins() = default;

void Plugins::report_error_once(const std::string& sentence) {
  if (errors_reported_.size() >= kErrorsReportedMax) return;
  if (errors_reported_.insert(sentence).second) log_(CULPRIT_ERR, sentence);
}

PluginTable Plugins::table_of(const std::string& name) const {
  for (const PluginTable& table : options_.tables)
    if (table.name == name) return table;
  PluginTable table;
  table.name = name;
  return table;
}

void Plugins::scan(TimeNs mono) { compare(!std::exchange(scanned_, true), mono); }

std::vector<std::string> Plugins::reload(std::vector<std::string> folders, std::vector<PluginTable> tables,
                                         TimeNs mono) {
  options_.folders = std::move(folders);
  options_.tables = std::move(tables);
  errors_reported_.clear();
  for (const auto& [name, plugin] : plugins_)
    if (plugin->gave_up()) in_use_.erase(name);
  scanned_ = true;
  compare(true, mono);
  std::vector<std::string> out;
  for (const auto& [name, plugin] : plugins_)
    if (!plugin->keeps().empty()) out.push_back(fmt::format("plugin {} {}", name, plugin->keeps()));
  return out;
}

// Compares the files of the folders with the running plugins. `at_once`: also accepts files that the last
// scan did not see.
void Plugins::compare(bool at_once, TimeNs mono) {
  PluginFiles files = find_plugins(options_.folders, options_.trusted_uid);
  for (const std::string& error_report : files.errors_reported) report_error_once(error_report);
  std::map<std::string, PluginFile>& found = files.by_name;
  for (const auto& [name, seen] : found) {
    PluginTable table = table_of(name);
    if (!table.enabled) continue;
    const auto before = seen_.find(name);
    if (!at_once && (before == seen_.end() || before->second != seen)) continue;
    const auto running = plugins_.find(name);
    if (running == plugins_.end()) {
      Supervisor::Setup setup{std::move(table), seen.path, &options_, found_, log_};
      const auto& made = plugins_[name] = std::make_unique<Supervisor>(std::move(setup));
      made->start(mono);
    } else if (const bool other_file = in_use_[name] != seen;
               other_file || running->second->table() != table) {
      running->second->replace(seen.path, std::move(table), other_file, mono);
    } else {
      continue;
    }
    in_use_[name] = seen;
  }
  for (const auto& [name, plugin] : plugins_)
    if (!found.contains(name) || !table_of(name).enabled)
      plugin->stop(found.contains(name) ? Supervisor::End::kDisabled : Supervisor::End::kRemoved, mono);
  seen_ = std::move(found);
  for (const PluginTable& table : options_.tables)
    if (table.enabled && !seen_.contains(table.name))
      report_error_once(
          fmt::format("plugin {}: no folder of plugins has a file {}.so", table.name, table.name));
}

void Plugins::observe(std::string_view events) {
  for (const auto& [name, plugin] : plugins_) plugin->observe(events);
}

TimeNs Plugins::round_all(TimeNs wall, TimeNs mono) {
  TimeNs due = std::numeric_limits<TimeNs>::max();
  uint64_t wanted = 0;
  for (auto at = plugins_.begin(); at != plugins_.end();) {
    due = std::min(due, at->second->round(wall, mono));
    wanted |= at->second->wanted();
    at = at->second->is_over() ? plugins_.erase(at) : std::next(at);
  }
  wanted_.store(wanted, std::memory_order_relaxed);
  return due;
}

TimeNs Plugins::round(TimeNs wall, TimeNs mono, int wait_ms) {
  const TimeNs due = round_all(wall, mono);
  if (wait_ms <= 0) return due;
  std::vector<pollfd> descriptors;
  for (const auto& [name, plugin] : plugins_) plugin->add_descriptors(descriptors);
  if (options_.wake >= 0) descriptors.push_back({options_.wake, POLLIN, 0});
  const TimeNs until_due = due > mono ? (due - mono + kNsPerMs - 1) / kNsPerMs : 0;
  const int wait = static_cast<int>(std::min<TimeNs>(wait_ms, until_due));
  if (::poll(descriptors.data(), descriptors.size(), wait) <= 0) return due;
  uint64_t rings = 0;
  if (options_.wake >= 0) (void)!::read(options_.wake, &rings, sizeof rings);
  return round_all(wall, mono);
}

std::vector<PluginRow> Plugins::rows() const {
  std::vector<PluginRow> out;
  for (const auto& [name, plugin] : plugins_) out.push_back(plugin->row());
  const auto add = [&](const std::string& name, const std::string& path, const char* state) {
    if (plugins_.contains(name)) return;
    PluginRow& row = out.emplace_back();
    row.name = name;
    row.path = path;
    row.state = state;
    row.own_process = table_of(name).own_process;
  };
  for (const auto& [name, seen] : seen_)
    if (!table_of(name).enabled) add(name, seen.path, "disabled");
  for (const PluginTable& table : options_.tables)
    if (!seen_.contains(table.name)) add(table.name, "", table.enabled ? "missing" : "disabled");
  std::sort(out.begin(), out.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
  return out;
}

void Plugins::stop(TimeNs mono, int wait_ms) {
  for (const auto& [name, plugin] : plugins_) plugin->stop(Supervisor::End::kOfDaemon, mono);
  const TimeNs began = monotonic_ns();
  for (;;) {
    const TimeNs spent = monotonic_ns() - began;
    round_all(kNoTime, mono + spent);
    const TimeNs left_ms = wait_ms - spent / kNsPerMs;
    if (plugins_.empty() || left_ms <= 0) break;
    std::vector<pollfd> descriptors;
    for (const auto& [name, plugin] : plugins_) plugin->add_descriptors(descriptors);
    // A process that closed its channel exits a moment later.
    ::poll(descriptors.data(), descriptors.size(), static_cast<int>(std::min<TimeNs>(left_ms, 10)));
  }
  plugins_.clear();
  wanted_.store(0, std::memory_order_relaxed);
}

std::string default_host_program() { return io::helper_path("culprit-plugin-host"); }

}  // namespace culprit::plughost
