#include "app/doctor/doctor.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <nlohmann/json.hpp>

#include "app/config/options.h"
#include "app/token_text.h"
#include "base/text.h"
#include "model/json_text.h"

namespace culprit::app {
namespace {

// Manual renewal of certificates needs some days.
constexpr TimeNs kCertificateLeftNs = TimeNs{14} * 24 * 3600 * kNsPerSecond;
constexpr uint32_t kRead = 4, kWrite = 2, kSearch = 1;
constexpr uint64_t kInotifyInstances = 16;  // instances reserved for other programs of the user; the daemon
                                            // uses one
constexpr uint64_t kDescriptors = 4096;     // sockets, segments, the database, rings
constexpr uint64_t kRingsBytes = 64 << 20;  // 16 processes with a ring of 65,536 records each
constexpr const char* kCaptureSocket = "/run/culprit-capture/socket";
constexpr const char* kReinstall = "apt-get install --reinstall culprit";
constexpr size_t kNamed = 3;                              // examples in a sentence
constexpr TimeNs kSaneNs = 1'735'689'600 * kNsPerSecond;  // 2025: earlier times mean a wrong clock

// The daemon's own word about its controller.
DoctorRow controller_row(const nlohmann::json& reported) {
  const auto word = [&](const char* name) {
    const auto at = reported.find(name);
    return at != reported.end() && at->is_string() ? at->get<std::string>() : std::string();
  };
  const std::string trouble = word("trouble"), remedy = word("remedy");
  if (trouble.empty()) return {"controller", Health::kOk, fmt::format("act.mode is {}", word("mode")), {}};
  if (remedy.empty()) return {"controller", Health::kOk, trouble, {}};  // another collector acts
  const auto since = reported.find("trouble_since_ns");
  const bool known = since != reported.end() && since->is_number_integer();
  const std::string when = known ? " since " + format_time(since->get<TimeNs>()) : "";
  return {"controller", Health::kFail, fmt::format("nothing is done{}: {}", when, trouble), remedy};
}

struct JournalLook {
  std::string folder;  // empty: the system's journal
  std::string user;
  std::function<bool(const PathFacts&, uint32_t)> may;
  std::string switches_off;
};

// Whether the daemon's user can read the journal.
DoctorRow journal_row(const JournalLook& look, const Probes& probes) {
  const auto row = [](Health health, std::string what, std::string remedy) {
    return DoctorRow{"journal", health, std::move(what), std::move(remedy)};
  };
  if (probes.path("/usr/bin/journalctl").error != 0 && probes.path("/bin/journalctl").error != 0)
    return row(Health::kFail, "there is no journalctl here: the journal is not read", look.switches_off);
  const std::string mend = fmt::format("usermod -aG systemd-journal {}", look.user);
  if (!look.folder.empty()) {
    const PathFacts facts = probes.path(look.folder);
    if (facts.error != 0) return row(Health::kFail, look.folder + " is not there", "ls -l " + look.folder);
    if (!look.may(facts, kRead | kSearch))
      return row(Health::kFail, fmt::format("{} may not read {}", look.user, look.folder), mend);
    return row(Health::kOk, look.folder + " is read with journalctl", {});
  }
  const std::string machine(trim(probes.text("/etc/machine-id").value_or("")));
  for (const char* folder : {"/var/log/journal", "/run/log/journal"}) {
    const PathFacts facts = probes.path(fmt::format("{}/{}/system.journal", folder, machine));
    if (facts.error == ENOENT) continue;
    if (facts.error == 0 && look.may(facts, kRead))
      return row(Health::kOk, fmt::format("{} is read with journalctl", folder), {});
    return row(Health::kFail, fmt::format("{} may not read the journal in {}", look.user, folder), mend);
  }
  return row(Health::kWarn, "there is no journal of this machine in /var/log/journal or /run/log/journal",
             "systemctl status systemd-journald");
}

// Collects the rows; holds facts that all checks share.
class Examination {
 public:
  Examination(const DoctorOptions& options, const Probes& probes) : options_(options), probes_(probes) {}

  std::vector<DoctorRow> run() {
    find_account();
    configuration();
    account();
    rules();
    folders();
    logs();
    inotify();
    descriptors();
    clock();
    rings();
    kernel();
    if (config().watches() && config().journal.enabled)
      rows_.push_back(
          journal_row({config().journal.directory, account_.name,
                       [this](const PathFacts& facts, uint32_t wanted) { return may(facts, wanted); },
                       setting("journal", "enabled = false", false)},
                      probes_));
    openat2();
    jobs();
    capture();
    plugins();
    pods();
    token();
    alerts();
    trace();
    daemon();
    return std::move(rows_);
  }

 private:
  const Config& config() const { return loaded_.config; }

