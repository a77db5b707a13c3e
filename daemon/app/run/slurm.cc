#include "app/run/slurm.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <span>

#include "app/run/tool.h"
#include "base/text.h"
#include "io/descriptors.h"
#include "io/system_error.h"

namespace culprit::app {
namespace {

constexpr size_t kScriptBytes = 8 << 20;  // Slurm's own limit is 4 MiB
constexpr size_t kNodesMost = 100'000, kOptionBytes = 64 << 10, kSlurmLineBytes = 2 << 20;
constexpr int kAncestorsMost = 64;
constexpr int64_t kSecondsMost = int64_t{1} << 33;

template <class Number>
std::optional<Number> number_of(std::string_view text) {
  Number n = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), n);
  return error == std::errc() && end == text.data() + text.size() && !text.empty() ? std::optional(n)
                                                                                   : std::nullopt;
}

bool is_given(std::string_view value) {
  return !value.empty() && value != "(null)" && value != "N/A" && value != "None" && value != "NONE" &&
         value != "Unknown";
}

// The value of a field of a line "Name=value Other=value"; values may have spaces. Empty: not given.
std::string_view field(std::string_view line, std::string_view name) {
  for (size_t at = 0; (at = line.find(name, at)) != line.npos; at += name.size()) {
    const size_t equals = at + name.size();
    if ((at > 0 && line[at - 1] != ' ') || equals >= line.size() || line[equals] != '=') continue;
    std::string_view value = line.substr(equals + 1);
    // The value ends before the next word with a '='.
    size_t end = value.size();
    for (size_t space = value.find(' '); space != value.npos; space = value.find(' ', space + 1)) {
      const std::string_view next = value.substr(space + 1, value.find(' ', space + 1) - space - 1);
      const size_t sign = next.find('=');
      if (sign == next.npos || sign == 0 || next[0] < 'A' || next[0] > 'Z') continue;
      end = space;
      break;
    }
    value = trim(value.substr(0, end));
    return is_given(value) ? value : std::string_view();
  }
  return {};
}

bool is_srun(const std::vector<std::string>& command) {
  return !command.empty() && command[0].substr(command[0].rfind('/') + 1) == "srun";
}

std::string joined(const std::vector<std::string>& words) { return fmt::format("{}", fmt::join(words, ",")); }

// The value of a line "PreemptMode   = REQUEUE"; empty: none.
std::string_view value_in(std::string_view config, std::string_view name) {
  for (const std::string_view line : split(config, '\n'))
    if (line.starts_with(name) && trim(line.substr(name.size())).starts_with('='))
      return trim(line.substr(line.find('=') + 1));
  return {};
}

// "gres:gpu:8" and "gres/gpu:8" as --gres has it; empty: it has other parts.
std::string gres_option(std::string_view per_node) {
  std::string out;
  for (std::string_view part : split(per_node, ',')) {
    if (!part.starts_with("gres:") && !part.starts_with("gres/")) return {};
    out += (out.empty() ? "" : ",") + std::string(part.substr(5));
  }
  return out;
}

// The job's number in a file's name becomes %j, so that the successor has a file of its own.
std::string output_pattern(std::string_view path, std::string_view id) {
  const size_t name = path.rfind('/') + 1;
  std::string out(path.substr(0, name));
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  for (size_t i = name; i < path.size();) {
    size_t end = i;
    while (end < path.size() && is_digit(path[end])) ++end;
    if (end > i)
      out += path.substr(i, end - i) == id ? "%j" : path.substr(i, end - i);
    else
      out += path[end++];
    i = end;
  }
  return out;
}

// Of the processes above this one: the batch script's interpreter.
std::optional<std::vector<std::string>> arguments_above() {
  pid_t pid = ::getppid();
  for (int i = 0; i < kAncestorsMost && pid > 1; ++i) {
    std::ifstream line(fmt::format("/proc/{}/cmdline", pid), std::ios::binary);
    std::string text(kSlurmLineBytes, '\0');
    line.read(text.data(), static_cast<std::streamsize>(text.size()));
    text.resize(static_cast<size_t>(line.gcount()));
    if (auto found = script_arguments(text)) return found;
    std::ifstream stat(fmt::format("/proc/{}/stat", pid));
    std::string words((std::istreambuf_iterator<char>(stat)), {});
    const size_t behind = words.rfind(") ");
    if (behind == words.npos || behind + 4 > words.size()) return std::nullopt;
    const std::string_view rest = std::string_view(words).substr(behind + 4);
    pid = number_of<pid_t>(rest.substr(0, rest.find(' '))).value_or(0);
  }
  return std::nullopt;
}

