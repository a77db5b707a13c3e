// The configuration of culpritd (docs/formats.md section 8): plain values, and one table of options that
// parses, checks, documents and compares them. The caller owns a loaded Config; this module has no state; any
// thread. load_config reads files and blocks; parse_config is pure. Paths are not checked here, except
// certificates by check_config; `culprit doctor` and the start check them.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "app/config/rule_files.h"
#include "base/status.h"
#include "base/time.h"

namespace culprit::app {

constexpr const char* kConfigFile = "/etc/culprit/culpritd.toml";

enum class DaemonRole : uint8_t { kAgent, kCollector, kBoth };
enum class ActMode : uint8_t { kObserve, kAsk, kAct };
enum class Scheduler : uint8_t { kNone, kSlurm, kKubernetes, kExec, kWebhook };
enum class BucketStyle : uint8_t { kPath, kHost };
enum class EvidencePolicy : uint8_t { kAll, kFindings, kNone };
enum class PluginProcess : uint8_t { kOwn, kDaemon };
enum class AlertType : uint8_t { kWebhook, kAlertmanager, kMail };
enum class LogLevel : uint8_t { kDebug, kInfo, kWarning, kError };

// Certificate files: cert and key are set together or not at all; ca where peers' certificates are checked;
// crl is optional.
struct TlsFiles {
  std::string cert, key, ca, crl;
  bool used() const { return !cert.empty(); }
  bool operator==(const TlsFiles&) const = default;
};

// One [[log]] or [[dump]] table. At most one of job and job_pattern is set. With neither, the writing process
// determines the job (its cgroup or SLURM_JOB_ID); a dump belongs to the only running job.
struct LogWatch {
  std::string path;         // an absolute glob: *, ?, [...], and ** as a whole name
  std::string job;          // job of all matching files
  std::string job_pattern;  // RE2 that matches the path; its group named job is the job id
  bool dumps = false;       // a [[dump]] table
  bool pods = false;        // [pods]: the pods decide which files and which job
  bool operator==(const LogWatch&) const = default;
};

// One [[plugin]] table: how a plugin runs. Plugins without a table have these defaults.
struct PluginConfig {
  std::string name;  // name of the plugin: the file is NAME.so
  bool enabled = true;
  PluginProcess process = PluginProcess::kOwn;
  uint64_t memory = 256 << 20;  // memory limit of the plugin's process in bytes; 0: no limit
  int64_t cpu_percent = 10;     // limit in percent of a core, averaged over a minute
  int64_t findings_per_minute = 60;
  TimeNs call_timeout_ns = 10 * kNsPerSecond;                    // limit of one call
  std::vector<std::pair<std::string, std::string>> options;      // options that the plugin defines; values as
                                                                 // text
  std::vector<std::pair<std::string, std::string>> environment;  // environment of the plugin's process
  bool operator==(const PluginConfig&) const = default;
};

// One [[alert]] table: a receiver and the alerts that it gets. An empty list selects all.
struct AlertConfig {
  std::string name;
  AlertType type = AlertType::kWebhook;
  std::string url, url_file;    // one of them is set, except for mail; a webhook's address may be a secret
  std::string headers_file;     // file with secret headers: lines "NAME: VALUE"
  std::string secret_file;      // file with the value of {{secret}} in the template
  std::string template_file;    // empty: Culprit's own form
  std::string ca, proxy;        // empty: the system's authorities, no proxy
  std::vector<std::string> to;  // recipients of mail
  std::string from;             // sender of mail
  std::string sendmail = "/usr/sbin/sendmail";
  std::vector<std::string> categories, actions, jobs;  // jobs: globs
  std::vector<std::string> owners;                     // users of jobs, by name or uid; "*": any
  int64_t min_confidence = 0;                          // per cent
  bool resolved = true;                                // also when it is over
  bool operator==(const AlertConfig&) const = default;
};

struct Config {
  DaemonRole role = DaemonRole::kBoth;
  std::string state_dir = "/var/lib/culprit";
  std::string runtime_dir = "/run/culprit";
  std::vector<std::string> rules = {"/usr/share/culprit/rules", "/etc/culprit/rules.d"};
  std::vector<std::string> plugins = {"/usr/lib/culprit/plugins.d", "/etc/culprit/plugins.d"};
  struct Daemon {
    LogLevel log_level = LogLevel::kInfo;
  } daemon;
  struct Host {
    std::string name;  // load_config fills in the machine's name
  } host;
  std::vector<LogWatch> logs, dumps;
  struct Pods {
    bool enabled = false;
    std::string folder = "/var/log/pods";
    std::vector<std::string> namespaces;      // patterns: all of their pods are followed
    std::string server, token_file, ca_file;  // server empty: those of the pod
  } pods;
  std::vector<PluginConfig> plugin;
  std::vector<AlertConfig> alert;
  struct Alerts {
    int64_t storm_above = 10;
    TimeNs expire_after_ns = TimeNs{24} * 3600 * kNsPerSecond;
    TimeNs remind_every_ns = 0;                                    // never
    std::vector<std::string> critical = {"hardware", "platform"};  // categories
  } alerts;
  struct Otlp {
    std::string endpoint;  // empty: nothing is exported
    std::string headers_file, ca, proxy;
    TimeNs interval_ns = 60 * kNsPerSecond;
    bool logs = true, metrics = true;
  } otlp;
  struct Jobs {
    TimeNs ended_after_ns = 600 * kNsPerSecond;
    std::string only;  // the one job that this daemon watches; empty: any
  } jobs;
  struct Engine {
    uint64_t memory = 0;  // memory limit of all engines in bytes; 0: from the limit of the control group
  } engine;
  struct Trace {
    std::string socket = "trace.sock";
    std::string job;  // job of lines without a job; empty: the writing process's job
    std::string rings = "/dev/shm/culprit";
  } trace;
  struct Kernel {
    bool enabled = true;
  } kernel;
  struct Journal {
    bool enabled = false;
    std::vector<std::string> units;  // names or patterns; empty: all
    std::string directory;           // of the journal's files; empty: the system's journal
  } journal;
  struct Ras {
    bool enabled = true;
    std::vector<std::string> addresses = {"127.0.0.1:28028"};
    TimeNs interval_ns = 60 * kNsPerSecond;
  } ras;
  struct Spool {
    uint64_t max_size = uint64_t{4} << 30;
  } spool;
  struct Forward {
    std::vector<std::string> to;  // collectors: the next if one fails; empty: nowhere
    TlsFiles tls;
    struct Evidence {
      EvidencePolicy policy = EvidencePolicy::kAll;
      uint64_t budget = 0;  // bytes per second; 0: no limit
      TimeNs around_ns = 600 * kNsPerSecond;
    } evidence;
  } forward;
  struct Collector {
    std::string listen = "127.0.0.1:7421";
    TlsFiles tls;
    uint64_t retention_max_size = uint64_t{200} << 30;
    TimeNs retention_max_age_ns = TimeNs{30} * 24 * 3600 * kNsPerSecond;
    uint64_t read_twice_above = 32 << 20;  // bytes
    std::vector<std::string> healthy;
  } collector;
  struct Http {
    std::string listen = "unix:api.sock";
    std::string token_file;  // empty: TCP clients reach only /healthz, /metrics and links of the page
    TlsFiles tls;            // without ca: clients authenticate by token, not by certificate
    std::string url;         // address of the page in a browser; empty: unknown
    std::vector<std::string> hosts;
    int64_t metrics_jobs = 200;
    struct Acl {
      bool users = false;
      std::string group = "culprit";
    } acl;
  } http;
  struct Hang {
    TimeNs after_ns = 60 * kNsPerSecond;
    int64_t steps = 5;
  } hang;
  struct Capture {
    bool enabled = true;
    std::vector<std::string> tools = {"py-spy", "eu-stack", "gdb"};
    int64_t samples = 5;
    TimeNs every_ns = 10 * kNsPerSecond;
    TimeNs budget_ns = 15 * kNsPerSecond;
    int64_t at_once = 4;
    int64_t rounds = 5;
  } capture;
  struct Act {
    ActMode mode = ActMode::kObserve;
    Scheduler scheduler = Scheduler::kNone;
    bool isolate = false, restart = false;  // stages
    bool check = false, give_back = false;  // stages: checks of hosts, and the return after a passed one
    std::vector<std::string> partitions;    // where the stages are on; empty: everywhere
    std::string slurm_conf;                 // empty: Slurm's own
    int64_t spares = 0;                     // nodes that are held back as spares
    std::string spares_selector;            // label of nodes of Kubernetes that may be spares; empty: all
    std::string spares_partition;           // empty: Slurm's default
    TimeNs spares_check_ns = TimeNs{6} * 3600 * kNsPerSecond;  // 0: they are not checked
    struct Kubernetes {
      std::string server, token_file, ca_file;           // server empty: those of the pod
      std::string space;                                 // namespace of jobs; empty: all
      std::string lease = "culprit/culprit-controller";  // NAMESPACE/NAME; empty: none
      bool evict = false;
    } kubernetes;
    struct Launcher {
      std::vector<std::string> command;          // exec
      std::string url, headers_file, ca, proxy;  // webhook
      std::vector<std::string> orders = {"isolate", "return", "end_tasks", "run_again", "verify"};
      TimeNs within_ns = 60 * kNsPerSecond;
    } launcher;
    bool end_tasks = false;   // of this host, at the collector's request
    bool advise = false;      // the collector and agents give advice to jobs
    int64_t confidence = 85;  // per cent, to isolate
    struct Breaker {
      TimeNs window_ns = 600 * kNsPerSecond;
      int64_t window_hosts = 2, day_hosts = 3, at_once_hosts = 1;
      int64_t window_permille = 3, day_permille = 20, at_once_permille = 100;
    } breaker;
    TimeNs veto_ns = TimeNs{24} * 3600 * kNsPerSecond;
    TimeNs probation_ns = TimeNs{7} * 24 * 3600 * kNsPerSecond;
    TimeNs question_ns = 900 * kNsPerSecond;
  } act;
  struct Cluster {
    std::string database;  // libpq's connection string; empty: this collector is the only one
    std::string name;      // of this member; empty: host.name
    std::string address;   // that agents reach; empty: collector.listen
    std::string http;      // that people and the command line reach; empty: none
    uint64_t memory = 0;   // above it no partition is taken; 0: three quarters of the process's limit
    bool used() const { return !database.empty(); }
    struct Bucket {
      std::string url, name;  // empty: none
      std::string region = "us-east-1";
      BucketStyle style = BucketStyle::kPath;
      std::string credentials, ca;  // files; empty: the environment, the system's
      uint64_t cache = uint64_t{1} << 30;
      TimeNs max_age_ns = TimeNs{400} * 24 * 3600 * kNsPerSecond;  // of rows of objects
      bool used() const { return !url.empty() && !name.empty(); }
    } bucket;
  } cluster;
  struct Check {
    bool enabled = false;               // at the collector's request
    std::vector<std::string> commands;  // vendor diagnostics: words separated by blanks
    std::string align;                  // prints rows of an equal step; empty: none
    uint64_t align_memory = uint64_t{8} << 30;
    uint64_t memory = 128 << 20, disk = 64 << 20;
    TimeNs within_ns = 120 * kNsPerSecond;
    TimeNs every_ns = 600 * kNsPerSecond;
  } check;
  struct Copies {
    bool enabled = false;
    std::vector<std::string> folders;  // of checkpoints on this host
    bool parts = false;                // each host writes only its own files of a checkpoint
    std::vector<std::string> to;       // HOST:PORT of the agents that store this host's copies
    std::vector<std::string> peers;    // more addresses that users of this host may restore from
    std::string command;               // copies in place of the transfer; empty: none
    uint64_t rate = 64 << 20;          // bytes in a second
    TimeNs every_ns = 10 * kNsPerSecond;
    TimeNs settle_ns = 10 * kNsPerSecond;
    std::string socket = "copies.sock";
    std::string store;  // empty: stores nothing for other hosts
    std::string listen = "0.0.0.0:7444";
    std::vector<std::string> accept;  // hosts; empty: all
    uint64_t max_size = uint64_t{200} << 30, min_free = uint64_t{10} << 30;
    int64_t keep = 1;
    TimeNs max_age_ns = TimeNs{14} * 24 * 3600 * kNsPerSecond;
    bool restore_anywhere = true;
  } copies;

