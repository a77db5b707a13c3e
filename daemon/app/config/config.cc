#include "app/config/config.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <tuple>

#include "app/config/config_places.h"
#include "app/config/options.h"
#include "base/limits.h"
#include "base/text.h"
#include "ingest/file.h"
#include "io/secret_file.h"
#include "io/tls.h"
#include "io/trusted_path.h"

namespace culprit::app {
namespace {

namespace fs = std::filesystem;

constexpr size_t kConfigFileBytes = 1 << 20;  // per file: 1,000 [[log]] tables need a tenth
constexpr size_t kConfigFiles = 1000;         // limit of files in conf.d

// The errors have no path.
Result<std::string> read_whole(const std::string& path, uid_t owner) {
  const auto opened = io::open_trusted_file(path, owner);
  if (!opened) return tl::unexpected(opened.error());
  auto file = ingest::File::adopt(*opened, path);
  if (!file) return tl::unexpected(file.error());
  std::string text;
  char block[64 << 10];
  for (;;) {
    const ingest::ReadOutcome got = file->read(block, sizeof block);
    if (got.error) return tl::unexpected(ingest::system_error(path, got.error));
    if (got.bytes == 0) return text;
    text.append(block, got.bytes);
    if (text.size() > kConfigFileBytes)
      return fail(ErrorCode::kLimit, fmt::format("larger than {}", format_bytes(kConfigFileBytes)));
  }
}

// Files in conf.d in the main file's folder, sorted by name.
std::vector<std::string> drop_in_files(const std::string& main, std::vector<ConfigError>& errors) {
  const fs::path folder = fs::path(main).parent_path() / "conf.d";
  std::vector<std::string> out;
  std::error_code error;
  if (!fs::exists(folder, error) && !error) return out;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    const std::string name = it->path().filename().string();
    if (name.ends_with(".toml") && !name.starts_with('.')) out.push_back(it->path().string());
  }
  if (error) {
    const Error why = ingest::system_error(folder.string(), error.value());
    errors.push_back({folder.string(), 0, 0, why.text.substr(folder.string().size() + 2), why.code});
  }
  std::sort(out.begin(), out.end());
  if (out.size() > kConfigFiles) {
    errors.push_back(
        {folder.string(), 0, 0, fmt::format("holds more than {} files", kConfigFiles), ErrorCode::kLimit});
    out.resize(kConfigFiles);
  }
  return out;
}

std::string own_host_name() {
  char name[256] = {};
  if (::gethostname(name, sizeof name - 1) != 0 || name[0] == '\0') return "localhost";
  return name;
}

// Launchers and programs that deliver mail run with the daemon's rights. A missing program fails only when it
// is used: it may be installed later.
void check_programs(LoadedConfig& loaded, uid_t owner) {
  const Config::Act& act = loaded.config.act;
  if (act.scheduler == Scheduler::kExec && !act.launcher.command.empty()) {
    const std::string& program = act.launcher.command.front();
    const Status trusted = io::check_trusted_program(program, owner);
    if (!trusted &&
        (trusted.error().code == ErrorCode::kDenied || trusted.error().code == ErrorCode::kInvalid))
      loaded.errors.push_back(
          error_at(loaded, "act.launcher.command", fmt::format("{}: {}", program, trusted.error().text)));
  }
  if (const std::string& align = loaded.config.check.align; !align.empty()) {
    const std::string program = align.substr(0, align.find_first_of(" \t"));
    const Status trusted = io::check_trusted_program(program, owner);
    if (!trusted &&
        (trusted.error().code == ErrorCode::kDenied || trusted.error().code == ErrorCode::kInvalid))
      loaded.errors.push_back(
          error_at(loaded, "check.align", fmt::format("{}: {}", program, trusted.error().text)));
  }
  for (const AlertConfig& alert : loaded.config.alert) {
    if (alert.type != AlertType::kMail) continue;
    const Status trusted = io::check_trusted_program(alert.sendmail, owner);
    if (trusted ||
        (trusted.error().code != ErrorCode::kDenied && trusted.error().code != ErrorCode::kInvalid))
      continue;
    ConfigError error = error_at(loaded, sendmail_key(alert.name), "");
    error.what = fmt::format("'alert.sendmail' {}: {}", alert.sendmail, trusted.error().text);
    loaded.errors.push_back(std::move(error));
  }
}

}  // namespace

std::string sendmail_key(const std::string& receiver) { return "alert " + receiver + ".sendmail"; }