// The same where the script has replaced itself by this program (exec). Slurm joins the words by spaces, so
// an argument with a space comes back as two.
std::vector<std::string> arguments_of(std::string_view command) {
  std::vector<std::string> out;
  for (const std::string_view word : split(command, ' ')) out.emplace_back(word);
  if (!out.empty()) out.erase(out.begin());
  return out;
}

// The words before the program. An unknown option is taken for one without a value of its own word.
std::span<const std::string> srun_options(const std::vector<std::string>& command) {
  constexpr std::string_view kShort = "ABCDGJKLMNOPRTUWcdeimnopqrtwx";
  constexpr std::string_view kLong[] = {"account",
                                        "chdir",
                                        "constraint",
                                        "container-image",
                                        "container-mounts",
                                        "cpu-bind",
                                        "cpus-per-gpu",
                                        "cpus-per-task",
                                        "distribution",
                                        "error",
                                        "exclude",
                                        "export",
                                        "gpus",
                                        "gpus-per-node",
                                        "gpus-per-task",
                                        "gres",
                                        "input",
                                        "job-name",
                                        "mem",
                                        "mem-per-cpu",
                                        "mpi",
                                        "network",
                                        "nodefile",
                                        "nodelist",
                                        "nodes",
                                        "ntasks",
                                        "ntasks-per-node",
                                        "output",
                                        "partition",
                                        "qos",
                                        "time",
                                        "wait"};
  size_t end = 1;
  while (end < command.size() && command[end].starts_with('-')) {
    const std::string_view word = command[end];
    const bool is_short = word.size() == 2 && kShort.find(word[1]) != kShort.npos;
    end +=
        is_short || std::ranges::find(kLong, word.substr(std::min<size_t>(2, word.size()))) != std::end(kLong)
            ? 2
            : 1;
  }
  return std::span(command).subspan(1, std::min(end, command.size()) - 1);
}

}  // namespace

Result<SlurmJob> slurm_job_of(std::string_view text) {
  std::string_view line = trim(text);
  if (!line.starts_with("JobId=")) return fail(ErrorCode::kInvalid, "scontrol: shows no job");
  // The job's name comes first and may look like any field.
  line.remove_prefix(std::min(line.find(" UserId="), line.size()));
  SlurmJob out;
  out.batch = field(line, "BatchFlag") != "0";
  out.requeue = field(line, "Requeue") == "1";
  out.time_limit = field(line, "Reason") == "TimeLimit" || field(line, "JobState") == "TIMEOUT";
  // An earlier start of the job may have been preempted.
  const auto preempted = number_of<int64_t>(field(line, "PreemptTime"));
  out.preempted = preempted && *preempted >= number_of<int64_t>(field(line, "StartTime")).value_or(0);
  if (const auto end = number_of<int64_t>(field(line, "EndTime")); end && *end > 0 && *end < kSecondsMost)
    out.end_ns = *end * kNsPerSecond;
  out.time = field(line, "TimeLimit");
  if (out.time == "UNLIMITED") out.end_ns = kNoTime;
  if (out.time == "Partition_Limit") out.time.clear();
  out.partition = field(line, "Partition");
  out.qos = field(line, "QOS");
  out.excluded = field(line, "ExcNodeList");
  out.folder = field(line, "WorkDir");
  out.out = field(line, "StdOut");
  out.err = field(line, "StdErr");
  out.gres = gres_option(field(line, "TresPerNode"));
  out.features = field(line, "Features");
  out.exclusive = field(line, "OverSubscribe") == "NO";
  out.command = field(line, "Command");
  return out;
}

std::optional<uint32_t> nodes_of_step(const std::vector<std::string>& command) {
  if (!is_srun(command)) return std::nullopt;
  const std::span<const std::string> options = srun_options(command);
  for (size_t i = 0; i < options.size(); ++i) {
    std::string_view word = options[i], value;
    if (word == "-N" || word == "--nodes")
      value = i + 1 < options.size() ? std::string_view(options[i + 1]) : std::string_view();
    else if (word.starts_with("--nodes="))
      value = word.substr(8);
    else if (word.starts_with("-N"))
      value = word.substr(2);
    else
      continue;
    return number_of<uint32_t>(value.substr(0, value.find('-')));  // "2-4": at least 2
  }
  return std::nullopt;
}

bool spans_hosts(const std::vector<std::string>& command, const Lookup& variable) {
  return is_srun(command) && variable("SLURM_JOB_NUM_NODES").value_or("") != "1";
}

bool can_exclude(const std::vector<std::string>& command) {
  return is_srun(command) && std::ranges::none_of(srun_options(command), [](std::string_view word) {
           return word.starts_with("-x") || word.starts_with("-w") || word.starts_with("--exclude") ||
                  word.starts_with("--nodelist") || word.starts_with("--nodefile");
         });
}