  void ok(const char* check, std::string what) { rows_.push_back({check, Health::kOk, std::move(what), {}}); }
  void warn(const char* check, std::string what, std::string remedy) {
    rows_.push_back({check, Health::kWarn, std::move(what), std::move(remedy)});
  }
  void bad(const char* check, std::string what, std::string remedy) {
    rows_.push_back({check, Health::kFail, std::move(what), std::move(remedy)});
  }

  // Whether the daemon's user has all permissions of `wanted` (kRead, ...) on a path. Follows the kernel's
  // rules (acl(5)): as owner, named user, group member, or other.
  bool may(const PathFacts& facts, uint32_t wanted) const {
    if (account_.uid == 0) return true;
    const auto grants = [&](uint32_t bits) { return (bits & wanted) == wanted; };
    if (facts.uid == account_.uid) return grants(facts.mode >> 6 & 7);
    if (const auto user = facts.users.find(account_.uid); user != facts.users.end())
      return grants(user->second);
    bool member = in_group(facts.gid);
    if (member && grants(facts.mode >> 3 & 7)) return true;
    for (const auto& [gid, bits] : facts.groups) {
      if (!in_group(gid)) continue;
      if (grants(bits)) return true;
      member = true;
    }
    return !member && grants(facts.mode & 7);
  }

  // A command that sets a key in a drop-in file in conf.d. If the key is already set, a person must edit it.
  std::string setting(const char* table, const std::string& line, bool is_default) const {
    const std::string main = options_.config.empty() ? kConfigFile : options_.config;
    if (!is_default) return fmt::format("${{EDITOR:-vi}} {}", main);
    const std::string folder = main.substr(0, main.rfind('/') + 1) + "conf.d";
    return fmt::format("mkdir -p {0} && printf '[{1}]\\n{2}\\n' >> {0}/60-{1}.toml", folder, table, line);
  }

  // The first folder above `path` without search permission for the daemon's user; empty: none.
  std::string barred_above(const std::string& path) const {
    for (size_t slash = path.find('/', 1); slash != path.npos; slash = path.find('/', slash + 1)) {
      const std::string folder = path.substr(0, slash);
      const PathFacts facts = probes_.path(folder);
      if (facts.error == 0 && !may(facts, kSearch)) return folder;
    }
    return {};
  }

  std::string named(const std::vector<std::string>& paths) const {
    std::string out;
    for (size_t i = 0; i < std::min(kNamed, paths.size()); ++i) out += (i ? ", " : "") + paths[i];
    return paths.size() > kNamed ? fmt::format("{} and {} more", out, paths.size() - kNamed) : out;
  }

  void configuration() {
    loaded_ = load_config(options_.config, owner());
    for (const ConfigError& e : loaded_.errors)
      bad("config",
          e.line ? fmt::format("{}:{}:{}: {}", e.file, e.line, e.column, e.what)
                 : fmt::format("{}: {}", e.file, e.what),
          remedy_in(e.what).value_or(
              fmt::format("${{EDITOR:-vi}} {}{}", e.line ? fmt::format("+{} ", e.line) : "", e.file)));
    if (!loaded_.errors.empty()) return;
    std::string files;
    for (const std::string& file : loaded_.files) files += (files.empty() ? "" : ", ") + file;
    ok("config", files.empty() ? fmt::format("there is no {}: the defaults hold", kConfigFile)
                               : fmt::format("{} is valid", files));
  }

  // The user whose files are trusted in addition to root's. A caller other than root asks about their own
  // daemon.
  uid_t owner() const { return ::geteuid() == 0 ? account_.uid : ::geteuid(); }

  // The command at the end of a sentence about a path.
  static std::optional<std::string> remedy_in(const std::string& sentence) {
    constexpr std::string_view kRun = "; run ";
    const size_t at = sentence.rfind(kRun);
    return at == sentence.npos ? std::nullopt : std::optional(sentence.substr(at + kRun.size()));
  }

  void find_account() {
    const auto found = probes_.account(options_.user.empty() ? "culprit" : options_.user);
    has_account_ = found.has_value();
    if (found)
      account_ = *found;
    else if (const auto own = probes_.account(""))
      account_ = *own;
  }

  void account() {
    const bool asked = !options_.user.empty();
    if (has_account_)
      return ok("user", fmt::format("the daemon runs as {} (uid {})", account_.name, account_.uid));
    if (asked)
      return bad(
          "user", fmt::format("there is no user {}", options_.user),
          fmt::format("useradd --system --no-create-home --shell /usr/sbin/nologin {}", options_.user));
    warn("user",
         fmt::format("there is no user culprit; what follows holds for {} (uid {})", account_.name,
                     account_.uid),
         "systemd-sysusers");
  }

