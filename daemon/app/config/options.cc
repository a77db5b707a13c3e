#include "app/config/options.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "app/config/values.h"
#include "base/text.h"

namespace culprit::app {
namespace {

constexpr TimeNs kSecond = kNsPerSecond, kDay = 24 * 3600 * kSecond;
constexpr uint64_t kMiB = 1 << 20, kGiB = 1 << 30, kTiB = uint64_t{1} << 40;

constexpr std::string_view kRoles[] = {"agent", "collector", "both"};
constexpr std::string_view kModes[] = {"observe", "ask", "act"};
constexpr std::string_view kSchedulers[] = {"none", "slurm", "kubernetes", "exec", "webhook"};
constexpr std::string_view kStyles[] = {"path", "host"};
constexpr std::string_view kPolicies[] = {"all", "findings", "none"};
constexpr std::string_view kProcesses[] = {"own", "daemon"};
constexpr std::string_view kAlertTypes[] = {"webhook", "alertmanager", "mail"};
constexpr std::string_view kLevels[] = {"debug", "info", "warning", "error"};

template <auto Of>
constexpr WordType word_type(std::span<const std::string_view> words) {
  using Enum = std::remove_reference_t<decltype(Of(std::declval<Config&>()))>;
  return {[](Config& c, size_t n) { Of(c) = static_cast<Enum>(n); },
          [](const Config& c) {
            Config copy = c;
            return static_cast<size_t>(Of(copy));
          },
          words};
}

#define OF(T, place) [](Config& c) -> T& { return c.place; }
#define TEXT(place, check, name) \
  TextType { OF(std::string, place), check, name }

constexpr const char* kPath = "absolute path";
constexpr const char* kRevocations =
    "Revocation lists (PEM), one of each authority in ca. Read again at a reload; with a list that is out of "
    "date its authority's certificates are refused.";

const Option kOptions[] = {
    {"role", word_type<OF(DaemonRole, role)>(kRoles), false, nullptr,
     "agent: watches this host. collector: receives what agents send. both: does both."},
    {"state_dir", TEXT(state_dir, check_absolute_path, kPath), false, nullptr,
     "Folder of the spool, the evidence and the index. Only the daemon's user may access it."},
    {"runtime_dir", TEXT(runtime_dir, check_absolute_path, kPath), false, nullptr, "Folder of the sockets."},
    {"rules", TextsType{OF(std::vector<std::string>, rules), check_absolute_path, "list of absolute paths"},
     true, nullptr,
     "Rule files and folders of them, besides the built-in library. The default folders may be missing."},
    {"plugins",
     TextsType{OF(std::vector<std::string>, plugins), check_absolute_path, "list of absolute paths"}, true,
     nullptr,
     "Folders of plugins: each NAME.so in them runs. They and all folders above them belong to root or the "
     "daemon's user, and others cannot write to them."},
    {"host.name", TEXT(host.name, check_host_name, "name"), false, "\"node-17\"",
     "The name under which this host is reported. Default: the host's own."},
    {"log.path", TEXT(logs.back().path, check_glob, "absolute glob"), true, "\"/var/log/train/**/*.log\"",
     "Files to follow: *, ? and [...] within a name, ** for any folders. New files are found while running; "
     "rotated ones are followed. Links are not."},
    {"log.job", TEXT(logs.back().job, check_job, "name"), true, "\"llama-70b-0412\"",
     "Job id of these files. Default: from job_pattern, else the job of the writing process, by its cgroup "
     "or SLURM_JOB_ID."},
    {"log.job_pattern", TEXT(logs.back().job_pattern, check_job_pattern, "regular expression"), true,
     "'/train/(?P<job>[^/]+)/'",
     "Regular expression (RE2) over the path; its group named job is the job id. Excludes job."},
    {"dump.path", TEXT(dumps.back().path, check_glob, "absolute glob"), true, "\"/tmp/nccl_trace_rank_*\"",
     "Dump files to read, a glob as in log.path: the value of TORCH_NCCL_DEBUG_INFO_TEMP_FILE followed by "
     "the rank. A rewritten dump replaces the earlier one."},
    {"dump.job", TEXT(dumps.back().job, check_job, "name"), true, "\"llama-70b-0412\"",
     "Job id of these dumps. Default: from job_pattern, else the only running job."},
    {"dump.job_pattern", TEXT(dumps.back().job_pattern, check_job_pattern, "regular expression"), true,
     "'/train/(?P<job>[^/]+)/'", "As log.job_pattern."},
    {"pods.enabled", FlagType{OF(bool, pods.enabled)}, false, nullptr,
     "Follow the logs of the pods of this node that are jobs. The job is NAMESPACE_NAME of the workload: a "
     "JobSet, PyTorchJob, Job or another."},
    {"pods.folder", TEXT(pods.folder, check_plain_folder, kPath), false, nullptr,
     "Folder of the kubelet with a folder NAMESPACE_POD_UID for each pod. Links are not followed."},
    {"pods.namespaces",
     TextsType{OF(std::vector<std::string>, pods.namespaces), check_namespaces, "list of patterns"}, false,
     "[\"train-*\"]",
     "Namespaces whose pods are all followed; * any characters, ? one. Of the others only pods that ask for "
     "an "
     "accelerator and run to an end, which the API server says: without it none."},
    {"pods.server", TEXT(pods.server, check_url, "http or https address"), false, "\"https://10.0.0.1:6443\"",
     "The API server, asked once for each new pod. Default: that of the pod in which the daemon runs; "
     "outside "
     "of a pod none is asked."},
    {"pods.token_file", TEXT(pods.token_file, check_absolute_path, kPath), false,
     "\"/etc/culprit/kubernetes.token\"",
     "Token of a service account that may get pods. Default: the pod's. Refused if other users may read it."},
    {"pods.ca_file", TEXT(pods.ca_file, check_absolute_path, kPath), false, "\"/etc/culprit/kubernetes.pem\"",
     "Certificate authorities of the API server. Default: the pod's."},
    {"plugin.name", TEXT(plugin.back().name, check_plugin_name, "name"), true, "\"gpu_health\"",
     "The plugin: its file is NAME.so."},
    {"plugin.enabled", FlagType{OF(bool, plugin.back().enabled)}, true, nullptr, "false: it does not run."},
    {"plugin.process", word_type<OF(PluginProcess, plugin.back().process)>(kProcesses), true, nullptr,
     "own: a process of its own, whose crash or hang harms nothing else. daemon: within culpritd; a crash of "
     "the plugin then ends the daemon, and its limits of memory and time do not hold."},
    {"plugin.memory", SizeType{OF(uint64_t, plugin.back().memory), 0, kTiB}, true, nullptr,
     "Memory limit of the plugin's process, which is ended above it. \"0B\": no limit."},
    {"plugin.cpu_percent", IntegerType{OF(int64_t, plugin.back().cpu_percent), 1, 100}, true, nullptr,
     "Limit of CPU use in per cent of a core, averaged over a minute. Above it events are dropped and "
     "counted; above 1.5 times the limit the process is ended."},
    {"plugin.findings_per_minute", IntegerType{OF(int64_t, plugin.back().findings_per_minute), 1, 6000}, true,
     nullptr, "Limit of findings in a minute. Further findings are dropped and counted."},
    {"plugin.call_timeout", DurationType{OF(TimeNs, plugin.back().call_timeout_ns), kSecond / 10, kDay}, true,
     nullptr, "Time limit of one call into the plugin; its process is restarted after that."},
    {"plugin.options", PairsType{[](Config& c) -> std::vector<std::pair<std::string, std::string>>& {
       return c.plugin.back().options;
     }},
     true, "{ temperature_c = 85 }", "The plugin's own options; its document lists them."},
    {"plugin.environment", PairsType{[](Config& c) -> std::vector<std::pair<std::string, std::string>>& {
       return c.plugin.back().environment;
     }},
     true, "{ LD_LIBRARY_PATH = \"/opt/vendor/lib\" }",
     "Environment variables of the plugin's process, in addition to PATH, LANG, LC_ALL and TZ."},
    {"jobs.ended_after", DurationType{OF(TimeNs, jobs.ended_after_ns), kSecond, 7 * kDay}, true, nullptr,
     "A job has ended when it sent no data for this long and its processes have exited. If its processes are "
     "not visible, it must have failed or reported its end; otherwise the silence may be a hang, and the job "
     "ends after 6 hours."},
    {"jobs.only", TEXT(jobs.only, check_job, "name"), false, "\"train-1126-190203\"",
     "The only job that this daemon watches; `culprit run` sets it. Control groups and SLURM_JOB_ID then "
     "identify no job: the job's processes are those that write its files, and their descendants."},
    {"engine.memory", SizeType{OF(uint64_t, engine.memory), 0, kTiB}, true, "\"256MiB\"",
     "Memory limit of all jobs' engines together. Above it the largest job of the user with the most memory "
     "is stored as evidence only. \"0B\": half of the control group's limit (MemoryMax), else a sixteenth of "
     "the machine."},
    {"trace.socket", TEXT(trace.socket, check_socket_name, "name in runtime_dir, or absolute path"), false,
     nullptr, "Stream socket that accepts metrics, stacks, events and lines as NDJSON, from any user."},
    {"trace.job", TEXT(trace.job, check_job, "name"), true, "\"llama-70b-0412\"",
     "Job id of lines on the socket without one. Default: the job of the writing process."},
    {"trace.rings", TEXT(trace.rings, check_absolute_path, kPath), false, nullptr,
     "Folder of the rings of communication records that processes write: in memory, mode 3777, of the "
     "daemon's group."},
    {"kernel.enabled", FlagType{OF(bool, kernel.enabled)}, false, nullptr,
     "Follow the kernel's messages: the descriptor that systemd hands over, or /dev/kmsg."},
    {"journal.enabled", FlagType{OF(bool, journal.enabled)}, false, nullptr,
     "Follow systemd's journal with journalctl: services that run jobs or watch the machine, and the kernel "
     "unless kernel.enabled. The daemon's user is in the group systemd-journal."},
    {"journal.units", TextsType{OF(std::vector<std::string>, journal.units), check_units, "list of patterns"},
     false, "[\"nvidia-*.service\", \"slurmd.service\"]",
     "Units whose entries are kept: their names with .service, * any characters, ? one. Default: all. The "
     "kernel's entries do not depend on it."},
    {"journal.directory", TEXT(journal.directory, check_plain_folder, kPath), false,
     "\"/var/log/journal/remote\"",
     "Folder of the journal's files. Only root and the daemon's user can write to it. Default: the system's "
     "journal."},
    {"ras.enabled", FlagType{OF(bool, ras.enabled)}, true, nullptr,
     "Query NCCL's RAS service of the jobs on this host for ranks that are behind, stopped or exited."},
    {"ras.addresses",
     TextsType{OF(std::vector<std::string>, ras.addresses), check_tcp_address, "list of HOST:PORT"}, true,
     nullptr, "Addresses of the RAS service: NCCL_RAS_ADDR of the jobs."},
    {"ras.interval", DurationType{OF(TimeNs, ras.interval_ns), kSecond, 3600 * kSecond}, true, nullptr,
     "Time between two queries; 10 s while operations are stalled. Hosts with higher ranks query less "
     "often."},
    {"spool.max_size", SizeType{OF(uint64_t, spool.max_size), 16 * kMiB, 64 * kTiB}, false, nullptr,
     "Disk limit of the evidence. Above it the oldest evidence of the user with the most is deleted, and "
     "counted."},
    {"forward.to",
     TextsType{OF(std::vector<std::string>, forward.to), check_tcp_address, "HOST:PORT or list of it", true},
     false, "\"collector.example:7421\"",
     "Address of the collector. Of a list the agent sends to one, and to the next if that one fails; "
     "collectors that share their jobs send it on to the owner of its job. Any address but loopback requires "
     "forward.tls."},
    {"forward.tls.cert", TEXT(forward.tls.cert, check_absolute_path, kPath), false,
     "\"/etc/culprit/host.pem\"", "This host's certificate, issued for host.name."},
    {"forward.tls.key", TEXT(forward.tls.key, check_absolute_path, kPath), false, "\"/etc/culprit/host.key\"",
     "Private key of the certificate. Refused if other users may read it."},
    {"forward.tls.ca", TEXT(forward.tls.ca, check_absolute_path, kPath), false, "\"/etc/culprit/ca.pem\"",
     "Certificate authorities that are trusted."},
    {"forward.tls.crl", TEXT(forward.tls.crl, check_absolute_path, kPath), true, "\"/etc/culprit/crl.pem\"",
     kRevocations},
    {"forward.evidence.policy", word_type<OF(EvidencePolicy, forward.evidence.policy)>(kPolicies), true,
     nullptr,
     "Raw evidence that is sent to the collector, after the data that analysis needs. all; findings: the "
     "evidence around a finding; none. The rest stays on this host, within spool.max_size."},
    {"forward.evidence.budget", SizeType{OF(uint64_t, forward.evidence.budget), 0, kTiB}, true, nullptr,
     "Rate limit of raw evidence in bytes a second; \"0B\": no limit."},
    {"forward.evidence.around", DurationType{OF(TimeNs, forward.evidence.around_ns), kSecond, kDay}, true,
     nullptr, "With policy findings: time before and after a finding whose evidence is sent."},
    {"collector.listen", TEXT(collector.listen, check_tcp_address, "HOST:PORT"), false, nullptr,
     "Address for agents. Any address but loopback requires collector.tls. Role both accepts agents if this "
     "key or collector.tls is set."},
    {"collector.tls.cert", TEXT(collector.tls.cert, check_absolute_path, kPath), false,
     "\"/etc/culprit/host.pem\"", "The collector's certificate."},
    {"collector.tls.key", TEXT(collector.tls.key, check_absolute_path, kPath), false,
     "\"/etc/culprit/host.key\"", "Private key of the certificate. Refused if other users may read it."},
    {"collector.tls.ca", TEXT(collector.tls.ca, check_absolute_path, kPath), false, "\"/etc/culprit/ca.pem\"",
     "Certificate authorities of the agents."},
    {"collector.tls.crl", TEXT(collector.tls.crl, check_absolute_path, kPath), true,
     "\"/etc/culprit/crl.pem\"", kRevocations},
    {"collector.retention.max_size",
     SizeType{OF(uint64_t, collector.retention_max_size), 16 * kMiB, 1024 * kTiB}, true, nullptr,
     "Disk limit of all collected data; the oldest data is deleted first. If other programs fill the disk "
     "before that, nothing is deleted: agents wait, and the log reports it."},
    {"collector.retention.max_age",
     DurationType{OF(TimeNs, collector.retention_max_age_ns), 3600 * kSecond, 3650 * kDay}, true, nullptr,
     "Time after which collected data is deleted."},
    {"collector.read_twice_above", SizeType{OF(uint64_t, collector.read_twice_above), 64 << 10, 1024 * kTiB},
     false, nullptr,
     "After a restart, condensed logs of more than this are read twice: first so much of their ends, an "
     "equal "
     "part of each, so that jobs are answered and diagnosed, and then everything, while they are."},
    {"collector.healthy",
     TextsType{OF(std::vector<std::string>, collector.healthy), check_job, "list of names"}, true,
     "[\"llama-70b-0411\"]",
     "Jobs whose messages are learned as normal at their end, whatever their reports say. Jobs that ended "
     "well are learned anyway."},
    {"http.listen", TEXT(http.listen, check_listen_address, "\"unix:NAME\" or HOST:PORT"), false, nullptr,
     "Address of the API and the page: a socket in runtime_dir, or HOST:PORT. With HOST:PORT the socket "
     "api.sock listens too. Any address but loopback requires http.token_file; without tokens HOST:PORT "
     "serves /healthz, /metrics and pages that `culprit page` logged in."},
    {"http.token_file", TEXT(http.token_file, check_absolute_path, kPath), true, "\"/etc/culprit/token\"",
     "File of tokens for requests over TCP, one a line: TOKEN [read|operate] [NAME]. The default operate may "
     "read and change. Lines that begin with # are comments. A reload reads the file again."},
    {"http.url", TEXT(http.url, check_url, "http or https address"), true, "\"https://culprit.example\"",
     "Public address of the page, for links in alerts. Without it alerts have no links."},
    {"http.hosts", TextsType{OF(std::vector<std::string>, http.hosts), check_web_host, "list of host names"},
     true, "[\"culprit.example\"]",
     "Accepted Host headers over TCP, without a port, in addition to addresses, localhost and host.name: "
     "names of a proxy, or of this host in the DNS."},
    {"http.metrics_jobs", IntegerType{OF(int64_t, http.metrics_jobs), 0, 10'000}, true, nullptr,
     "Limit of jobs with metrics in /metrics: jobs that need attention first, then the newest. "
     "culprit_jobs_left_out counts the others. 0: none."},
    {"http.acl.users", FlagType{OF(bool, http.acl.users)}, false, nullptr,
     "Unix socket: every user of the host may connect, and sees only this user's own jobs and evidence. The "
     "socket's folder must be accessible to these users."},
    {"http.acl.group", TEXT(http.acl.group, check_group, "name"), false, nullptr,
     "With http.acl.users: members of this group see all jobs, as root and the daemon's user do."},
    {"http.tls.cert", TEXT(http.tls.cert, check_absolute_path, kPath), true, "\"/etc/culprit/http.pem\"",
     "Certificate for HTTPS with its intermediates, for an address in http.listen. A reload reads it again."},
    {"http.tls.key", TEXT(http.tls.key, check_absolute_path, kPath), true, "\"/etc/culprit/http.key\"",
     "The certificate's key, readable to the daemon's user alone."},
    {"hang.after", DurationType{OF(TimeNs, hang.after_ns), kSecond, 7 * kDay}, true, nullptr,
     "A job hangs after this long without progress, and after hang.steps times its median step."},
    {"hang.steps", IntegerType{OF(int64_t, hang.steps), 1, 1000}, true, nullptr, "See hang.after."},
    {"capture.enabled", FlagType{OF(bool, capture.enabled)}, true, nullptr,
     "Capture the processes of a job that hangs, became slower, or is asked about: their states, their "
     "stacks, and what blocked ones wait for. NCCL RAS is asked in any case."},
    {"capture.tools", TextsType{OF(std::vector<std::string>, capture.tools), check_tool, "list of tools"},
     true, nullptr,
     "Programs that print stacks, best first: py-spy, eu-stack, gdb, from /usr/local/bin and /usr/bin, or an "
     "absolute path. Only root may be able to change them. Without one, states are captured alone."},
    {"capture.samples", IntegerType{OF(int64_t, capture.samples), 1, 20}, true, nullptr,
     "Captures of one hang while the job makes no progress. Several captures distinguish slow from stuck."},
    {"capture.every", DurationType{OF(TimeNs, capture.every_ns), kSecond, 3600 * kSecond}, true, nullptr,
     "Time between two captures."},
    {"capture.budget", DurationType{OF(TimeNs, capture.budget_ns), kSecond, 120 * kSecond}, true, nullptr,
     "Time limit of one capture of all ranks on a host."},
    {"capture.at_once", IntegerType{OF(int64_t, capture.at_once), 1, 64}, true, nullptr,
     "Processes that are captured at the same time."},
    {"capture.rounds", IntegerType{OF(int64_t, capture.rounds), 0, 8}, true, nullptr,
     "Captures of a running job whose steps became slower, capture.every apart: a rank that the others wait "
     "for in most captures is named. 0: none."},
    {"act.mode", word_type<OF(ActMode, act.mode)>(kModes), true, nullptr,
     "What the collector does about a job at fault. observe: reports what it would do. ask: does it after a "
     "person's approval. act: does it."},
    {"act.scheduler", word_type<OF(Scheduler, act.scheduler)>(kSchedulers), false, nullptr,
     "Where hosts are isolated and jobs run again. exec, webhook: a launcher of your own, by a program or a "
     "POST. none: there is no controller."},
    {"act.isolate", FlagType{OF(bool, act.isolate)}, true, nullptr,
     "Let act.mode take hosts out: a drain in Slurm, a taint in Kubernetes."},
    {"act.restart", FlagType{OF(bool, act.restart)}, true, nullptr,
     "Let act.mode end a job's processes and have the scheduler run it again without the hosts at fault."},
    {"act.check", FlagType{OF(bool, act.check)}, true, nullptr,
     "Let act.mode have hosts checked on which no job runs, where check.enabled is on."},
    {"act.return", FlagType{OF(bool, act.give_back)}, true, nullptr,
     "Let act.mode return a host that it took out, after a passed check."},
    {"act.partitions",
     TextsType{OF(std::vector<std::string>, act.partitions), check_receiver_name, "list of names"}, true,
     "[\"canary\"]", "Slurm's partitions, or namespaces, where these stages are on. Empty: everywhere."},
    {"act.slurm_conf", TEXT(act.slurm_conf, check_absolute_path, kPath), false, "\"/etc/slurm/slurm.conf\"",
     "Slurm's configuration, for scontrol and squeue. Default: Slurm's own."},
    {"act.spares", IntegerType{OF(int64_t, act.spares), 0, 1000}, true, nullptr,
     "Idle nodes that are held back: by Slurm's reservation culprit-spare, or by the label and taint "
     "culprit.dev/standby in Kubernetes. A job that runs again and lacks nodes gets them; the pool is filled "
     "again. 0: none."},
    {"act.spares_selector", TEXT(act.spares_selector, check_label, "KEY or KEY=VALUE"), false,
     "\"pool=train\"", "Kubernetes: the label of nodes that may be spares. Default: all nodes."},
    {"act.spares_partition", TEXT(act.spares_partition, check_receiver_name, "name"), false, "\"train\"",
     "Slurm: the partition of these nodes. Default: Slurm's default partition."},
    {"act.spares_check", DurationType{OF(TimeNs, act.spares_check_ns), 0, 30 * kDay}, true, nullptr,
     "With act.check each spare is checked by its agent when it comes into the pool and so often. One that "
     "fails is isolated. 0s: never."},
    {"act.kubernetes.server", TEXT(act.kubernetes.server, check_url, "http or https address"), false,
     "\"https://10.0.0.1:6443\"", "The API server. Default: that of the pod in which the daemon runs."},
    {"act.kubernetes.token_file", TEXT(act.kubernetes.token_file, check_absolute_path, kPath), false,
     "\"/etc/culprit/kubernetes.token\"",
     "Token of a service account; read at each request. Default: the pod's. Refused if other users may read "
     "it."},
    {"act.kubernetes.ca_file", TEXT(act.kubernetes.ca_file, check_absolute_path, kPath), false,
     "\"/etc/culprit/kubernetes.pem\"", "Certificate authorities of the API server. Default: the pod's."},
    {"act.kubernetes.namespace", TEXT(act.kubernetes.space, check_namespace, "name"), false, "\"train\"",
     "Namespace of the jobs. Default: all."},
    {"act.kubernetes.lease", TEXT(act.kubernetes.lease, check_lease, "NAMESPACE/NAME"), false, nullptr,
     "Of several collectors the one that holds this Lease acts. Empty: no other collector acts."},
    {"act.kubernetes.evict", FlagType{OF(bool, act.kubernetes.evict)}, false, nullptr,
     "The taint is NoExecute: it ends all pods on the host that do not tolerate it, also those of other "
     "jobs."},
    {"act.launcher.command",
     TextsType{OF(std::vector<std::string>, act.launcher.command), check_command_word, "list of words"},
     false, "[\"/opt/launcher/act\", \"{kind}\", \"{job}\"]",
     "exec: the program and its arguments, without a shell; the order is also on its standard input. "
     "Placeholders: {op} {decision} {kind} {target} {job} {excluded} {code} {reason}."},
    {"act.launcher.url", TEXT(act.launcher.url, check_url, "http or https address"), false,
     "\"https://launcher.example/orders\"", "webhook: address that gets each order."},
    {"act.launcher.headers_file", TEXT(act.launcher.headers_file, check_absolute_path, kPath), false,
     "\"/etc/culprit/launcher.headers\"", "As alert.headers_file."},
    {"act.launcher.ca", TEXT(act.launcher.ca, check_absolute_path, kPath), false, "\"/etc/culprit/ca.pem\"",
     "As alert.ca."},
    {"act.launcher.proxy", TEXT(act.launcher.proxy, check_url, "http or https address"), false,
     "\"http://proxy.example:3128\"", "As alert.proxy."},
    {"act.launcher.orders",
     TextsType{OF(std::vector<std::string>, act.launcher.orders), check_order_kind, "list of orders"}, false,
     nullptr,
     "exec, webhook: orders that the launcher carries out. Without end_tasks the agents end a job's "
     "processes; "
     "others are refused."},
    {"act.launcher.within", DurationType{OF(TimeNs, act.launcher.within_ns), kSecond, 3600 * kSecond}, false,
     nullptr, "exec, webhook: how long an answer to an order is awaited."},
    {"act.confidence", IntegerType{OF(int64_t, act.confidence), 50, 100}, true, nullptr,
     "Lowest confidence, in per cent, at which a host is taken out."},
    {"act.breaker.window", DurationType{OF(TimeNs, act.breaker.window_ns), 60 * kSecond, kDay}, true, nullptr,
     "The breaker's short window. Beyond a limit no further host is taken out; returns go on."},
    {"act.breaker.window_hosts", IntegerType{OF(int64_t, act.breaker.window_hosts), 1, 100000}, true, nullptr,
     "Hosts taken out in the short window. The larger of this and window_permille counts, as below."},
    {"act.breaker.window_permille", IntegerType{OF(int64_t, act.breaker.window_permille), 0, 1000}, true,
     nullptr, "The same, in thousandths of all hosts."},
    {"act.breaker.day_hosts", IntegerType{OF(int64_t, act.breaker.day_hosts), 1, 100000}, true, nullptr,
     "Hosts taken out within 24 h."},
    {"act.breaker.day_permille", IntegerType{OF(int64_t, act.breaker.day_permille), 0, 1000}, true, nullptr,
     "The same, in thousandths of all hosts."},
    {"act.breaker.at_once_hosts", IntegerType{OF(int64_t, act.breaker.at_once_hosts), 1, 100000}, true,
     nullptr, "Hosts that are out at the same time."},
    {"act.breaker.at_once_permille", IntegerType{OF(int64_t, act.breaker.at_once_permille), 0, 1000}, true,
     nullptr, "The same, in thousandths of all hosts."},
    {"act.veto", DurationType{OF(TimeNs, act.veto_ns), 60 * kSecond, 90 * kDay}, true, nullptr,
     "After a person returned a host, the same cause takes it out no more for so long."},
    {"act.probation", DurationType{OF(TimeNs, act.probation_ns), 60 * kSecond, 90 * kDay}, true, nullptr,
     "After its return, the next suspicion takes a host out, whatever its confidence."},
    {"act.question", DurationType{OF(TimeNs, act.question_ns), 60 * kSecond, kDay}, true, nullptr,
     "With mode ask: a question expires after so long."},
    {"act.end_tasks", FlagType{OF(bool, act.end_tasks)}, true, nullptr,
     "Let the collector end the processes of a job on this host, so that the job runs again elsewhere. Roles "
     "agent and both. Needs culprit-end-tasks.socket."},
    {"act.advise", FlagType{OF(bool, act.advise)}, true, nullptr,
     "Advice to jobs, which their loops may take. On a collector the controller gives it, by act.mode; on a "
     "host the daemon writes it for the job's processes, at the collector's or a person's word. Roles agent, "
     "both and collector."},
    {"cluster.database", TEXT(cluster.database, check_database, "connection string of libpq"), false,
     "\"service=culprit\"",
     "PostgreSQL that several collectors share: each job belongs to one of them, which alone acts for it. A "
     "string or URI of libpq, without a password: use passfile or service. Needs libpq5. Empty: this "
     "collector "
     "is the only one."},
    {"cluster.name", TEXT(cluster.name, check_host_name, "name"), false, "\"collector-1\"",
     "The name of this member, unlike the others' and the same after a restart. Default: host.name."},
    {"cluster.address", TEXT(cluster.address, check_tcp_address, "HOST:PORT"), false,
     "\"collector-1.example:7421\"",
     "The address at which agents reach this member, as culprit cluster status shows it. Default: "
     "collector.listen."},
    {"cluster.http", TEXT(cluster.http, check_member_url, "http or https address"), false,
     "\"https://collector-1.example:7420\"",
     "The address at which people and the command line reach this member's HTTP API: the page and culprit "
     "--server of another member lead here. No wildcard address. Empty: they do not."},
    {"cluster.memory", SizeType{OF(uint64_t, cluster.memory), 0, 64 * kTiB}, false, nullptr,
     "Above this much memory in use the member takes no further partition. 0: three quarters of the control "
     "group's limit, else of the machine's memory."},
    {"cluster.bucket.url", TEXT(cluster.bucket.url, check_url, "URL"), false, "\"https://s3.example\"",
     "Object storage that speaks S3, without the bucket's name. What the archive holds of evidence is put "
     "there, "
     "so that the next owner of a job has the evidence of before. Empty: none."},
    {"cluster.bucket.name", TEXT(cluster.bucket.name, check_bucket, "name"), false, "\"culprit-evidence\"",
     "The bucket, of all members. It must exist; what is too old its own rules delete."},
    {"cluster.bucket.region", TEXT(cluster.bucket.region, check_region, "name"), false, nullptr,
     "The region that requests are signed for."},
    {"cluster.bucket.style", word_type<OF(BucketStyle, cluster.bucket.style)>(kStyles), false, nullptr,
     "path: https://HOST/BUCKET/KEY. host: https://BUCKET.HOST/KEY, as AWS wants it."},
    {"cluster.bucket.credentials", TEXT(cluster.bucket.credentials, check_absolute_path, kPath), false,
     "\"/etc/culprit/s3\"",
     "File with aws_access_key_id, aws_secret_access_key and perhaps aws_session_token, read for each "
     "request. "
     "Empty: the environment's AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN."},
    {"cluster.bucket.ca", TEXT(cluster.bucket.ca, check_absolute_path, kPath), false,
     "\"/etc/culprit/s3-ca.pem\"", "Certificate authorities (PEM) of the storage. Default: the system's."},
    {"cluster.bucket.cache", SizeType{OF(uint64_t, cluster.bucket.cache), kMiB, 64 * kTiB}, false, nullptr,
     "Disk for parts of objects that were read, in state_dir."},
    {"cluster.bucket.max_age",
     DurationType{OF(TimeNs, cluster.bucket.max_age_ns), 3600 * kSecond, 3650 * kDay}, false, nullptr,
     "Time after which the database forgets an object, so that it is not read. Set it to the age at which "
     "the "
     "bucket's own rule deletes objects."},
    {"check.enabled", FlagType{OF(bool, check.enabled)}, true, nullptr,
     "Let the collector have this host checked while no job runs on it. Roles agent and both."},
    {"check.commands",
     TextsType{OF(std::vector<std::string>, check.commands), check_command, "list of commands"}, true,
     "[\"/usr/bin/dcgmi diag -r 1\", \"/usr/bin/rocm-smi --showrasinfo all\"]",
     "Diagnostics of the hardware's vendor: absolute paths with arguments, separated by blanks; no shell. "
     "Status 0: passed. A host with accelerators passes no check without one."},
    {"check.align", TEXT(check.align, check_command, "command"), true,
     "\"/usr/bin/python3 -I -m culprit.align\"",
     "One step of a fixed model on each device, for a comparison with other hosts that the collector orders "
     "after wrong numbers: an absolute path with arguments; no shell. Empty: none."},
    {"check.align_memory", SizeType{OF(uint64_t, check.align_memory), 64 * kMiB, kTiB}, true, nullptr,
     "Memory of check.align, within the daemon's MemoryMax."},
    {"check.memory", SizeType{OF(uint64_t, check.memory), 0, 64 * kGiB}, true, nullptr,
     "Memory to test, within the daemon's MemoryMax. \"0B\": none."},
    {"check.disk", SizeType{OF(uint64_t, check.disk), 0, kTiB}, true, nullptr,
     "Bytes to write to a temporary file in state_dir, and to read again. \"0B\": none."},
    {"check.within", DurationType{OF(TimeNs, check.within_ns), kSecond, 1800 * kSecond}, true, nullptr,
     "Limit of a whole check. What has not ended by then has no answer."},
    {"check.every", DurationType{OF(TimeNs, check.every_ns), kSecond, kDay}, true, nullptr,
     "Shortest time between two checks at the collector's request."},
    {"copies.enabled", FlagType{OF(bool, copies.enabled)}, false, nullptr,
     "Copy checkpoints of this host to copies.to, store those of other hosts in copies.store, and serve "
     "culprit checkpoint restore. Roles agent and both."},
    {"copies.folders",
     TextsType{OF(std::vector<std::string>, copies.folders), check_absolute_path, "list of absolute paths"},
     false, "[\"/local/checkpoints\"]",
     "Folders of checkpoints on this host. The newest whole checkpoint of each series is copied; links are "
     "not "
     "followed."},
    {"copies.parts", FlagType{OF(bool, copies.parts)}, false, nullptr,
     "Each host writes only its own files of a checkpoint: files that are missing on this host are no "
     "fault."},
    {"copies.to", TextsType{OF(std::vector<std::string>, copies.to), check_tcp_address, "list of HOST:PORT"},
     false, "[\"gpu-42:7444\"]",
     "Agents that store this host's copies, in none of its parallel groups: see culprit checkpoint plan."},
    {"copies.peers",
     TextsType{OF(std::vector<std::string>, copies.peers), check_tcp_address, "list of HOST:PORT"}, false,
     "[\"gpu-17:7444\"]", "More agents from which users of this host may restore. Root may name any."},
    {"copies.command", TEXT(copies.command, check_command, "command"), false, "\"/usr/local/bin/save-copy\"",
     "Copies in place of a transfer to copies.to: an absolute path with arguments; no shell. It gets the "
     "checkpoint's path as its last argument; status 0: copied."},
    {"copies.rate", SizeType{OF(uint64_t, copies.rate), kMiB, 64 * kGiB}, false, nullptr,
     "Bytes read and sent in a second at most."},
    {"copies.every", DurationType{OF(TimeNs, copies.every_ns), kSecond, 3600 * kSecond}, false, nullptr,
     "Time between two looks at copies.folders."},
    {"copies.settle", DurationType{OF(TimeNs, copies.settle_ns), kSecond, 3600 * kSecond}, false, nullptr,
     "A checkpoint is copied after nothing in it changed for so long."},
    {"copies.socket", TEXT(copies.socket, check_socket_name, "name in runtime_dir, or absolute path"), false,
     nullptr, "Unix socket of culprit checkpoint restore and list, for every user of the host."},
    {"copies.store", TEXT(copies.store, check_absolute_path, kPath), false, "\"/local/culprit-copies\"",
     "Folder for copies of other hosts' checkpoints, of the daemon's user alone. Empty: none are stored."},
    {"copies.listen", TEXT(copies.listen, check_tcp_address, "HOST:PORT"), false, nullptr,
     "Address for the agents that store copies here or restore them; beyond loopback only with certificates: "
     "those of forward.tls, else of collector.tls."},
    {"copies.accept",
     TextsType{OF(std::vector<std::string>, copies.accept), check_host_name, "list of names"}, false,
     "[\"gpu-7\"]", "Hosts that may store copies here. Empty: every host with a certificate."},
    {"copies.max_size", SizeType{OF(uint64_t, copies.max_size), kMiB, 1024 * kTiB}, false, nullptr,
     "Limit of copies.store. A copy needs room in addition to the one that it replaces."},
    {"copies.min_free", SizeType{OF(uint64_t, copies.min_free), 0, 1024 * kTiB}, false, nullptr,
     "Bytes of the disk of copies.store that stay free."},
    {"copies.keep", IntegerType{OF(int64_t, copies.keep), 1, 16}, false, nullptr,
     "Newest copies of each series to keep. An older one leaves when a newer one is complete."},
    {"copies.max_age", DurationType{OF(TimeNs, copies.max_age_ns), 3600 * kSecond, 366 * kDay}, false,
     nullptr, "A copy older than this may make room for others, even the newest of its series."},
    {"copies.restore_anywhere", FlagType{OF(bool, copies.restore_anywhere)}, false, nullptr,
     "Let agents of other hosts than the owner restore its copies, for the owner or root. false: a host gets "
     "its own only."},
    {"daemon.log_level", word_type<OF(LogLevel, daemon.log_level)>(kLevels), true, nullptr,
     "Lowest level of the daemon's own log, on standard error."},
    {"alert.name", TEXT(alert.back().name, check_receiver_name, "name"), true, "\"on-call\"",
     "The receiver's name, in messages of culprit and in metrics."},
    {"alert.type", word_type<OF(AlertType, alert.back().type)>(kAlertTypes), true, nullptr,
     "webhook: a POST for each change of an issue. alertmanager: POST /api/v2/alerts, again each minute "
     "while it fires. mail: by sendmail."},
    {"alert.url", TEXT(alert.back().url, check_url, "http or https address"), true,
     "\"https://alertmanager.example:9093\"",
     "Address of the webhook or the Alertmanager. Redirects are not followed; certificates are verified."},
    {"alert.url_file", TEXT(alert.back().url_file, check_absolute_path, kPath), true,
     "\"/etc/culprit/slack.url\"",
     "File with the address, if it is a secret. Excludes url. Refused if other users may read it."},
    {"alert.headers_file", TEXT(alert.back().headers_file, check_absolute_path, kPath), true,
     "\"/etc/culprit/webhook.headers\"",
     "File of HTTP headers to send, NAME: VALUE a line. Refused if other users may read it; over http only "
     "on this machine."},
    {"alert.secret_file", TEXT(alert.back().secret_file, check_absolute_path, kPath), true,
     "\"/etc/culprit/pagerduty.key\"",
     "File with the value of {{secret}} in the template. Refused if other users may read it."},
    {"alert.template", TEXT(alert.back().template_file, check_absolute_path, kPath), true,
     "\"/usr/share/culprit/alerts/slack.json\"",
     "Webhook: template of the JSON to send, with values such as {{summary}}. Templates for Slack, Teams and "
     "PagerDuty are installed in this folder. Default: culprit.alert/1."},
    {"alert.ca", TEXT(alert.back().ca, check_absolute_path, kPath), true, "\"/etc/culprit/ca.pem\"",
     "Certificate authorities of the receiver. Default: those of the system."},
    {"alert.proxy", TEXT(alert.back().proxy, check_url, "http or https address"), true,
     "\"http://proxy.example:3128\"", "HTTP proxy. Proxy variables of the environment are ignored."},
    {"alert.to",
     TextsType{OF(std::vector<std::string>, alert.back().to), check_mail_address, "list of addresses"}, true,
     "[\"oncall@example.com\"]", "Mail: recipients."},
    {"alert.from", TEXT(alert.back().from, check_mail_address, "address"), true, "\"culprit@example.com\"",
     "Mail: sender."},
    {"alert.sendmail", TEXT(alert.back().sendmail, check_absolute_path, kPath), true, nullptr,
     "Mail: program that accepts a message, called as sendmail -i -- TO."},
    {"alert.categories",
     TextsType{OF(std::vector<std::string>, alert.back().categories), check_category, "list of categories"},
     true, "[\"hardware\", \"platform\"]", "Only diagnoses of these categories. Default: all."},
    {"alert.actions",
     TextsType{OF(std::vector<std::string>, alert.back().actions), check_action, "list of actions"}, true,
     "[\"isolate\", \"check\"]", "Only diagnoses that ask for one of these. Default: all."},
    {"alert.jobs", TextsType{OF(std::vector<std::string>, alert.back().jobs), check_job, "list of patterns"},
     true, "[\"llama-*\"]",
     "Only jobs whose names match one of these; * any characters, ? one. Default: all."},
    {"alert.owners",
     TextsType{OF(std::vector<std::string>, alert.back().owners), check_user, "list of users"}, true,
     "[\"alice\", \"bob\"]",
     "Users of this receiver, by name or uid, or \"*\" for each: only issues of their jobs are sent. Faults "
     "of a user's program then go to this receiver, and to no receiver without owners unless its categories "
     "contain user. Default: no owner."},
    {"alert.min_confidence", IntegerType{OF(int64_t, alert.back().min_confidence), 0, 100}, true, nullptr,
     "Only verdicts of at least this confidence, in per cent. A verdict has 50 or more."},
    {"alert.resolved", FlagType{OF(bool, alert.back().resolved)}, true, nullptr,
     "Also send resolved issues."},
    {"alerts.storm_above", IntegerType{OF(int64_t, alerts.storm_above), 1, 1000}, true, nullptr,
     "Limit of new issues in a minute that are sent one by one; further issues become one message that "
     "counts and names them, and are sent after the storm. Ten is what a person reads in a minute. "
     "Alertmanager groups by itself."},
    {"alerts.expire_after", DurationType{OF(TimeNs, alerts.expire_after_ns), 60 * kSecond, 365 * kDay}, true,
     nullptr,
     "An issue of an ended run is resolved after this long without news, since the job may never run again."},
    {"alerts.critical",
     TextsType{OF(std::vector<std::string>, alerts.critical), check_category, "list of categories"}, true,
     nullptr,
     "Categories of critical issues; all others are warnings, since a program's fault waits for its author."},
    {"alerts.remind_every", DurationType{OF(TimeNs, alerts.remind_every_ns), 0, 30 * kDay}, true, nullptr,
     "Time between reminders of a firing issue that is not acknowledged; \"0s\": none. Alertmanager repeats "
     "by itself."},
    {"otlp.endpoint", TEXT(otlp.endpoint, check_url, "http or https address"), true,
     "\"https://otel.example:4318\"",
     "Export findings and diagnoses as logs and the values of /metrics by OTLP over HTTP with JSON, to "
     "/v1/logs and /v1/metrics below this address."},
    {"otlp.headers_file", TEXT(otlp.headers_file, check_absolute_path, kPath), true,
     "\"/etc/culprit/otlp.headers\"", "As alert.headers_file."},
    {"otlp.ca", TEXT(otlp.ca, check_absolute_path, kPath), true, "\"/etc/culprit/ca.pem\"", "As alert.ca."},
    {"otlp.proxy", TEXT(otlp.proxy, check_url, "http or https address"), true,
     "\"http://proxy.example:3128\"", "As alert.proxy."},
    {"otlp.interval", DurationType{OF(TimeNs, otlp.interval_ns), kSecond, 3600 * kSecond}, true, nullptr,
     "Time between two exports of metrics. Logs are sent at once, in batches."},
    {"otlp.logs", FlagType{OF(bool, otlp.logs)}, true, nullptr, "Send findings and diagnoses."},
    {"otlp.metrics", FlagType{OF(bool, otlp.metrics)}, true, nullptr, "Send metrics."},
};

#undef TEXT
#undef OF

const OptionTable kTables[] = {
    {"", ""},
    {"host", ""},
    {"log", "Log files. The table may occur several times, here and in conf.d; all apply."},
    {"dump", "Flight Recorder dumps of PyTorch, which show where each rank waits. May occur several times."},
    {"pods", "Logs of the pods of a Kubernetes node. Off by default."},
    {"plugin", "How a plugin runs; these are the defaults. May occur several times."},
    {"alert",
     "A receiver of alerts: a job's verdict, its revisions and its end. May occur several times; the keys of "
     "each table select its alerts. Roles both and collector."},
    {"alerts", "Keys of all receivers."},
    {"otlp", "OpenTelemetry. Roles both and collector."},
    {"jobs", ""},
    {"engine", ""},
    {"trace", "Data that processes send themselves."},
    {"kernel", ""},
    {"journal", "The journal of systemd. Off by default."},
    {"ras", "NCCL's RAS service, from NCCL 2.24 on."},
    {"spool", ""},
    {"forward", "Role agent."},
    {"collector", "Roles collector and both."},
    {"http", ""},
    {"hang", ""},
    {"capture", "Data that is captured of a hanging job before its processes are ended."},
    {"act",
     "What the collector does about a job at fault: isolate hosts, run the job again. Roles both and "
     "collector. All is off by default."},
    {"cluster",
     "Several collectors that share their jobs over one database (docs/cluster.md). Roles both and "
     "collector. "
     "Off by default."},
    {"check",
     "A check of this host: memory, disk, PCIe links and the vendor's diagnostics (culprit node-check "
     "--full). "
     "Off by default."},
    {"copies",
     "Copies of checkpoints on other hosts, so that a host lost with its disk loses nothing that had a copy. "
     "Off "
     "by default."},
    {"daemon", ""},
};

struct Unit {
  std::string_view name;
  uint64_t factor;
};
constexpr Unit kTimeUnits[] = {{"d", uint64_t{86'400'000'000'000}},
                               {"h", uint64_t{3'600'000'000'000}},
                               {"m", uint64_t{60'000'000'000}},
                               {"s", uint64_t{1'000'000'000}},
                               {"ms", uint64_t{1'000'000}}};
constexpr Unit kSizeUnits[] = {{"TiB", kTiB},
                               {"GiB", kTiB >> 10},
                               {"MiB", kMiB},
                               {"KiB", 1024},
                               {"TB", uint64_t{1'000'000'000'000}},
                               {"GB", uint64_t{1'000'000'000}},
                               {"MB", 1'000'000},
                               {"kB", 1000},
                               {"B", 1}};

// Parses a whole number with its unit from the start of `text` and removes it.
std::optional<uint64_t> take_number(std::string_view& text, std::span<const Unit> units) {
  constexpr uint64_t kMost = static_cast<uint64_t>(std::numeric_limits<int64_t>::max());
  uint64_t number = 0;
  size_t at = 0;
  for (; at < text.size() && text[at] >= '0' && text[at] <= '9'; ++at) {
    if (number > kMost / 10 - 1) return std::nullopt;
    number = number * 10 + static_cast<uint64_t>(text[at] - '0');
  }
  if (at == 0) return std::nullopt;
  const size_t end = std::min(text.find_first_of("0123456789", at), text.size());
  const std::string_view name = text.substr(at, end - at);
  text.remove_prefix(end);
  for (const Unit& unit : units) {
    if (unit.name != name) continue;
    if (number > kMost / unit.factor) return std::nullopt;
    return number * unit.factor;
  }
  return std::nullopt;
}

std::string toml_text(std::string_view text) {
  std::string out = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + "\"";
}

}  // namespace

std::span<const Option> config_options() { return kOptions; }
std::span<const OptionTable> option_tables() { return kTables; }

Config config_with_tables() {
  Config config;
  config.logs.emplace_back();
  config.dumps.emplace_back();
  config.plugin.emplace_back();
  config.alert.emplace_back();
  return config;
}

const Option* find_option(std::string_view key) {
  const auto it = std::find_if(std::begin(kOptions), std::end(kOptions),
                               [&](const Option& option) { return option.key == key; });
  return it == std::end(kOptions) ? nullptr : it;
}

std::optional<TimeNs> parse_duration(std::string_view text) {
  uint64_t sum = 0;
  if (text.empty()) return std::nullopt;
  while (!text.empty()) {
    const auto part = take_number(text, kTimeUnits);
    if (!part) return std::nullopt;
    sum += *part;  // both below 2^63
    if (sum > static_cast<uint64_t>(std::numeric_limits<TimeNs>::max())) return std::nullopt;
  }
  return static_cast<TimeNs>(sum);
}

std::string duration_text(TimeNs ns) {
  const auto n = static_cast<uint64_t>(ns);
  // Writes "60s" and "24h" rather than "1m" and "1d", but "1s".
  for (const Unit& unit : kTimeUnits)
    if (n % unit.factor == 0 && (n / unit.factor >= 2 || unit.name == "s"))
      return fmt::format("{}{}", n / unit.factor, unit.name);
  return fmt::format("{}ms", n / static_cast<uint64_t>(kNsPerMs));
}

std::optional<uint64_t> parse_size(std::string_view text) {
  const auto size = take_number(text, kSizeUnits);
  return text.empty() ? size : std::nullopt;
}

std::string size_text(uint64_t bytes) {
  for (const Unit& unit : {kSizeUnits[0], kSizeUnits[1], kSizeUnits[2], kSizeUnits[3]})
    if (bytes > 0 && bytes % unit.factor == 0) return fmt::format("{}{}", bytes / unit.factor, unit.name);
  return fmt::format("{}B", bytes);
}

std::string value_text(const Option& option, Config& config) {
  struct Text {
    Config& config;
    std::string operator()(const TextType& t) const { return toml_text(t.of(config)); }
    std::string operator()(const TextsType& t) const {
      std::string out;
      for (const std::string& s : t.of(config)) out += (out.empty() ? "" : ", ") + toml_text(s);
      return "[" + out + "]";
    }
    std::string operator()(const FlagType& t) const { return t.of(config) ? "true" : "false"; }
    std::string operator()(const IntegerType& t) const { return std::to_string(t.of(config)); }
    std::string operator()(const DurationType& t) const { return toml_text(duration_text(t.of(config))); }
    std::string operator()(const SizeType& t) const { return toml_text(size_text(t.of(config))); }
    std::string operator()(const WordType& t) const { return toml_text(t.words[t.get(config)]); }
    std::string operator()(const PairsType& t) const {
      std::string out;
      for (const auto& [name, value] : t.of(config))
        out += fmt::format("{}{} = {}", out.empty() ? "" : ", ", name, toml_text(value));
      return "{ " + out + " }";
    }
  };
  return std::visit(Text{config}, option.type);
}

bool is_empty(const Option& option, Config& config) {
  if (const auto* text = std::get_if<TextType>(&option.type)) return text->of(config).empty();
  if (const auto* texts = std::get_if<TextsType>(&option.type)) return texts->of(config).empty();
  if (const auto* pairs = std::get_if<PairsType>(&option.type)) return pairs->of(config).empty();
  return false;
}

std::string type_text(const Option& option) {
  struct Text {
    std::string operator()(const TextType& t) const { return t.name; }
    std::string operator()(const TextsType& t) const { return t.name; }
    std::string operator()(const FlagType&) const { return "true or false"; }
    std::string operator()(const IntegerType& t) const {
      return fmt::format("whole number, {} to {}", t.least, t.most);
    }
    std::string operator()(const DurationType& t) const {
      return fmt::format("duration, {} to {}", duration_text(t.least), duration_text(t.most));
    }
    std::string operator()(const SizeType& t) const {
      return fmt::format("size, {} to {}", size_text(t.least), size_text(t.most));
    }
    std::string operator()(const WordType& t) const {
      std::string out;
      for (size_t i = 0; i < t.words.size(); ++i)
        out += (i == 0 ? "" : i + 1 == t.words.size() ? " or " : ", ") + std::string(t.words[i]);
      return out;
    }
    std::string operator()(const PairsType&) const { return "table"; }
  };
  return std::visit(Text(), option.type);
}

}  // namespace culprit::app
