#include "app/doctor/doctor.h"

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>

#include "../fixtures.h"

using namespace culprit;
using namespace culprit::app;
using culprit::app::test::Folder;

namespace fs = std::filesystem;

namespace {

PathFacts a_folder(uint32_t mode, uint32_t uid) { return {0, true, false, false, mode, uid, uid, {}, {}}; }
PathFacts a_file(uint32_t mode, uint32_t uid) { return {0, false, true, false, mode, uid, uid, {}, {}}; }

// A machine without problems; each case breaks something.
struct Machine {
  std::map<std::string, Account> accounts = {{"culprit", {"culprit", 900, {900, 4}}},
                                             {"", {"root", 0, {0}}},
                                             {"nobody", {"nobody", 65534, {65534}}}};
  std::map<std::string, PathFacts> paths = {{"/var/lib/culprit", a_folder(0700, 900)},
                                            {"/run/culprit", a_folder(0750, 900)},
                                            {"/dev/shm/culprit", a_folder(03777, 900)},
                                            {"/run/culprit-trace", a_folder(0755, 900)},
                                            {"/run/systemd/system", a_folder(0755, 0)},
                                            {"/etc/systemd/system/culpritd-kmsg.socket", a_file(0644, 0)},
                                            {"/dev/kmsg", a_file(0644, 0)},
                                            {"/run/culprit-capture/socket", a_file(0660, 0)},
                                            {"/var/log/train", a_folder(0755, 0)},
                                            {"/var/log/train/a.log", a_file(0644, 1000)},
                                            {"/var/log/train/b.log", a_file(0640, 1000)}};
  std::map<std::string, std::string> texts = {{"/proc/sys/fs/inotify/max_user_watches", "65536"},
                                              {"/proc/sys/fs/inotify/max_user_instances", "128"},
                                              {"/proc/sys/kernel/dmesg_restrict", "1"}};
  std::map<std::string, DiskFacts> disks = {{"/var/lib/culprit", {uint64_t{100} << 30, 1000, 0}},
                                            {"/dev/shm/culprit", {uint64_t{1} << 30, 1000, 0}}};
  Probes::Matches matches{{"/var/log/train/a.log"}, {"/var/log/train"}, false};
  std::optional<bool> synchronised = true;
  TimeNs now = 1'763'690'000 * kNsPerSecond;
  uint64_t descriptors = 131'072;
  bool openat2 = true;
  std::string uninstalled;  // a helper program
  ProcessView processes;
  std::map<std::string, uint64_t> networks = {{"self", 7}};
  std::map<std::string, Error> unreachable;  // by address
  std::map<std::string, std::string> answers = {{"/v1/status", "{\"version\":\"" CULPRIT_VERSION "\"}"},
                                                {"/healthz", "ok"}};

