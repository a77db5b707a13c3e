#include "core/logs/host_name.h"

#include <algorithm>
#include <array>

#include "base/ascii.h"

namespace culprit::logs {
namespace {

constexpr size_t kNameMax = 253;  // RFC 1035
constexpr size_t kLabelMax = 63;

template <size_t N>
constexpr std::array<std::string_view, N> sorted(std::array<std::string_view, N> words) {
  std::sort(words.begin(), words.end());
  return words;
}

// Words before the number of a host: machines, and roles that job systems give to hosts.
constexpr auto kMachines = sorted(std::to_array<std::string_view>(
    {"node",     "nodes",    "host",  "server", "machine", "nid",  "ip",      "vm",        "compute",
     "blade",    "rack",     "cn",    "dgx",    "hgx",     "srv",  "bm",      "baremetal", "instance",
     "hostname", "nodename", "cnode", "gnode",  "gpunode", "vmss", "highgpu", "megagpu",   "ultragpu"}));
constexpr auto kRoles = sorted(std::to_array<std::string_view>(
    {"worker", "master", "trainer", "pod", "replica", "launcher", "learner", "actor", "chief", "ps", "slave",
     "container", "executor", "leader", "follower", "agent"}));

// Words before numbers that do not name a host: of training jobs, program output, and parts inside a host.
constexpr auto kOthers = sorted(std::to_array<std::string_view>(
    {"result",  "results",    "run",      "runs",    "log",       "logs",       "attempt",  "part",
     "step",    "steps",      "epoch",    "trial",   "version",   "job",        "jobs",     "jobid",
     "model",   "checkpoint", "ckpt",     "iter",    "iteration", "global",     "save",     "output",
     "out",     "stdout",     "stderr",   "err",     "error",     "errors",     "test",     "tests",
     "exp",     "experiment", "seed",     "fold",    "shard",     "split",      "chunk",    "batch",
     "bs",      "mbs",        "gbs",      "lr",      "wd",        "layer",      "layers",   "block",
     "stage",   "head",       "heads",    "expert",  "experts",   "rank",       "ranks",    "local",
     "task",    "tasks",      "proc",     "process", "pid",       "tid",        "thread",   "stream",
     "device",  "dev",        "gpus",     "npu",     "xpu",       "cuda",       "rocm",     "hip",
     "nccl",    "rccl",       "hccl",     "cudnn",   "torch",     "pytorch",    "python",   "py",
     "numpy",   "deepspeed",  "megatron", "slurm",   "pbs",       "lsf",        "sge",      "mpi",
     "openmpi", "train",      "training", "eval",    "valid",     "validation", "finetune", "pretrain",
     "sft",     "rl",         "dpo",      "ppo",     "phase",     "dataset",    "data",     "file",
     "files",   "line",       "frame",    "col",     "row",       "case",       "config",   "cfg",
     "args",    "param",      "beta",     "alpha",   "gamma",     "adam",       "fp",       "bf",
     "int",     "uint",       "float",    "utf",     "sha",       "md",         "crc",      "base",
     "conv",    "fc",         "bn",       "ln",      "norm",      "linear",     "attn",     "mlp",
     "top",     "loss",       "acc",      "f",       "v",         "ver",        "rev",      "rc",
     "release", "build",      "patch",    "hotfix",  "pr",        "issue",      "tr",       "eth",
     "ib",      "bond",       "en",       "ens",     "eno",       "enp",        "mlx",      "lo",
     "sd",      "sda",        "sdb",      "hd",      "nvme",      "md",         "dm",       "loop",
     "tty",     "cpu",        "numa",     "socket",  "core",      "nvlink",     "pcie",     "port",
     "lane",    "link",       "rail",     "nic",     "hca",       "tp",         "pp",       "dp",
     "ep",      "cp",         "sp",       "vpp",     "zero",      "seq",        "seqlen",   "ctx",
     "nl",      "hs",         "h",        "l",       "b",         "a",          "d",        "e",
     "k",       "m",          "p",        "q",       "s",         "t",          "w",        "x",
     "y",       "z",          "day",      "week",    "date",      "time",       "hour",     "min",
     "sec",     "level",      "group",    "ring",    "channel",   "channels",   "comm",     "tree",
     "world",   "size",       "num",      "count",   "total",     "id",         "idx",      "index",
     "key",     "val",        "value",    "level",   "page",      "section",    "chapter",  "messages",
     "message", "syslog",     "dmesg",    "kern",    "kernel",    "plog",       "trace",    "traces",
     "metrics", "metric",     "stack",    "stacks",  "dump",      "core",       "heap",     "event",
     "events",  "session",    "pass",     "round",   "cycle",     "episode",    "gpt",      "llama",
     "bert",    "roberta",    "resnet",   "vit",     "bloom",     "opt",        "palm",     "gemma",
     "phi",     "mistral",    "mixtral",  "qwen",    "qwq",       "glm",        "chatglm",  "deepseek",
     "falcon",  "internlm",   "baichuan", "yi",      "grok",      "whisper",    "clip",     "unet",
     "sdxl",    "dit",        "moe",      "wiki",    "wikitext",  "imagenet",   "cifar",    "mnist",
     "backup",  "old",        "new",      "copy",    "tmp",       "temp",       "cache",    "archive",
     "report",  "summary",    "failure",  "fail",    "bug",       "debug",      "info",     "warn",
     "try",     "retry",      "restart",  "array",   "bench",     "ablation",   "rdzv",     "plan",
     "study",   "sweep",      "config",   "cell",    "example",   "sample",     "samples",  "figure",
     "table",   "util",       "code",     "status",  "exit",      "errno",      "ret",      "rc",
     "signal",  "sig",        "xid",      "sxid",    "epoll",     "http",       "https",    "tcp",
     "udp",     "ipv",        "rdma",     "roce",    "cluster",   "dc",         "region",   "zone",
     "az",      "user",       "team",     "proj",    "project",   "repo",       "branch",   "tag",
     "step",    "nrt",        "parser",   "none",    "default",   "role"}));

// Last labels of host names; "foo.bar.Error" and "python3.8" are no domains.
constexpr auto kDomains = sorted(std::to_array<std::string_view>(
    {"local", "localdomain", "internal", "lan", "intra", "intranet", "corp",   "cluster", "svc",
     "hpc",   "com",         "net",      "org", "edu",   "gov",      "mil",    "int",     "io",
     "ai",    "dev",         "cloud",    "de",  "fr",    "uk",       "ch",     "jp",      "cn",
     "kr",    "fi",          "se",       "no",  "it",    "es",       "nl",     "eu",      "au",
     "ca",    "us",          "in",       "sg",  "home",  "arpa",     "private"}));

template <size_t N>
bool holds(const std::array<std::string_view, N>& words, std::string_view word) {
  char lower[24];
  if (word.size() > sizeof lower) return false;
  for (size_t i = 0; i < word.size(); ++i) lower[i] = static_cast<char>(word[i] | 0x20);
  return std::binary_search(words.begin(), words.end(), std::string_view(lower, word.size()));
}

// Words after a host's number in the names of its network interfaces: "node0123-ib0".
constexpr auto kInterfaces = sorted(
    std::to_array<std::string_view>({"ib", "eth", "bond", "hsn", "opa", "mgmt", "bmc", "ipmi", "roce"}));
// First words of cloud names for nodes of a pool; such names have at least three more parts.
constexpr auto kPools =
    sorted(std::to_array<std::string_view>({"gke", "aks", "eks", "oke", "lke", "ske", "doks", "t1v"}));
}  // namespace

bool is_common_word(std::string_view word) { return word.size() > 1 && holds(kOthers, word); }

namespace {

// The parts of a name between separators.
struct Parts {
  static constexpr size_t kMost = 12;
  std::array<std::string_view, kMost> part;
  size_t n = 0;
  bool cut = false;  // there are more