  void rules() {
    const LoadedRules loaded = load_rules(rule_options(config(), owner()));
    for (const Error& error : loaded.files.errors)
      bad("rules", error.text, remedy_in(error.text).value_or("culprit rules check"));
    if (!loaded.errors.empty()) {
      const rules::RuleError& e = loaded.errors[0];
      bad("rules",
          fmt::format(
              "{}:{}: {}{}", e.file, e.line, e.what,
              loaded.errors.size() > 1 ? fmt::format(" (and {} more)", loaded.errors.size() - 1) : ""),
          fmt::format("culprit rules check {}", e.file));
    }
    if (!loaded.set) return;
    const std::vector<OpenRule> open = open_rules(*loaded.set);
    for (const OpenRule& one : open)
      warn("rules", fmt::format("{}: {}", one.file, one.what), "${EDITOR:-vi} " + one.file);
    if (open.empty()) ok("rules", fmt::format("{} load", counted(loaded.set->rules().size(), "rule")));
  }

  void own_folder(const char* check, const std::string& path, uint32_t mode) {
    const PathFacts facts = probes_.path(path);
    const std::string mend = fmt::format("install -d -m {:04o} -o {} {}", mode, account_.name, path);
    if (facts.error == ENOENT) {
      // Systemd creates these folders at the start (StateDirectory=, RuntimeDirectory=); so does a daemon of
      // root.
      if (account_.uid == 0) return ok(check, fmt::format("{} is not there yet: the start makes it", path));
      return warn(check, fmt::format("{} is not there; only the service's start or root can make it", path),
                  mend);
    }
    if (facts.error != 0)
      return bad(check, fmt::format("{}: {}", path, std::strerror(facts.error)), "sudo culprit doctor");
    if (!facts.folder)
      return bad(check, fmt::format("{} is no folder", path), fmt::format("mv {0} {0}.old", path));
    if (const std::string above = barred_above(path); !above.empty())
      return bad(check, fmt::format("{} cannot pass {} on the way to {}", account_.name, above, path),
                 fmt::format("chmod o+x {}", above));
    if (!may(facts, kRead | kWrite | kSearch))
      return bad(check,
                 fmt::format("{} may not write to {} (mode {:04o}, uid {})", account_.name, path,
                             facts.mode & 07777, facts.uid),
                 fmt::format("chown {0}: {1} && chmod u+rwx {1}", account_.name, path));
    ok(check, fmt::format("{} is there and {} may write to it", path, account_.name));
  }

  void folders() {
    own_folder("state_dir", config().state_dir, 0700);
    own_folder("runtime_dir", config().runtime_dir, 0750);
    const auto disk = probes_.disk(config().state_dir);
    if (!disk) return;
    const uint64_t wanted = config().spool.max_size;
    if (disk->free_files == 0 && disk->free_bytes > 0)
      return bad("space", fmt::format("the file system of {} has no inode left", config().state_dir),
                 fmt::format("df -i {}", config().state_dir));
    if (disk->free_bytes + disk->own_bytes < wanted)
      return warn(
          "space",
          fmt::format("{} has {} free, and spool.max_size is {}", config().state_dir,
                      format_bytes(disk->free_bytes), format_bytes(wanted)),
          setting("spool",
                  fmt::format("max_size = \"{}MiB\"", std::max<uint64_t>(16, disk->free_bytes / 2 >> 20)),
                  wanted == Config().spool.max_size));
    ok("space", fmt::format("{} has {} free for a spool of {}", config().state_dir,
                            format_bytes(disk->free_bytes), format_bytes(wanted)));
  }

  void log(const LogWatch& log) {
    const Probes::Matches matches = probes_.glob(log.path);
    watched_ += std::max<size_t>(1, matches.folders.size());
    files_ += matches.files.size();
    std::vector<std::string> closed, links;
    std::string barred;
    for (const std::string& file : matches.files) {
      const PathFacts facts = probes_.path(file);
      if (facts.link) {
        links.push_back(file);
      } else if (facts.error == 0 && (!may(facts, kRead) || !barred_above(file).empty())) {
        closed.push_back(file);
        if (barred.empty()) barred = barred_above(file);
      }
    }
    for (const std::string& folder : matches.folders) {
      const PathFacts facts = probes_.path(folder);
      if (facts.error == 0 && !may(facts, kRead | kSearch) && barred.empty()) barred = folder;
    }
    if (!barred.empty()) {
      // A warning if other files are readable; a failure if none is.
      const bool some = closed.empty() && !matches.files.empty();
      rows_.push_back({"log", some ? Health::kWarn : Health::kFail,
                       fmt::format("{}: {} may not look into {}", log.path, account_.name, barred),
                       fmt::format("setfacl -R -m u:{0}:rX,d:u:{0}:rX {1}", account_.name, barred)});
      return;
    }
    if (!closed.empty())
      return bad("log",
                 fmt::format("{}: {} may not read {} of {} files: {}", log.path, account_.name, closed.size(),
                             matches.files.size(), named(closed)),
                 // The default ACL includes future files of the folder.
                 fmt::format("setfacl -R -m u:{0}:rX,d:u:{0}:rX {1}", account_.name,
                             closed[0].substr(0, closed[0].rfind('/'))));
    if (!links.empty())
      return warn("log", fmt::format("{}: links are not followed: {}", log.path, named(links)),
                  fmt::format("printf '[[log]]\\npath = \"%s\"\\n' \"$(readlink -f {})\" >> {}", links[0],
                              options_.config.empty() ? kConfigFile : options_.config));
    if (matches.files.empty())
      return warn("log", fmt::format("{} matches nothing now", log.path),
                  fmt::format("ls -ld {}", log.path.substr(0, log.path.find_first_of("*?["))));
    ok("log", fmt::format("{} matches {}{}, all of them readable", log.path, matches.cut ? "at least " : "",
                          counted(matches.files.size(), "file")));
  }