std::string format_error(const ConfigError& error) {
  if (error.line == 0) return fmt::format("{}: error: {}", error.file, error.what);
  return fmt::format("{}:{}:{}: error: {}", error.file, error.line, error.column, error.what);
}

std::string format_warning(const ConfigError& error) {
  return fmt::format("{}:{}:{}: warning: {}", error.file, error.line, error.column, error.what);
}

ConfigError error_at(const LoadedConfig& loaded, const std::string& key, const std::string& what) {
  ConfigError error{"", 0, 0, fmt::format("'{}': {}", key, what)};
  if (const auto at = loaded.places.find(key); at != loaded.places.end())
    error.file = at->second.file, error.line = at->second.line, error.column = at->second.column;
  return error;
}

LoadedConfig load_config(const std::string& path, std::optional<uid_t> owner) {
  const std::string main = path.empty() ? kConfigFile : path;
  std::vector<ConfigText> texts;
  std::vector<ConfigError> unread;
  std::vector<std::string> files = {main};
  for (std::string& file : drop_in_files(main, unread)) files.push_back(std::move(file));
  for (const std::string& file : files) {
    auto text = read_whole(file, owner.value_or(::geteuid()));
    if (text) {
      texts.push_back({file, std::move(*text)});
    } else if (file != main || !path.empty() || text.error().code != ErrorCode::kNotFound) {
      std::string what = text.error().text;
      if (what.starts_with(file + ": ")) what = what.substr(file.size() + 2);
      unread.push_back({file, 0, 0, std::move(what), text.error().code});
    }
  }
  LoadedConfig out = parse_config(texts);
  out.errors.insert(out.errors.begin(), unread.begin(), unread.end());
  check_programs(out, owner.value_or(::geteuid()));
  if (out.config.host.name.empty()) out.config.host.name = own_host_name();
  return out;
}

std::vector<LogWatch> Config::files() const {
  std::vector<LogWatch> out = logs;
  out.insert(out.end(), dumps.begin(), dumps.end());
  if (pods.enabled) out.push_back({.path = pods.folder + "/*/*/*.log", .pods = true});
  return out;
}

std::vector<std::string> changed_keys(const Config& before, const Config& after) {
  Config a = before, b = after;
  std::vector<std::string> out;
  for (const Option& option : config_options())
    if (!is_listed(option.table()) && value_text(option, a) != value_text(option, b))
      out.emplace_back(option.key);
  if (before.logs != after.logs) out.emplace_back(kLogTable);
  if (before.dumps != after.dumps) out.emplace_back(kDumpTable);
  if (before.plugin != after.plugin) out.emplace_back(kPluginTable);
  if (before.alert != after.alert) out.emplace_back(kAlertTable);
  return out;
}

std::vector<std::string> keys_for_restart(const Config& before, const Config& after) {
  std::vector<std::string> out = changed_keys(before, after);
  std::erase_if(out, [](const std::string& key) { return is_listed(key) || find_option(key)->reloads; });
  return out;
}

Config with_reloadable(const Config& before, Config after) {
  Config from = before;
  const auto copy = [&](const auto& type) {
    if constexpr (std::is_same_v<std::decay_t<decltype(type)>, WordType>)
      type.set(after, type.get(from));
    else
      type.of(after) = type.of(from);
  };
  for (const Option& option : config_options())
    if (!option.reloads && !is_listed(option.table())) std::visit(copy, option.type);
  return after;
}

RuleOptions rule_options(const Config& config, std::optional<uid_t> owner) {
  const std::vector<std::string> defaults = Config().rules;
  RuleOptions out;
  out.site = false;  // the folder is one of the defaults
  out.trusted_uid = owner.value_or(::geteuid());
  for (const std::string& path : config.rules) {
    const bool is_default = std::find(defaults.begin(), defaults.end(), path) != defaults.end();
    // An empty default folder is ignored: the library is built in.
    if (!is_default || !read_rule_files({{path}, false, false}).texts.empty()) out.paths.push_back(path);
  }
  return out;
}

