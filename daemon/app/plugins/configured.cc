#include "app/plugins/configured.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <optional>

#include "app/plugins/trial.h"
#include "io/trusted_path.h"
#include "plughost/plugins.h"

namespace culprit::app {
namespace {

// Selects like the daemon: if a name is in several folders, the first one counts.
std::string library_of(const Config& config, const std::string& name) {
  for (const std::string& folder : config.plugins) {
    std::string path = fmt::format("{}/{}.so", folder, name);
    std::error_code error;
    if (std::filesystem::exists(path, error)) return path;
  }
  return {};
}

// The daemon's user, whose files the daemon trusts in addition to root's.
std::optional<uid_t> daemon_uid(const Config& config) {
  struct stat status;
  if (::stat(config.state_dir.c_str(), &status) != 0) return std::nullopt;
  return status.st_uid;
}

class Checker {
 public:
  Checker(const Config& config, std::string host_program)
      : config_(config), host_program_(std::move(host_program)) {}

  ConfiguredPlugins run() {
    if (!config_.watches()) return {};
    for (const PluginConfig& table : config_.plugin)
      if (table.enabled) check(table);
    return std::move(out_);
  }

 private:
  void check(const PluginConfig& table) {
    const std::string path = library_of(config_, table.name);
    if (path.empty())
      return wrong(table, fmt::format("no folder of plugins has a file {}.so: {}", table.name,
                                      fmt::join(config_.plugins, ", ")));
    // The library's code runs with this user's rights, so only a file that this user trusts is loaded.
    const auto library = io::open_trusted_file(path, ::geteuid());
    if (!library) return not_trusted(table, path, library.error().text);
    const std::string fault = fault_of_options(table, *library);
    ::close(*library);
    if (!fault.empty()) return wrong(table, path + ": " + fault);
    ++out_.sound;
  }

  void not_trusted(const PluginConfig& table, const std::string& path, const std::string& why) {
    const auto uid = daemon_uid(config_);
    const auto for_daemon = uid ? io::open_trusted_file(path, *uid) : tl::unexpected(Error{});
    if (!for_daemon) return wrong(table, path + ": " + why);
    ::close(*for_daemon);
    out_.notes.push_back(fmt::format("plugin {}: {} is not checked, as this user does not trust it: {}",
                                     table.name, path, why));
  }

  std::string fault_of_options(const PluginConfig& table, int library) const {
    Trial::Options options;
    options.host_program = host_program_.empty() ? plughost::default_host_program() : host_program_;
    options.name = table.name;
    options.library = library;
    options.limits.memory_bytes = table.memory;
    options.limits.call_ns = table.call_timeout_ns;
    for (const auto& [name, value] : table.environment) options.environment.push_back(name + "=" + value);
    Trial trial(options);
    if (!trial.load()) return trial.problem();
    if (const auto sound = check_description(trial.description(), table.name); !sound)
      return sound.error().text;
    const auto values = plughost::resolve_options(trial.description(), table.options);
    return values ? "" : values.error().text;
  }

  void wrong(const PluginConfig& table, const std::string& what) {
    out_.errors.push_back(fmt::format("plugin {}: {}", table.name, what));
  }

  const Config& config_;
  const std::string host_program_;
  ConfiguredPlugins out_;
};

}  // namespace

ConfiguredPlugins check_configured_plugins(const Config& config, const std::string& host_program) {
  return Checker(config, host_program).run();
}

}  // namespace culprit::app