  std::vector<LogWatch> files() const;  // logs, dumps, then the pods' logs
  bool watches() const { return role != DaemonRole::kCollector; }
  // For io::Env::listen: relative names are joined with runtime_dir.
  std::string trace_address() const;   // "unix:/run/culprit/trace.sock"
  std::string http_address() const;    // "unix:…", or "127.0.0.1:7420"
  std::string copies_address() const;  // "unix:/run/culprit/copies.sock"
  std::string local_address() const;   // the API on a unix socket: http_address(), or api.sock
};

// An error in a configuration. Line 0: the file as a whole.
struct ConfigError {
  std::string file;
  uint32_t line = 0, column = 0;  // from 1; columns count characters
  std::string what;               // one sentence, no final full stop
  ErrorCode code = ErrorCode::kInvalid;
};
// "culpritd.toml:3:1: error: unknown key 'rolle'; did you mean 'role'?"
std::string format_error(const ConfigError& error);

struct ConfigPlace {
  std::string file;
  uint32_t line = 0, column = 0;
};

struct LoadedConfig {
  Config config;                              // valid only without errors
  std::vector<ConfigError> errors;            // all errors, by file and position
  std::vector<std::string> files;             // files in the order of reading
  std::map<std::string, ConfigPlace> places;  // position at which each key was last set
};
// The key in `places` of the program that delivers a receiver's mail; without it, the key of the receiver's
// table.
std::string sendmail_key(const std::string& receiver);

// `path` empty: kConfigFile if it exists. Then reads conf.d/*.toml in the same folder, sorted by name. A
// later file overrides keys of earlier ones; [[log]], [[dump]], [[plugin]] and [[alert]] tables add up. A
// file names programs that run with the daemon's rights. kDenied refuses a file or a mail program that a user
// other than root and `owner` (none: the caller's) could change or replace.
LoadedConfig load_config(const std::string& path, std::optional<uid_t> owner = std::nullopt);

struct ConfigText {
  std::string file, text;
};
LoadedConfig parse_config(std::span<const ConfigText> texts);

// Keys with different values ("hang.after"; of listed tables "log", "dump", "plugin", "alert"), and the
// subset that needs a restart.
std::vector<std::string> changed_keys(const Config& before, const Config& after);
std::vector<std::string> keys_for_restart(const Config& before, const Config& after);

// `after`, except that keys which need a restart keep their values from `before`.
Config with_reloadable(const Config& before, Config after);

// A commented culpritd.toml with every key, its default and its meaning.
std::string config_defaults();
// The same as a markdown table.
std::string config_reference();

// The configured rule folders for load_rules: default folders only if they hold rules. `owner`: the daemon's
// user; none: the caller's.
RuleOptions rule_options(const Config& config, std::optional<uid_t> owner = std::nullopt);

// One sentence for each option that is set but has no effect in this version. The start and --check print
// these sentences, so users do not rely on the option.
std::vector<std::string> without_effect(const Config& config);

// culpritd --check: checks the configuration, its certificates and its rules. Holds all errors, one per line,
// and the exit status (docs/formats.md section 7).
struct ConfigCheck {
  int status = 0;
  std::string output, errors;  // text for standard output and standard error
};
ConfigCheck check_config(const std::string& path, TimeNs now);

}  // namespace culprit::app