  explicit Parts(std::string_view name) {
    for (size_t begin = 0; begin <= name.size() && !cut;) {
      const size_t end = std::min(name.find_first_of("-_", begin), name.size());
      cut = n == kMost;
      if (!cut) part[n++] = name.substr(begin, end - begin);
      begin = end + 1;
    }
  }
  std::string_view back() const { return part[n - 1]; }
};

bool all_hex(std::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return digit(c) || ((c | 0x20) >= 'a' && (c | 0x20) <= 'f'); });
}

// The letters at the beginning of a part.
std::string_view word_of(std::string_view part) {
  size_t letters = 0;
  while (letters < part.size() && alpha(part[letters])) ++letters;
  return part.substr(0, letters);
}

// Five random characters of Kubernetes: without vowels and similar digits.
bool is_pod_suffix(std::string_view part) {
  constexpr std::string_view kDrawn = "bcdfghjklmnpqrstvwxz2456789";
  return part.size() == 5 && part.find_first_not_of(kDrawn) == std::string_view::npos;
}

// "llama-7f9c6d5b4-x2x1z": Kubernetes generates the hashes of a replica set and a pod from these letters.
// "train-0-x7zq2": the index of a job and the letters of a pod; "mpi-launcher-x7zq2".
bool is_pod_name(const Parts& name) {
  if (name.n < 3 || name.cut || name.back().size() != 5 || !alpha(name.part[0][0])) return false;
  for (size_t i = 0; i < name.n; ++i)  // the id of a job ends before the name of the pod
    if (name.part[i].size() > 4 && all_digits(name.part[i])) return false;
  const std::string_view before = name.part[name.n - 2];
  if (is_pod_suffix(name.back()) && (holds(kRoles, before) || (all_digits(before) && before.size() <= 4)))
    return true;
  if (before.size() < 6 || before.size() > 10) return false;
  bool digits = false;
  for (std::string_view part : {before, name.back()})
    for (char c : part) {
      if (!digit(c) && !(alpha(c) && !upper(c))) return false;
      digits |= digit(c);
    }
  return digits;
}