  Probes probes() const {
    Probes out;
    const auto look_up = []<class T>(const std::map<std::string, T>& all, const std::string& key) {
      const auto it = all.find(key);
      return it == all.end() ? std::nullopt : std::optional<T>(it->second);
    };
    out.account = [=, this](const std::string& name) { return look_up(accounts, name); };
    out.path = [=, this](const std::string& path) {
      // Folders that are not configured are accessible.
      static const std::vector<std::string> kThere = {"/var", "/var/lib", "/run",
                                                      "/dev", "/dev/shm", "/var/log"};
      if (std::find(kThere.begin(), kThere.end(), path) != kThere.end() && !paths.contains(path))
        return a_folder(0755, 0);
      PathFacts missing;
      missing.error = ENOENT;
      return look_up(paths, path).value_or(missing);
    };
    out.disk = [=, this](const std::string& path) { return look_up(disks, path); };
    out.text = [=, this](const std::string& path) { return look_up(texts, path); };
    out.glob = [this](const std::string&) { return matches; };
    out.clock_synchronised = [this] { return synchronised; };
    out.now = [this] { return now; };
    out.descriptors_max = [this] { return descriptors; };
    out.has_openat2 = [this] { return openat2; };
    out.helper = [this](const std::string& name) {
      return name == uninstalled ? std::nullopt : std::optional("/usr/lib/culprit/" + name);
    };
    out.processes = [this] { return processes; };
    out.network = [=, this](const std::string& pid) { return look_up(networks, pid); };
    out.connect = [=, this](const std::string& address) {
      const auto error = look_up(unreachable, address);
      return error ? Status(tl::unexpected(*error)) : Status();
    };
    out.get = [=, this](const DoctorRequest& request) -> Result<std::string> {
      if (auto answer = look_up(answers, request.path)) return *answer;
      return fail(ErrorCode::kIo, "unix:/run/culprit/api.sock: connection refused");
    };
    return out;
  }
};

#define TRACE "[trace]\nsocket = \"/run/culprit-trace/trace.sock\"\n"
constexpr const char* kLogs = "[[log]]\npath = \"/var/log/train/**/*.log\"\n" TRACE;

std::string shown(const DoctorRow& row) {
  return fmt::format("{} {}: {} | {}", to_string(row.health), row.check, row.what, row.remedy);
}

// The rows that are not ok.
std::vector<std::string> troubles(const Machine& machine, const std::string& config, std::string user = "") {
  const Folder folder;
  std::vector<std::string> out;
  const auto rows = examine({folder.write("culpritd.toml", config), std::move(user)}, machine.probes());
  BOOST_TEST(rows.size() > 5u);
  for (const DoctorRow& row : rows) {
    BOOST_TEST((row.remedy.empty() == (row.health == Health::kOk)), shown(row));
    BOOST_TEST((!row.what.empty() && row.what.back() != '.'), shown(row));
    if (row.health != Health::kOk) out.push_back(shown(row));
  }
  return out;
}

struct Case {
  const char* expected;  // beginning of the row, with the status and the name of the check
  std::function<void(Machine&)> spoil;
  std::string config = kLogs;
  std::string user = "";
};

const PathFacts kMissing = {ENOENT, false, false, false, 0, 0, 0, {}, {}};

const std::string kHook =
    std::string(kLogs) + "[[alert]]\nname = \"hook\"\nurl_file = \"/etc/culprit/slack.url\"\n";

const std::string kJournal = std::string(kLogs) + "[journal]\nenabled = true\n";

const Case kCases[] = {
    {"warn user: there is no user culprit; what follows holds for root",
     [](Machine& m) { m.accounts.erase("culprit"); }},
    {"fail user: there is no user ghost", [](Machine& m) { m.paths["/var/lib/culprit"].uid = 0; }, kLogs,
     "ghost"},
    {"warn state_dir: /var/lib/culprit is not there",
     [](Machine& m) { m.paths["/var/lib/culprit"] = kMissing; }},
    {"fail state_dir: culprit may not write to /var/lib/culprit (mode 0755, uid 0)",
     [](Machine& m) { m.paths["/var/lib/culprit"] = a_folder(0755, 0); }},
    {"fail state_dir: /var/lib/culprit is no folder",
     [](Machine& m) { m.paths["/var/lib/culprit"] = a_file(0600, 900); }},
    {"fail state_dir: culprit cannot pass /var/lib",
     [](Machine& m) { m.paths["/var/lib"] = a_folder(0700, 0); }},
    {"fail runtime_dir: culprit may not write",
     [](Machine& m) { m.paths["/run/culprit"] = a_folder(0555, 900); }},
    {"warn space: /var/lib/culprit has 2.1 GB free, and spool.max_size is 4.3 GB",
     [](Machine& m) {
       m.disks["/var/lib/culprit"] = {uint64_t{2} << 30, 9, 0};
     }},
    {"fail space: the file system of /var/lib/culprit has no inode left",
     [](Machine& m) { m.disks["/var/lib/culprit"].free_files = 0; }},
    {"warn log: no [[log]] table", [](Machine&) {}, TRACE},
    {"warn log: /var/log/pods is not there", [](Machine&) {}, "[pods]\nenabled = true\n" TRACE},
    {"warn log: /var/log/train/**/*.log matches nothing now", [](Machine& m) { m.matches.files.clear(); }},
    {"fail log: /var/log/train/**/*.log: culprit may not read 1 of 1 files: /var/log/train/b.log",
     [](Machine& m) { m.matches.files = {"/var/log/train/b.log"}; }},
    {"fail log: /var/log/train/**/*.log: culprit may not look into /var/log/train",
     [](Machine& m) { m.paths["/var/log/train"] = a_folder(0700, 1000); }},
    {"warn log: /var/log/train/**/*.log: culprit may not look into /var/log/train/private",
     [](Machine& m) {
       m.matches.folders.push_back("/var/log/train/private");
       m.paths["/var/log/train/private"] = a_folder(0700, 1000);
     }},
    {"warn log: /var/log/train/**/*.log: links are not followed: /var/log/train/a.log",
     [](Machine& m) { m.paths["/var/log/train/a.log"].link = true; }},
    {"warn capture: culprit-capture is not installed: a hang has no stacks | apt-get install --reinstall",
     [](Machine& m) { m.paths.erase("/run/culprit-capture/socket"), m.uninstalled = "culprit-capture"; }},
    {"warn capture: /run/culprit-capture/socket is not there: culprit may not trace other users' processes",
     [](Machine& m) { m.paths.erase("/run/culprit-capture/socket"); }},
    {"warn capture: kernel.yama.ptrace_scope is 1: worker may trace no process",
     [](Machine& m) {
       m.paths.erase("/run/culprit-capture/socket");
       m.texts["/proc/sys/kernel/yama/ptrace_scope"] = "1";
       m.accounts["culprit"].name = "worker";
     }},
    {"warn capture: kernel.yama.ptrace_scope is 3: no process may be traced",
     [](Machine& m) { m.texts["/proc/sys/kernel/yama/ptrace_scope"] = "3"; }},
    {"warn plugins: culprit-plugin-host is not installed: no plugin runs",
     [](Machine& m) { m.uninstalled = "culprit-plugin-host"; }},
    {"warn inotify: 1 folders are to be watched, and a user may watch 1",
     [](Machine& m) { m.texts["/proc/sys/fs/inotify/max_user_watches"] = "1"; }},
    {"warn inotify: a user may have 2 inotify instances only",
     [](Machine& m) { m.texts["/proc/sys/fs/inotify/max_user_instances"] = "2"; }},
    {"warn inotify: the limits of inotify cannot be read", [](Machine& m) { m.texts.clear(); }},
    {"warn descriptors: a process may open 1024 files here", [](Machine& m) { m.descriptors = 1024; }},
    {"fail clock: the clock shows 1970-01-01", [](Machine& m) { m.now = 0; }},
    {"warn clock: the clock is not synchronised", [](Machine& m) { m.synchronised = false; }},
    {"warn clock: the kernel does not tell", [](Machine& m) { m.synchronised.reset(); }},
    {"warn rings: /dev/shm/culprit is not there", [](Machine& m) { m.paths["/dev/shm/culprit"] = kMissing; }},
    {"warn rings: /dev/shm/culprit has mode 0755",
     [](Machine& m) { m.paths["/dev/shm/culprit"] = a_folder(0755, 900); }},
    {"warn rings: /dev/shm/culprit (mode 1777, gid 0) does not hand a group of culprit on",
     [](Machine& m) { m.paths["/dev/shm/culprit"] = a_folder(01777, 0); }},
    {"fail rings: /dev/shm/culprit is no folder",
     [](Machine& m) { m.paths["/dev/shm/culprit"] = a_file(01777, 0); }},
    {"warn rings: /dev/shm/culprit has 1.0 MB free",
     [](Machine& m) {
       m.disks["/dev/shm/culprit"] = {1'000'000, 9, 0};
     }},
    {"warn kernel: culprit may not read the kernel's messages (kernel.dmesg_restrict)",
     [](Machine& m) { m.paths.erase("/etc/systemd/system/culpritd-kmsg.socket"); }},
    {"warn kernel: there is no /dev/kmsg here",
     [](Machine& m) {
       m.paths.erase("/run/systemd/system");
       m.paths.erase("/dev/kmsg");
     }},
    {"warn kernel: culprit may not open /dev/kmsg (mode 0600)",
     [](Machine& m) {
       m.paths.erase("/run/systemd/system");
       m.texts["/proc/sys/kernel/dmesg_restrict"] = "0";
       m.paths["/dev/kmsg"] = a_file(0600, 0);
     }},
    {"fail journal: there is no journalctl here", [](Machine&) {}, kJournal},
    {"warn journal: there is no journal of this machine in /var/log/journal",
     [](Machine& m) { m.paths["/usr/bin/journalctl"] = a_file(0755, 0); }, kJournal},
    {"fail journal: culprit may not read the journal in /run/log/journal | usermod -aG systemd-journal "
     "culprit",
     [](Machine& m) {
       m.paths["/usr/bin/journalctl"] = a_file(0755, 0);
       m.texts["/etc/machine-id"] = "3d12\n";
       m.paths["/run/log/journal/3d12/system.journal"] = a_file(0640, 0);
     },
     kJournal},
    {"fail jobs: /proc is mounted with hidepid: culprit sees no process of other users and recognises no job "
     "by "
     "them | mount -o remount,hidepid=0 /proc",
     [](Machine& m) { m.texts["/proc/mounts"] = "proc /proc proc rw,relatime,hidepid=invisible 0 0"; }},
    {"fail jobs: /proc is mounted with hidepid: culprit sees no process of other users and recognises no job "
     "by "
     "them | printf '[Service]\\nSupplementaryGroups=77\\n' > "
     "/etc/systemd/system/culpritd.service.d/proc.conf",
     [](Machine& m) { m.texts["/proc/mounts"] = "proc /proc proc rw,gid=77,hidepid=2 0 0"; }},
    {"warn jobs: job 4711 is known from SLURM_JOB_ID alone (process 60, uid 1000), which culprit may not "
     "read | "
     "install",
     [](Machine& m) { m.processes.processes[60] = {0, 1, 1000, false, "4711", true}; }},
    {"warn pods: job pod-1 (process 60) is in a network namespace of its own: culprit-capture may not ask "
     "NCCL "
     "RAS there | install -D -m 0644 /usr/share/doc/culprit/examples/capture-pods.conf "
     "/etc/systemd/system/culprit-capture@.service.d/capture-pods.conf",
     [](Machine& m) {
       m.processes.processes[60] = {0, 1, 1000, false, "pod-1"};
       m.networks["60"] = 8;
     }},
    {"warn openat2: this kernel has no openat2", [](Machine& m) { m.openat2 = false; }},
    {"warn token: http.listen is an address and there is no http.token_file: over TCP only /healthz",
     [](Machine&) {}, std::string(kLogs) + "[http]\nlisten = \"127.0.0.1:7420\"\n"},
    {"fail token: /etc/culprit/token is not there", [](Machine&) {},
     std::string(kLogs) + "[http]\ntoken_file = \"/etc/culprit/token\"\n"},
    {"fail token: /etc/culprit/token can be read by everybody",
     [](Machine& m) { m.paths["/etc/culprit/token"] = a_file(0644, 900); },
     std::string(kLogs) + "[http]\ntoken_file = \"/etc/culprit/token\"\n"},
    {"fail token: culprit may not read /etc/culprit/token",
     [](Machine& m) { m.paths["/etc/culprit/token"] = a_file(0600, 0); },
     std::string(kLogs) + "[http]\ntoken_file = \"/etc/culprit/token\"\n"},
    {"fail alerts: receiver hook: /etc/culprit/slack.url is not there", [](Machine&) {}, kHook},
    {"fail alerts: receiver hook: /etc/culprit/slack.url can be read by everybody | chmod o= ",
     [](Machine& m) { m.paths["/etc/culprit/slack.url"] = a_file(0644, 900); }, kHook},
    {"fail alerts: receiver hook: culprit may not use /etc/culprit/slack.url | chown culprit",
     [](Machine& m) { m.paths["/etc/culprit/slack.url"] = a_file(0600, 0); }, kHook},
    {"warn alerts: alerts have no links: http.url is not set",
     [](Machine& m) { m.paths["/etc/culprit/slack.url"] = a_file(0600, 900); }, kHook},
    {"warn alerts: receiver hook gets nothing | culprit alert list",
     [](Machine& m) {
       m.answers["/v1/status"] =
           R"({"version":")" CULPRIT_VERSION R"(","alerts":{"troubles":["receiver hook gets nothing"]}})";
     }},
    {"fail controller: nothing is done since 1970-01-01 00:00:01.000: the scheduler does not answer | "
     "scontrol "
     "ping",
     [](Machine& m) {
       m.answers["/v1/status"] = R"({"version":")" CULPRIT_VERSION
                                 R"(","controller":{"mode":"act","trouble":"the scheduler does not answer",)"
                                 R"("trouble_since_ns":1000000000,"remedy":"scontrol ping"}})";
     }},
    {"warn trace: /run/culprit-trace/trace.sock: connection refused",
     [](Machine& m) {
       m.unreachable["unix:/run/culprit-trace/trace.sock"] = {
           ErrorCode::kIo, "/run/culprit-trace/trace.sock: connection refused"};
     }},
    {"warn trace: processes of other users cannot pass /run/culprit-trace (mode 0750) on the way to "
     "/run/culprit-trace/trace.sock",
     [](Machine& m) { m.paths["/run/culprit-trace"] = a_folder(0750, 900); }},
    {"fail daemon: the daemon does not answer: unix:/run/culprit/api.sock: connection refused",
     [](Machine& m) { m.answers.clear(); }},
    {"fail daemon: the daemon does not answer: /run/culprit/api.sock: no such file",
     [](Machine& m) {
       m.unreachable["unix:/run/culprit/api.sock"] = {ErrorCode::kNotFound,
                                                      "/run/culprit/api.sock: no such file or directory"};
     }},
    {"warn daemon: you may not ask the daemon: /run/culprit/api.sock: permission denied",
     [](Machine& m) {
       m.unreachable["unix:/run/culprit/api.sock"] = {ErrorCode::kDenied,
                                                      "/run/culprit/api.sock: permission denied"};
     }},
    {"fail daemon: what answers at unix:/run/culprit/api.sock is no culpritd",
     [](Machine& m) { m.answers["/v1/status"] = "<html>"; }},
    {"warn daemon: culpritd 0.0.1 runs, and this is culprit",
     [](Machine& m) { m.answers["/v1/status"] = R"({"version":"0.0.1"})"; }},
    {"fail daemon: the daemon makes no progress", [](Machine& m) { m.answers.erase("/healthz"); }},
};

}  // namespace

