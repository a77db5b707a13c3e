#include "core/logs/host_name.h"

#include <algorithm>
#include <array>

namespace culprit::logs {
namespace {

constexpr size_t kNameMax = 253;  // RFC 1035
constexpr size_t kLabelMax = 63;

template <size_t N>
constexpr std::array<std::string_view, N> sorted(std::array<std::string_view, N> words) {
  std::sort(words.begin(), words.end());
  return words;
}

// Words for machines and for the roles that job systems give to hosts, as they stand before a number.
constexpr auto kMachines = sorted(std::to_array<std::string_view>(
    {"node",      "nodes",    "host",     "server",   "machine", "nid",  "ip",  "vm",
     "compute",   "blade",    "rack",     "cn",       "dgx",     "hgx",  "srv", "bm",
     "baremetal", "instance", "hostname", "nodename", "cnode",   "gnode"}));
constexpr auto kRoles = sorted(std::to_array<std::string_view>(
    {"worker", "master", "trainer", "pod", "replica", "launcher", "learner", "actor", "chief", "ps", "slave",
     "container", "executor", "leader", "follower", "agent"}));

// What is numbered in a training job, in a program's output and inside of a host.
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
     "rdzv",    "plan",       "study",    "sweep",   "config",    "cell",       "example",  "sample",
     "samples", "figure",     "table",    "util",    "code",      "status",     "exit",     "errno",
     "ret",     "rc",         "signal",   "sig",     "xid",       "sxid",       "epoll",    "http",
     "https",   "tcp",        "udp",      "ipv",     "rdma",      "roce",       "cluster",  "dc",
     "region",  "zone",       "az",       "user",    "team",      "proj",       "project",  "repo",
     "branch",  "tag",        "step",     "nrt",     "parser",    "none",       "default",  "role"}));

// Last labels of the names that machines have; "foo.bar.Error" and "python3.8" are no domains.
constexpr auto kDomains = sorted(std::to_array<std::string_view>(
    {"local", "localdomain", "internal", "lan", "intra", "intranet", "corp",   "cluster", "svc",
     "hpc",   "com",         "net",      "org", "edu",   "gov",      "mil",    "int",     "io",
     "ai",    "dev",         "cloud",    "de",  "fr",    "uk",       "ch",     "jp",      "cn",
     "kr",    "fi",          "se",       "no",  "it",    "es",       "nl",     "eu",      "au",
     "ca",    "us",          "in",       "sg",  "home",  "arpa",     "private"}));

constexpr bool digit(char c) { return static_cast<unsigned char>(c - '0') < 10; }
constexpr bool alpha(char c) { return static_cast<unsigned char>((c | 0x20) - 'a') < 26; }
constexpr bool upper(char c) { return c >= 'A' && c <= 'Z'; }

template <size_t N>
bool holds(const std::array<std::string_view, N>& words, std::string_view word) {
  char lower[24];
  if (word.size() > sizeof lower) return false;
  for (size_t i = 0; i < word.size(); ++i) lower[i] = static_cast<char>(word[i] | 0x20);
  return std::binary_search(words.begin(), words.end(), std::string_view(lower, word.size()));
}

// "llama-7f9c6d5b4-x2x1z": a replica set's hash and a pod's, which Kubernetes makes of these letters.
bool is_pod_name(std::string_view name) {
  const size_t last = name.rfind('-');
  if (last == std::string_view::npos || last == 0 || name.size() - last - 1 != 5) return false;
  const size_t before = name.rfind('-', last - 1);
  if (before == std::string_view::npos || before == 0) return false;
  const std::string_view hash = name.substr(before + 1, last - before - 1);
  if (hash.size() < 6 || hash.size() > 10) return false;
  bool digits = false;
  for (char c : name.substr(before + 1)) {
    if (c != '-' && !digit(c) && !(alpha(c) && !upper(c))) return false;
    digits |= digit(c);
  }
  return digits && alpha(name[0]);
}

// A name cut into runs of letters, runs of digits and what separates them.
struct Runs {
  std::string_view last_word;  // the last run of letters that a number follows
  char joint = 0;              // what stands between that word and its number: 0, '-' or '_'
  size_t number_size = 0;      // digits of the number behind it
  size_t pairs = 0;            // runs of letters that a number follows with nothing between
  bool other = false;          // one of the words is no host's
  bool machine = false;        // one of the words is a machine's
  bool underscore = false;
  bool number_first = false;  // a part begins with digits and goes on with letters, as hashes and sizes do
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
      runs.number_first |= joint != 0 && end < name.size() && alpha(name[end]);
    } else {
      runs.underscore |= name[i] == '_';
      joint = name[i];
      end = i + 1;
    }
    i = end;
  }
  return runs;
}

// A name without dots.
HostForm label_form(std::string_view label) {
  if (label.size() < 2 || label.size() > kLabelMax || !alpha(label[0])) return HostForm::kNone;
  if (is_pod_name(label)) return HostForm::kRole;
  const size_t tail = label.size() - 1;
  if (!digit(label[tail])) {
    // "host-a", "node-b": a word for a machine and one letter
    if (label.size() < 4 || !alpha(label[tail]) || (label[tail - 1] != '-' && label[tail - 1] != '_'))
      return HostForm::kNone;
    std::string_view word = label.substr(0, tail - 1);
    word = word.substr(word.find_last_of("-_") + 1);
    return holds(kMachines, word) ? HostForm::kMachine : HostForm::kNone;
  }
  const Runs runs = runs_of(label);
  if (runs.last_word.empty() || runs.number_first) return HostForm::kNone;
  // Job ids have six digits and more; a host's number that stands apart has fewer.
  if (runs.joint != 0 && runs.number_size > 5) return HostForm::kNone;
  if (runs.number_size > 8) return HostForm::kNone;
  // "hgx-h100-12": a letter in front of the number says less than the words before it
  if (holds(kMachines, runs.last_word) || (runs.machine && runs.last_word.size() == 1 && !runs.other))
    return HostForm::kMachine;
  if (holds(kRoles, runs.last_word)) return HostForm::kRole;
  if (runs.other || holds(kOthers, runs.last_word))
    return runs.pairs >= 2 && !runs.other ? HostForm::kNumbered : HostForm::kNone;
  // '_' is no letter of a host's name: only the words above may have it.
  if (runs.underscore) return HostForm::kNone;
  // "E30008", "EI0004", "MIE03E400008": codes of errors
  if (runs.all_upper && label.find('-') == std::string_view::npos &&
      (runs.pairs == 1 || runs.number_size > 3))
    return HostForm::kNone;
  return HostForm::kNumbered;
}

}  // namespace

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

HostForm host_form(std::string_view name) {
  if (name.size() < 2 || name.size() > kNameMax) return HostForm::kNone;
  for (char c : name)
    if (!alpha(c) && !digit(c) && c != '-' && c != '_' && c != '.') return HostForm::kNone;
  const size_t dot = name.find('.');
  if (dot == std::string_view::npos) return label_form(name);
  if (is_ipv4(name)) return HostForm::kMachine;
  const std::string_view last = name.substr(name.rfind('.') + 1);
  if (!holds(kDomains, last) || name.find("..") != std::string_view::npos || dot == 0) return HostForm::kNone;
  const HostForm first = label_form(name.substr(0, dot));
  if (first != HostForm::kNone) return first;
  // "login.cluster.example.org": three labels under a known top are no file and no module
  return std::count(name.begin(), name.end(), '.') >= 2 ? HostForm::kNumbered : HostForm::kNone;
}

}  // namespace culprit::logs