// "gke-cluster-pool-1-abcd", "aks-nodepool1-12345678-vmss000001", "i-0abc123def4567890", and static and
// dynamic nodes of AWS ParallelCluster: "queue1-dy-p5en-1".
bool is_cloud_name(const Parts& name) {
  if (name.n == 2 && name.part[0] == "i")
    return (name.back().size() == 17 || name.back().size() == 8) && all_hex(name.back());
  if (name.n < 4 || name.back().empty()) return false;
  if (holds(kPools, name.part[0])) return true;
  if (!all_digits(name.back()) || !alpha(name.part[0][0])) return false;
  for (size_t i = 1; i + 2 < name.n; ++i)
    if (name.part[i] == "dy" || name.part[i] == "st") return true;
  return false;
}

// Runs of letters, runs of digits and separators of a name.
struct Runs {
  std::string_view last_word;  // the last run of letters before a number
  char joint = 0;              // separator between that word and its number: 0 (none), '-' or '_'
  size_t number_size = 0;      // digits of that number
  size_t pairs = 0;            // runs of letters directly before a number
  size_t inner_number = 0;     // digits of the longest separated number, except at the end
  bool other = false;          // one of the words never names a host
  bool machine = false;        // one of the words names a machine
  bool underscore = false;
  // A part begins with digits and continues with letters, like hashes and sizes, without a machine word
  // before.
  bool number_first = false;
  bool all_upper = true;
};

Runs runs_of(std::string_view name) {
  Runs runs;
  std::string_view word;
  char joint = 0;
  for (size_t i = 0; i < name.size();) {
    size_t end = i;
    if (alpha(name[i])) {
      while (end < name.size() && alpha(name[end])) runs.all_upper &= upper(name[end++]);
      word = name.substr(i, end - i);
      runs.machine |= holds(kMachines, word);
      joint = 0;
    } else if (digit(name[i])) {
      while (end < name.size() && digit(name[end])) ++end;
      if (!word.empty()) {
        runs.last_word = word;
        runs.joint = joint;
        runs.number_size = end - i;
        runs.pairs += joint == 0;
        runs.other |= holds(kOthers, word) && word.size() > 1;
      }
      const bool apart = joint != 0 && end < name.size();
      runs.number_first |= apart && alpha(name[end]) && !runs.machine;
      if (apart && !alpha(name[end])) runs.inner_number = std::max(runs.inner_number, end - i);
    } else {
      runs.underscore |= name[i] == '_';
      joint = name[i];
      end = i + 1;
    }
    i = end;
  }
  return runs;
}

// A form that counts only where only a host is expected: "w001", "b200-01".
HostForm weak_form(std::string_view label, const Runs& runs) {
  if (runs.underscore || runs.last_word.empty() || runs.other) return HostForm::kNone;
  if (is_common_word(word_of(label)) || is_common_word(runs.last_word)) return HostForm::kNone;
  if (word_of(label).size() == 1 && label.size() < 3) return HostForm::kNone;  // "v2"
  const bool code = runs.all_upper && label.find('-') == std::string_view::npos && runs.number_size > 3;
  return code ? HostForm::kNone : HostForm::kPossible;
}

// The form of a name with a number at its end, from the word before the number.
HostForm numbered_form(std::string_view label) {
  const Runs runs = runs_of(label);
  if (runs.last_word.empty()) return HostForm::kNone;
  // Job ids have five digits or more; a separated number of a host has fewer.
  if (runs.inner_number > 4 || (runs.joint != 0 && runs.number_size > 5)) return HostForm::kNone;
  if (runs.number_size > 8) return HostForm::kNone;
  const bool machine = holds(kMachines, runs.last_word);
  if (machine && !runs.number_first) return HostForm::kMachine;
  // "llama-70b-worker-0": pods have the name of their job before their role
  if (holds(kRoles, runs.last_word)) return HostForm::kRole;
  const HostForm weak = weak_form(label, runs);
  if (machine || runs.number_first) return weak;
  // "hgx-h100-12", "a3-highgpu-8g-0": the words before decide, not the letter next to the number
  if (runs.machine && runs.last_word.size() == 1 && !runs.other) return HostForm::kMachine;
  if (runs.other || holds(kOthers, runs.last_word))
    return runs.pairs >= 2 && !runs.other ? HostForm::kNumbered : weak;
  // '_' is not allowed in host names, except after the words above.
  if (runs.underscore) return HostForm::kNone;
  // "E30008", "EI0004", "MIE03E400008": error codes
  if (runs.all_upper && label.find('-') == std::string_view::npos &&
      (runs.pairs == 1 || runs.number_size > 3))
    return HostForm::kNone;
  return HostForm::kNumbered;
}