std::vector<std::string> without_effect(const Config& config) {
  std::vector<std::string> out;
  if (config.role == DaemonRole::kCollector && !config.logs.empty())
    out.emplace_back("log: has no effect with role collector: it reads no logs, its agents do");
  if (config.role == DaemonRole::kCollector && !config.dumps.empty())
    out.emplace_back("dump: has no effect with role collector: its agents pick dumps up");
  if (config.role == DaemonRole::kCollector && config.pods.enabled)
    out.emplace_back("pods: has no effect with role collector: its agents read the pods' logs");
  if (!config.pods.enabled && !config.pods.namespaces.empty())
    out.emplace_back("pods.namespaces: has no effect while pods.enabled is off");
  if (config.role == DaemonRole::kCollector && !config.plugin.empty())
    out.emplace_back("plugin: has no effect with role collector: its agents run plugins");
  if (config.role == DaemonRole::kAgent && !config.alert.empty())
    out.emplace_back("alert: has no effect with role agent: its collector sends alerts");
  if (config.role == DaemonRole::kAgent && !config.otlp.endpoint.empty())
    out.emplace_back("otlp: has no effect with role agent: its collector exports");
  if (!config.alert.empty() && config.http.url.empty() && config.role != DaemonRole::kAgent)
    out.emplace_back("alert: alerts have no links without http.url");
  if (config.role != DaemonRole::kAgent && !config.forward.to.empty())
    out.emplace_back("forward: has an effect with role agent only: what is taken stays on this host");
  const bool tcp = !config.http.listen.starts_with("unix:");
  if (tcp && config.http.token_file.empty())
    out.emplace_back(
        "http.listen: over TCP only /healthz, /metrics and the links of culprit page work without "
        "http.token_file");
  if (tcp && !config.http.tls.used() && !is_loopback(config.http.listen))
    out.emplace_back("http.listen: tokens and evidence are readable on the way without http.tls");
  if (!tcp && config.http.tls.used()) out.emplace_back("http.tls: has no effect on a unix socket");
  const auto& act = config.act;
  if (act.mode != ActMode::kObserve && act.scheduler == Scheduler::kNone)
    out.emplace_back("act.mode: has no effect without act.scheduler");
  if (act.mode != ActMode::kObserve && !act.isolate && !act.restart && !act.advise)
    out.emplace_back("act.mode: has no effect while act.isolate, act.restart and act.advise are off");
  const bool has_pool = act.scheduler == Scheduler::kSlurm || act.scheduler == Scheduler::kKubernetes;
  if (act.spares > 0 && (!has_pool || !act.restart))
    out.emplace_back(
        "act.spares: has an effect with act.scheduler slurm or kubernetes, and act.restart, alone");
  if (act.spares > 0 && act.spares_check_ns > 0 && !act.check)
    out.emplace_back("act.spares: spares are not checked while act.check is off");
  const bool launches = act.scheduler == Scheduler::kExec || act.scheduler == Scheduler::kWebhook;
  for (const auto& [on, stage, order] : {std::tuple(act.isolate, "isolate", "isolate"),
                                         {act.restart, "restart", "run_again"},
                                         {act.give_back, "return", "return"}})
    if (launches && on && std::ranges::find(act.launcher.orders, order) == act.launcher.orders.end())
      out.push_back(fmt::format("act.{}: has no effect while act.launcher.orders has no {}", stage, order));
  const auto& cluster = config.cluster;
  if (cluster.used() && config.role == DaemonRole::kAgent)
    out.emplace_back("cluster: has no effect with role agent: collectors share the jobs");
  else if (cluster.used() && act.scheduler == Scheduler::kNone)
    out.emplace_back("cluster: partitions are owned, and nothing is done, without act.scheduler");
  if (!cluster.used() &&
      (!cluster.name.empty() || !cluster.address.empty() || !cluster.http.empty() || cluster.memory > 0))
    out.emplace_back("cluster: has no effect without cluster.database");
  if (cluster.bucket.used() && (!cluster.used() || config.role == DaemonRole::kAgent))
    out.emplace_back("cluster.bucket: has no effect without cluster.database, and with role agent");
  const auto& copies = config.copies;
  const bool copies_on = copies.enabled && config.watches();
  if (copies.enabled && !config.watches()) out.emplace_back("copies: has no effect with role collector");
  if (copies_on && !copies.folders.empty() && copies.to.empty() && copies.command.empty())
    out.emplace_back("copies.folders: has no effect without copies.to or copies.command");
  if (copies_on && copies.folders.empty() && !copies.to.empty())
    out.emplace_back("copies.to: has no effect without copies.folders");
  if (copies_on && !copies.command.empty() && !copies.to.empty())
    out.emplace_back("copies.to: copies.command copies in its place; users may still restore from there");
  if (act.give_back && !act.check)
    out.emplace_back("act.return: has no effect while act.check is off: a return follows a passed check");
  return out;
}