BOOST_AUTO_TEST_CASE(pods_are_named_only_where_a_job_has_a_network_of_its_own) {
  const auto rows = [](const std::function<void(Machine&)>& change) {
    const Folder folder;
    Machine machine;
    machine.processes.processes[60] = {0, 1, 1000, false, "pod-1"};
    machine.processes.processes[61] = {0, 1, 1000, false, ""};
    machine.networks["60"] = 7;
    machine.networks["61"] = 8;
    change(machine);
    std::string out;
    for (const DoctorRow& row : examine({folder.write("culpritd.toml", kLogs), ""}, machine.probes()))
      if (row.check == "pods") out += shown(row);
    return out;
  };
  BOOST_TEST(rows([](Machine&) {}) == "");
  BOOST_TEST(rows([](Machine& m) { m.networks.erase("60"); }) == "");
  BOOST_TEST(rows([](Machine& m) {
               m.networks["60"] = 8;
               m.paths["/etc/systemd/system/culprit-capture@.service.d/capture-pods.conf"] = a_file(0644, 0);
             }) == "ok pods: NCCL RAS of job pod-1 is asked in its network namespace | ");
}

BOOST_AUTO_TEST_CASE(a_machine_on_which_nothing_is_wrong_has_no_trouble) {
  const std::vector<std::string> none = troubles(Machine(), kLogs);
  BOOST_TEST(none.empty(), (none.empty() ? "" : none[0]));
  BOOST_TEST(troubles(Machine(), std::string(kLogs) + "[kernel]\nenabled = false\n").empty());
}