// A name without dots.
HostForm label_form(std::string_view label) {
  if (label.size() < 2 || label.size() > kLabelMax || !alpha(label[0])) return HostForm::kNone;
  const Parts parts(label);
  if (parts.cut) return HostForm::kNone;
  for (size_t i = 0; i < parts.n; ++i)
    if (parts.part[i].empty()) return HostForm::kNone;
  if (is_cloud_name(parts)) return HostForm::kMachine;
  if (is_pod_name(parts)) return HostForm::kRole;
  const std::string_view last = parts.back();
  if (parts.n > 1 && is_interface_name(last)) {
    const HostForm form = label_form(label.substr(0, label.size() - last.size() - 1));
    if (form >= HostForm::kNumbered) return form;
  }
  if (digit(label.back())) return numbered_form(label);
  // "host-a", "node-b": a word for a machine and one letter
  if (parts.n >= 2 && last.size() == 1 && holds(kMachines, parts.part[parts.n - 2]))
    return HostForm::kMachine;
  return HostForm::kNone;
}

}  // namespace

bool is_interface_name(std::string_view part) {
  const std::string_view word = word_of(part), number = part.substr(word.size());
  return holds(kInterfaces, word) && (number.empty() || all_digits(number));
}

bool is_pool_word(std::string_view word) { return holds(kPools, word); }

bool is_ipv4(std::string_view text) {
  size_t parts = 0, at = 0;
  while (parts < 4) {
    unsigned value = 0;
    size_t digits = 0;
    while (at < text.size() && digit(text[at]) && digits < 4)
      value = value * 10 + (text[at++] - '0'), ++digits;
    if (digits == 0 || digits > 3 || value > 255) return false;
    if (++parts < 4 && (at >= text.size() || text[at++] != '.')) return false;
  }
  return at == text.size();
}

bool is_ipv6(std::string_view text) {
  // Host addresses are in 2000::/3, fc00::/7 and fe80::/10; "c10::d" in programs is not an address.
  if (text.find(':') != 4 || (text[0] != '2' && text[0] != '3' && (text[0] | 0x20) != 'f')) return false;
  size_t groups = 0, gaps = 0;
  for (size_t at = 0; at <= text.size(); ++groups) {
    const size_t end = std::min(text.find(':', at), text.size());
    const std::string_view group = text.substr(at, end - at);
    if (group.empty() && at > 0 && at < text.size()) ++gaps;
    if (group.empty() ? at == text.size() : group.size() > 4 || !all_hex(group)) return false;
    at = end + 1;
  }
  return gaps == 1 ? groups <= 8 : gaps == 0 && groups == 8;
}

bool is_whole_host_name(std::string_view name) {
  const HostForm form = host_form(name);
  if (form < HostForm::kRole) return false;
  if (name.find_first_of(".:") != std::string_view::npos) return true;
  const Parts parts(name);
  const std::string_view last = parts.back();
  if (parts.part[0] == "ip") return parts.n == 5;
  if (is_cloud_name(parts)) return !holds(kPools, parts.part[0]) || last.size() >= 4;
  if (form == HostForm::kRole || all_digits(last)) return true;
  // "rack1-3" and "blade2-7" need the number of a machine in the rack
  const std::string_view word = word_of(last);
  return holds(kMachines, word) && word != "rack" && word != "blade";
}

HostForm host_form(std::string_view name) {
  if (name.size() < 2 || name.size() > kNameMax) return HostForm::kNone;
  if (is_ipv6(name)) return HostForm::kMachine;
  for (char c : name)
    if (!alpha(c) && !digit(c) && c != '-' && c != '_' && c != '.') return HostForm::kNone;
  const size_t dot = name.find('.');
  if (dot == std::string_view::npos) return label_form(name);
  if (is_ipv4(name)) return HostForm::kMachine;
  const std::string_view last = name.substr(name.rfind('.') + 1);
  if (!holds(kDomains, last) || name.find("..") != std::string_view::npos || dot == 0) return HostForm::kNone;
  const HostForm first = label_form(name.substr(0, dot));
  if (first >= HostForm::kNumbered) return first;
  // "login.cluster.example.org": three labels under a known top domain are neither a file nor a module
  return std::count(name.begin(), name.end(), '.') >= 2 ? HostForm::kNumbered : HostForm::kNone;
}

}  // namespace culprit::logs