namespace {

ConfigError certificate_error(const LoadedConfig& loaded, const char* table, const io::TlsTrouble& trouble) {
  constexpr const char* kKeys[] = {"cert", "key", "ca", "crl"};
  return error_at(loaded, fmt::format("{}.tls.{}", table, kKeys[static_cast<size_t>(trouble.file)]),
                  trouble.error.text);
}

// Reports a token file that is unreadable or readable by others: the daemon would refuse it.
std::string trouble_of_tokens(const LoadedConfig& loaded) {
  const std::string& path = loaded.config.http.token_file;
  if (path.empty() || loaded.config.http.listen.starts_with("unix:")) return "";
  const auto text = io::read_secret(path, limits::kTokenFileBytes);
  return text ? "" : format_error(error_at(loaded, "http.token_file", text.error().text)) + "\n";
}

// HTTPS checks no certificates of clients, so authorities are not checked.
std::string trouble_of_https(const LoadedConfig& loaded, TimeNs now) {
  const TlsFiles& files = loaded.config.http.tls;
  std::string out;
  if (!files.used() || loaded.config.http.listen.starts_with("unix:")) return out;
  for (const io::TlsTrouble& trouble :
       io::examine({files.cert, files.key, files.cert, ""}, {io::TlsStream::Side::kAccepts, "", now}))
    if (trouble.file != io::TlsTrouble::File::kCa && !trouble.may_be_meant)
      out += format_error(certificate_error(loaded, "http", trouble)) + "\n";
  return out;
}

// Errors of the tokens, and of the certificates that the role needs: these would fail at the start or at the
// peer. `warnings`: problems that may be intended.
std::string trouble_of_certificates(const LoadedConfig& loaded, TimeNs now, std::string& warnings) {
  const Config& config = loaded.config;
  const bool agent = config.role == DaemonRole::kAgent;
  const TlsFiles& files = agent ? config.forward.tls : config.collector.tls;
  std::string out = trouble_of_tokens(loaded) + trouble_of_https(loaded, now);
  if (!files.used()) return out;
  io::TlsUse use{io::TlsStream::Side::kAccepts, "", now};
  if (agent) use = {io::TlsStream::Side::kConnects, config.host.name, now};
  for (const io::TlsTrouble& trouble : io::examine({files.cert, files.key, files.ca, files.crl}, use)) {
    const ConfigError error = certificate_error(loaded, agent ? "forward" : "collector", trouble);
    if (trouble.may_be_meant)
      warnings += format_warning(error) + "\n";
    else
      out += format_error(error) + "\n";
  }
  return out;
}

}  // namespace

ConfigCheck check_config(const std::string& path, TimeNs now) {
  ConfigCheck out;
  const LoadedConfig loaded = load_config(path);
  for (const ConfigError& error : loaded.errors) {
    out.errors += format_error(error) + "\n";
    // A file could not be checked, or an error was found.
    const bool unread =
        error.line == 0 && error.code != ErrorCode::kInvalid && error.code != ErrorCode::kLimit;
    out.status = std::max(out.status, unread ? 2 : 1);
  }
  std::string warnings;
  if (out.status == 0) out.errors += trouble_of_certificates(loaded, now, warnings);
  if (!out.errors.empty()) out.status = std::max(out.status, 1);
  const LoadedRules rules = load_rules(rule_options(loaded.config));
  for (const Error& error : rules.files.errors) out.errors += error.text + "\n";
  for (const rules::RuleError& error : rules.errors) out.errors += rules::format_error(error) + "\n";
  if (!rules.set) out.status = std::max(out.status, 1);
  if (rules.set)
    for (const OpenRule& open : open_rules(*rules.set)) warnings += open.file + ": " + open.what + "\n";
  std::string files;
  for (const std::string& file : loaded.files) files += (files.empty() ? "" : ", ") + file;
  if (out.status == 0)
    out.output = fmt::format("{}: ok, with {}\n", files.empty() ? "the defaults" : files,
                             counted(rules.set->rules().size(), "rule"));
  out.errors += warnings;
  for (const std::string& sentence : without_effect(loaded.config)) out.errors += sentence + "\n";
  std::string safe;
  for (std::string_view line : split(out.errors, '\n'))
    safe += (safe.empty() ? "" : "\n") + to_terminal(line);
  out.errors = std::move(safe);
  return out;
}

}  // namespace culprit::app