std::vector<std::string> excluding(std::vector<std::string> command, const std::vector<std::string>& nodes) {
  if (!nodes.empty() && can_exclude(command))
    command.insert(command.begin() + 1, "--exclude=" + joined(nodes));
  return command;
}

std::string node_named(std::string_view host, const std::vector<std::string>& nodes) {
  for (const std::string& node : nodes)
    if (node == host) return node;
  const std::string_view name = host.substr(0, host.find('.'));
  for (const std::string& node : nodes)
    if (std::string_view(node).substr(0, node.find('.')) == name) return node;
  return {};
}

std::optional<std::vector<std::string>> script_arguments(std::string_view line) {
  std::vector<std::string> out;
  bool found = false;
  while (!line.empty()) {
    const std::string_view word = line.substr(0, line.find('\0'));
    if (found)
      out.emplace_back(word);
    else
      found = word.ends_with("/slurm_script");
    line.remove_prefix(std::min(line.size(), word.size() + 1));
  }
  return found ? std::optional(std::move(out)) : std::nullopt;
}

std::vector<std::string> successor_options(const SlurmJob& job, const Lookup& variable) {
  constexpr std::pair<const char*, const char*> kVariables[] = {
      {"SLURM_JOB_NAME", "--job-name"},
      {"SLURM_JOB_ACCOUNT", "--account"},
      {"SLURM_JOB_QOS", "--qos"},
      {"SLURM_JOB_RESERVATION", "--reservation"},
      {"SLURM_JOB_NUM_NODES", "--nodes"},
      {"SLURM_NTASKS", "--ntasks"},
      {"SLURM_NTASKS_PER_NODE", "--ntasks-per-node"},
      {"SLURM_CPUS_PER_TASK", "--cpus-per-task"},
      {"SLURM_MEM_PER_NODE", "--mem"},
      {"SLURM_MEM_PER_CPU", "--mem-per-cpu"},
      {"SLURM_GPUS", "--gpus"},
      {"SLURM_GPUS_PER_NODE", "--gpus-per-node"},
      {"SLURM_GPUS_PER_TASK", "--gpus-per-task"},
      {"SLURM_ARRAY_TASK_ID", "--array"}};
  std::vector<std::string> out;
  const auto add = [&out](const char* option, std::string_view value) {
    if (is_given(value) && value.size() < kOptionBytes) out.push_back(fmt::format("{}={}", option, value));
  };
  for (const auto& [name, option] : kVariables) add(option, variable(name).value_or(""));
  add("--partition", job.partition);
  add("--time", job.time);
  add("--chdir", job.folder);
  add("--gres", job.gres);
  add("--constraint", job.features);
  if (job.exclusive) out.emplace_back("--exclusive");
  if (!variable("SLURM_ARRAY_TASK_ID")) {
    const std::string id = variable("SLURM_JOB_ID").value_or("");
    add("--output", output_pattern(job.out, id));
    if (job.err != job.out) add("--error", output_pattern(job.err, id));
  }
  return out;
}

std::optional<BatchJob> BatchJob::find(const Lookup& variable, std::string& why) {
  why.clear();
  BatchJob out;
  out.variable_ = variable;
  out.id_ = variable("SLURM_JOB_ID").value_or("");
  if (out.id_.empty() || variable("SLURM_STEP_ID")) return std::nullopt;
  if (!number_of<uint32_t>(out.id_)) return why = "SLURM_JOB_ID is no number", std::nullopt;
  if (variable("SLURM_HET_SIZE")) return why = "a heterogeneous job is not supported", std::nullopt;
  const auto names =
      output_of({.words = {"scontrol", "show", "hostnames", variable("SLURM_JOB_NODELIST").value_or("")}});
  if (!names) return why = names.error().text, std::nullopt;
  for (const std::string_view name : split(*names, '\n'))
    if (!trim(name).empty() && out.nodes_.size() < kNodesMost) out.nodes_.emplace_back(trim(name));
  if (out.nodes_.empty()) return why = "scontrol names no node of this job", std::nullopt;
  return out;
}

Result<SlurmJob> BatchJob::ask() const {
  const auto text =
      output_of({.words = {"scontrol", "-o", "show", "job", id_}, .environment = {"SLURM_TIME_FORMAT=%s"}});
  if (!text) return tl::unexpected(text.error());
  return slurm_job_of(text->substr(0, text->find('\n')));
}

bool preempts_by_qos(std::string_view config) {
  return value_in(config, "PreemptType").find("qos") != std::string_view::npos;
}