BOOST_AUTO_TEST_CASE(each_trouble_is_one_row_with_a_sentence_and_what_mends_it) {
  for (const Case& c : kCases) {
    Machine machine;
    c.spoil(machine);
    const auto found = troubles(machine, c.config, c.user);
    BOOST_TEST_CONTEXT(c.expected) {
      BOOST_REQUIRE(found.size() == 1u);
      BOOST_TEST(found[0].starts_with(c.expected), found[0]);
    }
  }
}

BOOST_AUTO_TEST_CASE(a_journal_of_its_group_is_read_by_members) {
  Machine machine;
  machine.accounts["culprit"].gids.push_back(101);
  machine.paths["/usr/bin/journalctl"] = a_file(0755, 0);
  machine.texts["/etc/machine-id"] = "3d12\n";
  machine.paths["/var/log/journal/3d12/system.journal"] = a_file(0640, 0);
  machine.paths["/var/log/journal/3d12/system.journal"].gid = 101;
  BOOST_TEST(troubles(machine, kJournal).empty());
  machine.accounts["culprit"].gids.pop_back();
  BOOST_TEST(troubles(machine, kJournal).size() == 1u);
}

BOOST_AUTO_TEST_CASE(the_daemons_user_decides_what_is_readable) {
  Machine machine;
  machine.matches.files = {"/var/log/train/b.log"};
  machine.paths["/var/log/train/b.log"].gid = 4;  // adm
  BOOST_TEST(troubles(machine, kLogs).empty());
  machine.accounts["culprit"].gids = {900};
  BOOST_TEST(troubles(machine, kLogs).size() == 1u);
  machine.paths["/var/log/train/b.log"].users = {{900, 4}};  // setfacl -m u:culprit:r
  BOOST_TEST(troubles(machine, kLogs).empty());
  machine.paths["/var/log/train/b.log"].users = {{900, 0}};  // the mask removes the right
  BOOST_TEST(troubles(machine, kLogs).size() == 1u);
  machine.paths["/var/log/train/b.log"].users.clear();
  machine.paths["/var/log/train/b.log"].groups = {{900, 4}};
  BOOST_TEST(troubles(machine, kLogs).empty());
  machine.paths["/var/log/train/b.log"].groups.clear();
  machine.accounts["culprit"].uid = 0;  // root may read all files
  BOOST_TEST(troubles(machine, kLogs).empty());
}

