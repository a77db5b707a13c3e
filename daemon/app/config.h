// The configuration of culpritd (FORMATS.md section 8): plain values, and the one table of options that
// parses, checks, documents and compares them. Whoever loaded a Config owns it; nothing here keeps state, and
// any thread may call. load_config reads files and blocks; parse_config is pure. But for certificates, which
// check_config reads, nothing here looks at what a path leads to: that is culprit doctor's and the start's
// business.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "app/rules.h"
#include "base/status.h"
#include "base/time.h"

namespace culprit::app {

constexpr const char* kConfigFile = "/etc/culprit/culpritd.toml";

enum class DaemonRole : uint8_t { kAgent, kCollector, kBoth };
enum class ActMode : uint8_t { kObserve, kAct };
enum class EvidencePolicy : uint8_t { kAll, kFindings, kNone };
enum class LogLevel : uint8_t { kDebug, kInfo, kWarning, kError };

// Files of a certificate; all three are set, or none.
struct TlsFiles {
  std::string cert, key, ca;
  bool used() const { return !cert.empty(); }
  bool operator==(const TlsFiles&) const = default;
};

// One [[log]] or [[dump]] table. Exactly one of job and job_pattern is set, or none: then the job is told by
// the process that writes (its cgroup or SLURM_JOB_ID); of dumps it is the only one that runs.
struct LogWatch {
  std::string path;         // an absolute glob: *, ?, [...], and ** as a whole name
  std::string job;          // of all that it matches
  std::string job_pattern;  // RE2 with a group named job, on the path
  bool dumps = false;       // a [[dump]] table
  bool operator==(const LogWatch&) const = default;
};

struct Config {
  DaemonRole role = DaemonRole::kBoth;
  std::string state_dir = "/var/lib/culprit";
  std::string runtime_dir = "/run/culprit";
  std::vector<std::string> rules = {"/usr/share/culprit/rules", "/etc/culprit/rules.d"};
  std::vector<std::string> plugins = {"/etc/culprit/plugins.d"};
  struct Daemon {
    LogLevel log_level = LogLevel::kInfo;
  } daemon;
  struct Host {
    std::string name;  // load_config fills in the machine's
  } host;
  std::vector<LogWatch> logs, dumps;
  struct Jobs {
    TimeNs ended_after_ns = 600 * kNsPerSecond;
  } jobs;
  struct Trace {
    std::string socket = "trace.sock";
    std::string job;  // empty: lines that name none belong to the writing process's
    std::string rings = "/dev/shm/culprit";
  } trace;
  struct Kernel {
    bool enabled = true;
  } kernel;
  struct Spool {
    uint64_t max_size = uint64_t{4} << 30;
  } spool;
  struct Forward {
    std::string to;  // empty: nowhere
    TlsFiles tls;
    struct Evidence {
      EvidencePolicy policy = EvidencePolicy::kAll;
      uint64_t budget = 0;  // bytes a second; 0: no bound
      TimeNs around_ns = 600 * kNsPerSecond;
    } evidence;
  } forward;
  struct Collector {
    std::string listen = "127.0.0.1:7421";
    TlsFiles tls;
    uint64_t retention_max_size = uint64_t{200} << 30;
    TimeNs retention_max_age_ns = TimeNs{30} * 24 * 3600 * kNsPerSecond;
    std::vector<std::string> healthy;
  } collector;
  struct Http {
    std::string listen = "unix:api.sock";
    std::string token_file;  // empty: no POST over TCP
  } http;
  struct Hang {
    TimeNs after_ns = 60 * kNsPerSecond;
    int64_t steps = 5;
  } hang;
  struct Act {
    ActMode mode = ActMode::kObserve;
  } act;

  std::vector<LogWatch> files() const;  // logs, then dumps
  bool watches() const { return role != DaemonRole::kCollector; }
  // For io::Env::listen: names relative to runtime_dir are joined with it.
  std::string trace_address() const;  // "unix:/run/culprit/trace.sock"
  std::string http_address() const;   // the same, or "127.0.0.1:7420"
};

// What is wrong in a configuration. line 0: in the file as a whole.
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
  Config config;                              // of use only without errors
  std::vector<ConfigError> errors;            // all of the load, by file and place
  std::vector<std::string> files;             // that were read, in order
  std::map<std::string, ConfigPlace> places;  // of keys, where they were set last
};

// `path` empty: kConfigFile, where it is there. Then conf.d/*.toml beside it, in order of name: where files
// set the same key the later one wins, [[log]] and [[dump]] tables add up.
LoadedConfig load_config(const std::string& path);

struct ConfigText {
  std::string file, text;
};
LoadedConfig parse_config(std::span<const ConfigText> texts);

// Keys whose values differ ("hang.after"; [[log]] and [[dump]] tables: "log", "dump"), or for a restart.
std::vector<std::string> changed_keys(const Config& before, const Config& after);
std::vector<std::string> keys_for_restart(const Config& before, const Config& after);

// `after`, but for what only a restart may change: that is as `before` has it.
Config with_reloadable(const Config& before, Config after);

// A commented culpritd.toml with every key, its default and what it means.
std::string config_defaults();
// The same as a table in markdown.
std::string config_reference();

// What its `rules` name, for load_rules: the default folders where they are there, others whether or not.
RuleOptions rule_options(const Config& config);

// What the configuration may say already and nothing in this version does, a sentence each: who relies on it
// must hear of it at the start and from --check.
std::vector<std::string> without_effect(const Config& config);

// culpritd --check: loads the configuration, the certificates that it names and its rules; all errors, a line
// each, and the exit status (FORMATS.md section 7).
struct ConfigCheck {
  int status = 0;
  std::string output, errors;  // for standard output and standard error
};
ConfigCheck check_config(const std::string& path, TimeNs now);

}  // namespace culprit::app