  void logs() {
    if (!config().watches()) return;
    const std::string& pods = config().pods.folder;
    if (config().pods.enabled && probes_.path(pods).error == 0)
      ok("log", pods + ": the pods' logs are there");
    else if (config().pods.enabled)
      warn("log", pods + " is not there: no pod has run on this host, or pods.folder is another",
           "ls -ld " + pods);
    if (config().logs.empty() && !config().pods.enabled) {
      const std::string main = options_.config.empty() ? kConfigFile : options_.config;
      return warn("log", "no [[log]] table: no log file is followed",
                  fmt::format("printf '[[log]]\\npath = \"/var/log/train/**/*.log\"\\n' >> {}", main));
    }
    for (const LogWatch& watch : config().logs) log(watch);
  }

  std::optional<uint64_t> number_at(const std::string& path) const {
    const auto text = probes_.text(path);
    if (!text || text->empty() || text->find_first_not_of("0123456789") != text->npos || text->size() > 18)
      return std::nullopt;
    return std::stoull(*text);
  }

  void inotify() {
    if (!config().watches() || config().logs.empty()) return;
    const auto watches = number_at("/proc/sys/fs/inotify/max_user_watches");
    const auto instances = number_at("/proc/sys/fs/inotify/max_user_instances");
    if (!watches || !instances)
      return warn("inotify", "the limits of inotify cannot be read: logs are looked at now and then instead",
                  "ls /proc/sys/fs/inotify");
    const std::string mend = "sysctl -w {} && echo '{}' >> /etc/sysctl.d/60-culprit.conf";
    if (*watches < 2 * watched_) {
      const std::string set =
          fmt::format("fs.inotify.max_user_watches={}", std::max<uint64_t>(65'536, 4 * watched_));
      return warn(
          "inotify",
          fmt::format("{} folders are to be watched, and a user may watch {}: the rest is looked at now "
                      "and then",
                      watched_, *watches),
          fmt::format(fmt::runtime(mend), set, set));
    }
    if (*instances < kInotifyInstances) {
      const std::string set = "fs.inotify.max_user_instances=128";
      return warn("inotify", fmt::format("a user may have {} inotify instances only", *instances),
                  fmt::format(fmt::runtime(mend), set, set));
    }
    ok("inotify", fmt::format("{} of {} watches are needed", watched_, *watches));
  }

  void descriptors() {
    const uint64_t most = probes_.descriptors_max(), needed = files_ + kDescriptors;
    if (most < needed)
      return warn(
          "descriptors", fmt::format("a process may open {} files here, and {} would be good", most, needed),
          probes_.path("/run/systemd/system").error == 0
              ? "mkdir -p /etc/systemd/system/culpritd.service.d && printf "
                "'[Service]\\nLimitNOFILE=131072\\n' > /etc/systemd/system/culpritd.service.d/files.conf "
                "&& systemctl daemon-reload"
              : "ulimit -n 131072");
    ok("descriptors", fmt::format("a process may open {} files", most));
  }

  void clock() {
    if (probes_.now() < kSaneNs)
      return bad("clock", fmt::format("the clock shows {}", format_time(probes_.now())),
                 "timedatectl set-ntp true");
    const auto synchronised = probes_.clock_synchronised();
    if (!synchronised)
      return warn("clock", "the kernel does not tell whether the clock is synchronised", "chronyc tracking");
    if (!*synchronised)
      return warn("clock", "the clock is not synchronised: hosts' times cannot be compared",
                  "timedatectl set-ntp true   # or: systemctl enable --now chrony");
    ok("clock", "the clock is synchronised");
  }

  bool in_group(uint32_t gid) const {
    return std::find(account_.gids.begin(), account_.gids.end(), gid) != account_.gids.end();
  }

  void rings() {
    if (!config().watches()) return;
    const std::string& path = config().trace.rings;
    const PathFacts facts = probes_.path(path);
    // /dev/shm is empty after a boot: a permanent remedy creates the folder at each boot.
    const bool systemd = probes_.path("/run/systemd/system").error == 0;
    const std::string now =
        fmt::format("install -d -m 3777 -o {0} -g \"$(id -gn {0})\" {1}", account_.name, path);
    const std::string mend =
        systemd ? fmt::format(
                      "echo \"d {1} 3777 {0} $(id -gn {0}) -\" > /etc/tmpfiles.d/culprit-rings.conf && "
                      "systemd-tmpfiles --create culprit-rings.conf",
                      account_.name, path)
                : now;
    if (facts.error == ENOENT) return warn("rings", fmt::format("{} is not there", path), mend);
    if (facts.error != 0 || !facts.folder)
      return bad("rings", fmt::format("{} is no folder", path),
                 fmt::format("mv {0} {0}.old && {1}", path, mend));
    if ((facts.mode & 01777) != 01777)
      return warn("rings",
                  fmt::format("{} has mode {:04o}: not every process can put its ring there", path,
                              facts.mode & 07777),
                  mend);
    // Only a ring's owner and the folder's group can read a ring: culprit/ring.h, 7.
    if (account_.uid != 0 && (!(facts.mode & 02000) || !in_group(facts.gid)))
      return warn("rings",
                  fmt::format("{} (mode {:04o}, gid {}) does not hand a group of {} on: rings of other users "
                              "cannot be read",
                              path, facts.mode & 07777, facts.gid, account_.name),
                  mend);
    const auto disk = probes_.disk(path);
    if (disk && disk->free_bytes < kRingsBytes)
      return warn("rings", fmt::format("{} has {} free", path, format_bytes(disk->free_bytes)),
                  path.starts_with("/dev/shm/") ? "mount -o remount,size=1G /dev/shm"
                                                : fmt::format("df -h {}", path));
    ok("rings", fmt::format("{} is open to every process", path));
  }

  void kernel() {
    if (!config().watches() || !config().kernel.enabled) return;
    const PathFacts unit = probes_.path("/run/systemd/system");
    for (const char* folder : {"/etc/systemd/system", "/usr/lib/systemd/system", "/lib/systemd/system"})
      if (unit.error == 0 && probes_.path(fmt::format("{}/culpritd-kmsg.socket", folder)).error == 0)
        return ok("kernel", "systemd hands the kernel's messages over (culpritd-kmsg.socket)");
    const PathFacts facts = probes_.path("/dev/kmsg");
    if (facts.error != 0)
      return warn("kernel", "there is no /dev/kmsg here: kernel messages are not seen (a container?)",
                  setting("kernel", "enabled = false", true));
    const auto restricted = probes_.text("/proc/sys/kernel/dmesg_restrict");
    if (account_.uid != 0 && restricted.value_or("1") != "0")
      return warn("kernel",
                  fmt::format("{} may not read the kernel's messages (kernel.dmesg_restrict)", account_.name),
                  "sysctl -w kernel.dmesg_restrict=0 && echo kernel.dmesg_restrict=0 >> "
                  "/etc/sysctl.d/60-culprit.conf");
    if (!may(facts, kRead))
      return warn("kernel",
                  fmt::format("{} may not open /dev/kmsg (mode {:04o})", account_.name, facts.mode & 07777),
                  "chmod o+r /dev/kmsg");
    ok("kernel", "/dev/kmsg can be read");
  }

  void openat2() {
    if (probes_.has_openat2()) return ok("openat2", "logs are opened without following links on the way");
    warn("openat2", "this kernel has no openat2 (Linux 5.6): logs of untrusted users cannot be opened safely",
         "uname -r");
  }

  // The group that may see all processes if /proc hides them; nothing: no process is hidden.
  struct Hidden {
    std::optional<uint32_t> gid;
  };
  std::optional<Hidden> hidden() const {
    const std::string mounts = probes_.text("/proc/mounts").value_or("");
    for (const std::string_view line : split(mounts, '\n')) {
      const auto fields = split(line, ' ');
      if (fields.size() < 4 || fields[1] != "/proc" || fields[2] != "proc") continue;
      Hidden found;
      bool hides = false;
      for (const std::string_view option : split(fields[3], ',')) {
        if (option.starts_with("hidepid=")) hides = option != "hidepid=0" && option != "hidepid=off";
        if (option.starts_with("gid=")) found.gid = static_cast<uint32_t>(std::atoi(option.data() + 4));
      }
      if (hides) return found;
    }
    return std::nullopt;
  }

  // Finds jobs from their processes; process_view.h lists the permissions of each way.
  void jobs() {
    if (!config().watches()) return;
    const std::string drop_in = "/etc/systemd/system/culpritd.service.d/";
    const std::string again = "systemctl daemon-reload && systemctl restart culpritd";
    if (account_.uid == 0 || probes_.path(drop_in + "job-environment.conf").error == 0)
      return ok("jobs",
                fmt::format("{} sees every process: jobs are recognised by control group, SLURM_JOB_ID "
                            "and open files",
                            account_.name));
    if (const auto proc = hidden(); proc && !(proc->gid && in_group(*proc->gid))) {
      const std::string group = proc->gid ? std::to_string(*proc->gid) : "";
      return bad("jobs",
                 fmt::format("/proc is mounted with hidepid: {} sees no process of other users and "
                             "recognises no job by them",
                             account_.name),
                 group.empty()
                     ? "mount -o remount,hidepid=0 /proc"
                     : fmt::format("printf '[Service]\\nSupplementaryGroups={}\\n' > {}proc.conf && {}",
                                   group, drop_in, again));
    }
    for (const auto& [pid, process] : probes_.processes().processes)
      if (process.by_environment && process.uid != account_.uid)
        return warn(
            "jobs",
            fmt::format("job {} is known from SLURM_JOB_ID alone (process {}, uid {}), which {} may not read",
                        process.job, pid, process.uid, account_.name),
            fmt::format("install -D -m 0644 /usr/share/doc/culprit/examples/job-environment.conf "
                        "{}job-environment.conf && {}",
                        drop_in, again));
    ok("jobs", "jobs are recognised by control group and by the owners of logs, without any right");
  }

  // Whether and how the stacks of a hung job can be captured.
  void capture() {
    if (!config().watches() || !config().capture.enabled) return;
    const std::string yama = probes_.text("/proc/sys/kernel/yama/ptrace_scope").value_or("0");
    if (yama == "3")
      return warn("capture",
                  "kernel.yama.ptrace_scope is 3: no process may be traced, so a hang has no stacks",
                  "grep -rl ptrace_scope /etc/sysctl.d /etc/sysctl.conf   # set it to 1, then reboot");
    if (probes_.path(kCaptureSocket).error == 0)
      return ok("capture", "systemd starts culprit-capture where a job hangs");
    if (!probes_.helper("culprit-capture"))
      return warn("capture", "culprit-capture is not installed: a hang has no stacks", kReinstall);
    if (account_.uid == 0) return ok("capture", "culprit-capture is started with root's rights");
    if (probes_.path("/run/systemd/system").error == 0 && account_.name == "culprit")
      return warn(
          "capture",
          fmt::format("{} is not there: {} may not trace other users' processes, so a hang has no stacks",
                      kCaptureSocket, account_.name),
          "systemctl enable --now culprit-capture.socket");
    if (yama != "0")
      return warn(
          "capture",
          fmt::format("kernel.yama.ptrace_scope is {}: {} may trace no process, so a hang has stacks only "
                      "where the job calls culprit.watch_stacks()",
                      yama, account_.name),
          "sysctl -w kernel.yama.ptrace_scope=0");
    ok("capture", fmt::format("the processes of {} can be traced, and no others", account_.name));
  }

  void plugins() {
    if (!config().watches()) return;
    size_t found = 0;
    for (const std::string& folder : config().plugins) found += probes_.glob(folder + "/*.so").files.size();
    if (found == 0) return;
    if (probes_.helper("culprit-plugin-host"))
      return ok("plugins", counted(found, "plugin") + " can be started");
    warn("plugins", "culprit-plugin-host is not installed: no plugin runs", kReinstall);
  }

  // Applies only to a job process in a separate network namespace: NCCL's RAS service is queried there.
  void pods() {
    if (!config().watches() || !config().ras.enabled || !config().capture.enabled) return;
    const auto own = probes_.network("self");
    const ProcessView view = probes_.processes();
    uint32_t pid = 0;
    for (const auto& [one, process] : view.processes) {
      if (process.job.empty() || !own || (pid != 0 && one > pid)) continue;
      const auto its = probes_.network(std::to_string(one));
      if (its && *its != *own) pid = one;
    }
    if (pid == 0) return;
    const std::string job = view.processes.at(pid).job;
    const std::string name = "capture-pods.conf", folder = "/etc/systemd/system/culprit-capture@.service.d/";
    if (account_.uid == 0 || probes_.path(folder + name).error == 0)
      return ok("pods", fmt::format("NCCL RAS of job {} is asked in its network namespace", job));
    warn("pods",
         fmt::format("job {} (process {}) is in a network namespace of its own: culprit-capture may not ask "
                     "NCCL RAS there",
                     job, pid),
         fmt::format("install -D -m 0644 /usr/share/doc/culprit/examples/{0} {1}{0} && systemctl "
                     "daemon-reload && systemctl reload culpritd",
                     name, folder));
  }

  void token() {
    const bool tcp = !config().http.listen.starts_with("unix:");
    const std::string& file = config().http.token_file;
    if (file.empty() && !tcp) return;
    if (file.empty())
      return warn("token",
                  "http.listen is an address and there is no http.token_file: over TCP only /healthz, "
                  "/metrics and the links of culprit page work",
                  fmt::format("(umask 077; openssl rand -hex 32 > /etc/culprit/token) && chown {} "
                              "/etc/culprit/token && {}",
                              account_.name, setting("http", "token_file = \"/etc/culprit/token\"", true)));
    const PathFacts facts = probes_.path(file);
    if (facts.error != 0 || !facts.regular)
      return bad(
          "token", fmt::format("{} is not there", file),
          fmt::format("(umask 077; openssl rand -hex 32 > {0}) && chown {1} {0}", file, account_.name));
    if (!may(facts, kRead) || !barred_above(file).empty())
      return bad("token", fmt::format("{} may not read {}", account_.name, file),
                 fmt::format("chown {0} {1} && chmod 0400 {1}", account_.name, file));
    if (facts.mode & 07)
      return bad("token", fmt::format("{} can be read by everybody", file), fmt::format("chmod o= {}", file));
    ok("token", fmt::format("{} is readable to {}", file, account_.name));
  }

  // A receiver's file that the daemon's user needs: a secret, a template or a program.
  bool receiver_file(const std::string& receiver, const std::string& file, uint32_t wanted) {
    if (file.empty()) return true;
    const bool secret = wanted == kRead && !file.ends_with(".json") && !file.ends_with(".pem");
    const PathFacts facts = probes_.path(file);
    const std::string remedy = fmt::format("chown {0} {1} && chmod 0400 {1}", account_.name, file);
    if (facts.error != 0 || !facts.regular)
      return bad("alerts", fmt::format("receiver {}: {} is not there", receiver, file), "ls -l " + file),
             false;
    if (!may(facts, wanted) || !barred_above(file).empty())
      return bad("alerts", fmt::format("receiver {}: {} may not use {}", receiver, account_.name, file),
                 remedy),
             false;
    if (secret && (facts.mode & 07))
      return bad("alerts", fmt::format("receiver {}: {} can be read by everybody", receiver, file),
                 fmt::format("chmod o= {}", file)),
             false;
    return true;
  }

  void alerts() {
    const Config& c = config();
    if (c.role == DaemonRole::kAgent || (c.alert.empty() && c.otlp.endpoint.empty())) return;
    bool sound = receiver_file("otlp", c.otlp.headers_file, kRead);
    for (const AlertConfig& a : c.alert) {
      for (const std::string& file : {a.url_file, a.headers_file, a.secret_file, a.template_file, a.ca})
        sound = receiver_file(a.name, file, kRead) && sound;
      if (a.type == AlertType::kMail) sound = receiver_file(a.name, a.sendmail, kSearch) && sound;
    }
    if (!sound) return;
    if (c.http.url.empty() && !c.alert.empty())
      return warn("alerts", "alerts have no links: http.url is not set",
                  setting("http", "url = \"https://HOST\"", true));
    ok("alerts", fmt::format("{} configured; `culprit alert test` sends a test",
                             counted(c.alert.size() + !c.otlp.endpoint.empty(), "receiver")));
  }

  // Receivers that the running daemon cannot deliver to.
  void undelivered(const nlohmann::json& reported) {
    const auto troubles = reported.find("troubles");
    if (troubles == reported.end() || !troubles->is_array()) return;
    for (const nlohmann::json& one : *troubles)
      if (one.is_string()) warn("alerts", one.get<std::string>(), "culprit alert list; culprit alert test");
  }

  void trace() {
    if (!config().watches()) return;
    const std::string address = config().trace_address();
    const std::string path = address.substr(address.find('/'));
    for (size_t slash = path.find('/', 1); slash != path.npos; slash = path.find('/', slash + 1)) {
      const std::string folder = path.substr(0, slash);
      const PathFacts facts = probes_.path(folder);
      if (facts.error == 0 && !(facts.mode & kSearch))
        return warn("trace",
                    fmt::format("processes of other users cannot pass {} (mode {:04o}) on the way to {}",
                                folder, facts.mode & 07777, path),
                    fmt::format("install -d -m 0755 -o {} /run/culprit-trace && {}", account_.name,
                                setting("trace", "socket = \"/run/culprit-trace/trace.sock\"",
                                        config().trace.socket == Config().trace.socket)));
    }
    if (const Status status = probes_.connect(address); !status)
      return warn("trace", status.error().text, "systemctl status culpritd");
    ok("trace", fmt::format("{} answers", address));
  }

  void daemon() {
    const std::string address = config().http_address();
    // The caller may lack the permission to connect.
    const Status reached = address.starts_with("unix:") ? probes_.connect(address) : Status();
    if (!reached && reached.error().code == ErrorCode::kDenied)
      return warn("daemon", fmt::format("you may not ask the daemon: {}", reached.error().text),
                  "sudo culprit doctor");
    if (!reached)
      return bad("daemon", fmt::format("the daemon does not answer: {}", reached.error().text),
                 "systemctl start culpritd; journalctl -u culpritd -n 50");
    const bool tcp = !address.starts_with("unix:");
    const std::string token =
        tcp ? first_token(probes_.text(config().http.token_file).value_or("")) : std::string();
    if (tcp && token.empty()) return void(progresses(address, "culpritd answers"));
    const auto answer = probes_.get({address, "/v1/status", token, config().http.tls.cert});
    if (!answer)
      return bad("daemon", fmt::format("the daemon does not answer: {}", answer.error().text),
                 "systemctl start culpritd; journalctl -u culpritd -n 50");
    const auto status = parse_json(*answer);
    const auto version = status.is_object() ? status.find("version") : status.end();
    if (!status.is_object() || version == status.end() || !version->is_string())
      return bad("daemon", fmt::format("what answers at {} is no culpritd", config().http_address()),
                 fmt::format("grep -A2 http {}", options_.config.empty() ? kConfigFile : options_.config));
    const std::string theirs = version->get<std::string>();
    if (theirs != CULPRIT_VERSION)
      return warn("daemon", fmt::format("culpritd {} runs, and this is culprit {}", theirs, CULPRIT_VERSION),
                  "systemctl restart culpritd");
    if (!progresses(address, fmt::format("culpritd {} answers", theirs))) return;
    if (config().role == DaemonRole::kAgent && status.contains("forward")) forward(status["forward"]);
    if (status.contains("alerts") && status["alerts"].is_object()) undelivered(status["alerts"]);
    if (status.contains("controller") && status["controller"].is_object())
      rows_.push_back(controller_row(status["controller"]));
  }

  bool progresses(const std::string& address, const std::string& answers) {
    const auto health = probes_.get({address, "/healthz", "", config().http.tls.cert});
    if (health)
      ok("daemon", fmt::format("{} at {}", answers, address));
    else
      bad("daemon", fmt::format("the daemon makes no progress: {}", health.error().text),
          "journalctl -u culpritd -n 50");
    return health.has_value();
  }

  // Uses the daemon's own status: only the daemon has the certificate and the connection.
  void forward(const nlohmann::json& reported) {
    const auto word = [&](const char* name) {
      const auto at = reported.find(name);
      return at != reported.end() && at->is_string() ? at->get<std::string>() : std::string();
    };
    const std::string to = word("to");
    if (word("state") != "open")
      return bad("collector", fmt::format("nothing goes to the collector: {}", word("sentence")),
                 fmt::format("nc -vz {} {}   # from here; on {}: systemctl status culpritd",
                             to.substr(0, to.rfind(':')), to.substr(to.rfind(':') + 1),
                             to.substr(0, to.rfind(':'))));
    const auto expires = reported.find("certificate_expires_ns");
    const bool ends = expires != reported.end() && expires->is_number_integer();
    const TimeNs left = ends ? expires->get<TimeNs>() - probes_.now() : kCertificateLeftNs;
    if (left < kCertificateLeftNs)
      return warn(
          "collector", fmt::format("this host's certificate ends at {}", format_time(expires->get<TimeNs>())),
          fmt::format("openssl x509 -in {} -noout -dates   # renew it, then: systemctl reload culpritd",
                      config().forward.tls.cert));
    ok("collector",
       fmt::format("{}: {}{}", to, word("sentence"),
                   ends ? "; the certificate ends at " + format_time(expires->get<TimeNs>()) : ""));
  }

  const DoctorOptions& options_;
  const Probes& probes_;
  LoadedConfig loaded_;
  Account account_;
  bool has_account_ = false;          // true: account_ is the daemon's; false: the caller's
  uint64_t watched_ = 0, files_ = 0;  // folders and files of all [[log]] tables
  std::vector<DoctorRow> rows_;
};

}  // namespace

std::string_view to_string(Health health) {
  return health == Health::kOk ? "ok" : health == Health::kWarn ? "warn" : "fail";
}

std::vector<DoctorRow> examine(const DoctorOptions& options, const Probes& probes) {
  return Examination(options, probes).run();
}

}  // namespace culprit::app