bool requeues(std::string_view config, std::string_view partition, std::string_view qos) {
  std::string mode(preempts_by_qos(config) ? trim(qos.substr(0, qos.find('\n')))
                                           : field(partition, "PreemptMode"));
  for (char& c : mode)
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  if (mode.empty() || mode == "OFF" || mode == "CLUSTER") mode = value_in(config, "PreemptMode");
  return mode.find("REQUEUE") != mode.npos;
}

bool BatchJob::requeues_preempted(const SlurmJob& job) {
  if (!job.requeue) return false;
  if (requeues_) return *requeues_;
  const auto partition = output_of({.words = {"scontrol", "-o", "show", "partition", job.partition}});
  const auto config = output_of({.words = {"scontrol", "show", "config"}});
  if (!config && !partition) return true;  // it may, and a successor would be a second copy
  Result<std::string> qos = std::string();
  if (config && preempts_by_qos(*config) && !job.qos.empty())
    qos = output_of(
        {.words = {"sacctmgr", "-nP", "show", "qos", "where", "name=" + job.qos, "format=PreemptMode"}});
  requeues_ = requeues(config ? *config : "", partition ? *partition : "", qos ? *qos : "");
  return *requeues_;
}

uint32_t BatchJob::spares(const std::vector<std::string>& command,
                          const std::vector<std::string>& excluded) const {
  const auto needed = nodes_of_step(command);
  if (!needed || *needed == 0 || !can_exclude(command)) return 0;
  const auto used = static_cast<size_t>(*needed) + excluded.size();
  return nodes_.size() > used ? static_cast<uint32_t>(nodes_.size() - used) : 0;
}

Status BatchJob::try_step(const std::vector<std::string>& command,
                          const std::vector<std::string>& excluded) const {
  const std::string needed = std::to_string(nodes_of_step(command).value_or(1));
  const auto names =
      output_of({.words = {"srun", "--exclude=" + joined(excluded), "-N" + needed, "-n" + needed,
                           "--ntasks-per-node=1", "printenv", "SLURMD_NODENAME"}});
  if (!names) return tl::unexpected(names.error());
  size_t seen = 0;
  for (const std::string_view name : split(*names, '\n')) {
    if (trim(name).empty()) continue;
    ++seen;
    if (std::ranges::find(excluded, trim(name)) != excluded.end())
      return fail(ErrorCode::kInvalid, fmt::format("srun: a step without {} ran on it", trim(name)));
  }
  if (std::to_string(seen) != needed)
    return fail(ErrorCode::kInvalid, fmt::format("srun: a step for {} nodes ran on {}", needed, seen));
  return {};
}

Result<std::string> BatchJob::submit(const Successor& successor, const std::string& script) const {
  const auto job = ask();
  if (!job) return tl::unexpected(job.error());
  if (!job->batch) return fail(ErrorCode::kInvalid, "this allocation has no script to submit again");
  const auto text =
      output_of({.words = {"scontrol", "write", "batch_script", id_, "-"}, .output_max = kScriptBytes});
  if (!text) return tl::unexpected(text.error());
  const io::Descriptor file(
      ::open(script.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!file.is_open() ||
      ::write(file.get(), text->data(), text->size()) != static_cast<ssize_t>(text->size()))
    return io::system_failure(script, errno);
  Tool tool;
  tool.words = {"sbatch",
                "--parsable",
                "--dependency=afterany:" + id_,
                "--export=ALL",
                "--open-mode=append",
                successor.wait_ns < kNsPerSecond
                    ? "--begin=now"
                    : fmt::format("--begin=now+{}", successor.wait_ns / kNsPerSecond)};
  std::vector<std::string> exclude = successor.exclude;
  if (!job->excluded.empty()) exclude.insert(exclude.begin(), job->excluded);
  if (!exclude.empty()) tool.words.push_back("--exclude=" + joined(exclude));
  for (std::string& option : successor_options(*job, variable_)) tool.words.push_back(std::move(option));
  tool.words.push_back(script);
  const auto above = arguments_above();
  for (std::string& word : above ? std::vector<std::string>(*above) : arguments_of(job->command))
    tool.words.push_back(std::move(word));
  tool.environment = successor.environment;
  tool.unset = {"SLURM_RESTART_COUNT"};  // of this job
  const auto answer = output_of(tool);
  if (!answer) return tl::unexpected(answer.error());
  const std::string_view id = trim(std::string_view(*answer).substr(0, answer->find_first_of(";\n")));
  if (!number_of<uint32_t>(id)) return fail(ErrorCode::kInvalid, "sbatch: printed no number of a job");
  return std::string(id);
}

}  // namespace culprit::app