BOOST_AUTO_TEST_CASE(every_error_of_the_configuration_is_a_row_and_the_rest_is_looked_at_all_the_same) {
  const auto found = troubles(Machine(), std::string("rolle = 1\n[hang]\nsteps = 0\n") + kLogs);
  BOOST_REQUIRE(found.size() == 2u);
  BOOST_TEST(found[0].find("culpritd.toml:1:1: unknown key 'rolle'; did you mean 'role'?") !=
             std::string::npos);
  BOOST_TEST(found[0].find("vi} +1 /") != std::string::npos);
  BOOST_TEST(found[1].find("culpritd.toml:3:9: 'hang.steps' must be") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(broken_rules_are_a_failure) {
  const Folder folder;
  const std::string rule = folder.write("rules/a.lua", "rule { }\n");
  const auto found = troubles(Machine(), fmt::format("rules = [\"{}\"]\n{}", rule, kLogs));
  BOOST_REQUIRE(found.size() == 1u);
  BOOST_TEST(found[0].starts_with("fail rules: " + rule + ":1: "), found[0]);
}

BOOST_AUTO_TEST_CASE(the_machine_itself_can_be_asked) {
  const Folder folder;
  folder.write("a/1.log", "x");
  folder.write("a/b/2.log", "xyz");
  folder.write("a/.hidden.log", "x");
  folder.write("c/3.txt", "x");
  fs::create_symlink(folder.path / "a/1.log", folder.path / "a/link.log");
  fs::create_directory_symlink(folder.path / "a", folder.path / "c/linked");
  const Probes probes = machine_probes();
  const std::string root = folder.path.string();
  const auto below = probes.glob(root + "/**/*.log");
  const std::vector<std::string> files = {root + "/a/1.log", root + "/a/b/2.log", root + "/a/link.log"};
  BOOST_TEST(below.files == files, boost::test_tools::per_element());
  const std::vector<std::string> folders = {root, root + "/a", root + "/a/b", root + "/c"};
  BOOST_TEST(below.folders == folders, boost::test_tools::per_element());
  BOOST_TEST(probes.glob(root + "/a/[12].log").files.size() == 1u);
  BOOST_TEST(probes.glob(root + "/none/*.log").folders.empty());
  BOOST_TEST(probes.path(root + "/a/link.log").link);
  BOOST_TEST(probes.path(root + "/none").error == ENOENT);
  ::chmod((root + "/a/1.log").c_str(), 0640);
  BOOST_TEST(probes.path(root + "/a/1.log").mode == 0640u);
  BOOST_TEST(probes.path(root + "/a/1.log").uid == geteuid());
  BOOST_TEST(probes.disk(root + "/a")->own_bytes == 5u);
  BOOST_TEST(probes.disk(root + "/none/at/all")->free_bytes > 0u);
  BOOST_TEST(probes.text(folder.write("t", "65536\n")).value_or("") == "65536");
  BOOST_TEST(!probes.text(root + "/none").has_value());
  BOOST_TEST(probes.account("")->uid == geteuid());
  BOOST_TEST(probes.account("root")->uid == 0u);
  BOOST_TEST(!probes.account("no such user").has_value());
  BOOST_TEST(probes.now() > 1'735'689'600 * kNsPerSecond);
  BOOST_TEST(probes.descriptors_max() > 0u);
  BOOST_TEST(!probes.connect("unix:" + root + "/none.sock").has_value());
  BOOST_TEST(!probes.connect("unix:/" + std::string(200, 'x')).has_value());
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  std::strcpy(name.sun_path, (root + "/s").c_str());
  const int listener = ::socket(AF_UNIX, SOCK_STREAM, 0);
  BOOST_REQUIRE(::bind(listener, reinterpret_cast<sockaddr*>(&name), sizeof name) == 0);
  BOOST_REQUIRE(::listen(listener, 1) == 0);
  BOOST_TEST(probes.connect("unix:" + root + "/s").has_value());
  ::close(listener);
}
