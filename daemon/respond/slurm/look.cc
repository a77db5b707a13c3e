#include "respond/slurm/look.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include "base/text.h"
#include "respond/order.h"

namespace culprit::respond::slurm {
namespace {

constexpr size_t kJobsMost = 20'000, kNodesMost = 20'000;
constexpr size_t kLineColumns = 11;

using State = SeenJob::State;

// `man squeue`, JOB STATE CODES. A word that a later version may add is no end.
State state_of(std::string_view word) {
  constexpr std::pair<std::string_view, State> kWords[] = {
      {"PENDING", State::kPending},     {"REQUEUED", State::kPending},     {"REQUEUE_FED", State::kPending},
      {"CONFIGURING", State::kPending}, {"REQUEUE_HOLD", State::kHeld},    {"SPECIAL_EXIT", State::kHeld},
      {"RESV_DEL_HOLD", State::kHeld},  {"RUNNING", State::kRunning},      {"SUSPENDED", State::kRunning},
      {"STOPPED", State::kRunning},     {"SIGNALING", State::kRunning},    {"RESIZING", State::kRunning},
      {"COMPLETING", State::kEnding},   {"STAGE_OUT", State::kEnding},     {"COMPLETED", State::kCompleted},
      {"CANCELLED", State::kCancelled}, {"REVOKED", State::kCancelled},    {"TIMEOUT", State::kTimeLimit},
      {"DEADLINE", State::kTimeLimit},  {"PREEMPTED", State::kPreempted},  {"NODE_FAIL", State::kNodeFailed},
      {"FAILED", State::kFailed},       {"OUT_OF_MEMORY", State::kFailed}, {"BOOT_FAIL", State::kFailed},
  };
  for (const auto& [known, state] : kWords)
    if (word == known) return state;
  return State::kEnding;
}

bool is_held_reason(std::string_view reason) {
  return reason.starts_with("JobHeld") || reason.find("held") != reason.npos;
}

template <class Number>
bool parse_whole(std::string_view text, Number& out) {
  const auto end = std::from_chars(text.data(), text.data() + text.size(), out);
  return end.ec == std::errc() && end.ptr == text.data() + text.size();
}

tl::unexpected<SlurmError> unreadable(std::string_view what, std::string_view line) {
  return tl::unexpected(SlurmError{SlurmError::Kind::kMalformed,
                                   fmt::format("{}: unexpected answer: {}", what, one_line(line))});
}

// "culprit:XID79 d-0001 0123456789abcdef": the last word.
std::string op_of_reason(std::string_view reason) {
  if (!reason.starts_with("culprit:")) return {};
  const std::string_view last = reason.substr(reason.rfind(' ') + 1);
  const auto is_digit = [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); };
  return last.size() == 16 && std::ranges::all_of(last, is_digit) ? std::string(last) : "";
}

// Slurm 22.05 gives the status of wait(2), "768"; "3:0", code and signal, is the form of scontrol.
std::string exit_code_of(std::string_view text) {
  uint32_t status = 0;
  if (parse_whole(text, status)) return fmt::format("{}:{}", status >> 8 & 255, status & 127);
  uint32_t code = 0, signal = 0;
  const size_t colon = text.find(':');
  if (colon == text.npos || !parse_whole(text.substr(0, colon), code) ||
      !parse_whole(text.substr(colon + 1), signal))
    return {};
  return fmt::format("{}:{}", code, signal);
}

std::string_view value_after(std::string_view line, std::string_view key) {
  const size_t at = line.find(key);
  if (at == line.npos) return {};
  line.remove_prefix(at + key.size());
  return line.substr(0, line.find(' '));
}

}  // namespace

// JobID, State, SubmitTime, RestartCnt, BatchFlag, UserID, NumNodes, Partition, NodeList, exit_code, Reason.
SlurmResult<SeenJob> parse_job_line(std::string_view line, std::string& host_list) {
  const std::vector<std::string_view> columns = split(line, '|');
  if (columns.size() < kLineColumns) return unreadable("squeue", line);
  SeenJob out;
  out.job.scheduler = "slurm";
  out.job.id = columns[0];
  out.word = columns[1];
  int64_t submitted = 0;
  if (!parse_whole(columns[2], submitted) || !parse_whole(columns[3], out.job.restarts) ||
      !parse_whole(columns[5], out.uid) || !parse_whole(columns[6], out.nodes))
    return unreadable("squeue", line);
  out.job.submit_ns = submitted * kNsPerSecond;
  out.state = state_of(out.word);
  out.may_requeue = columns[4] == "1";
  out.partition = columns[7];
  host_list = columns[8];
  if (out.has_ended()) out.exit_code = exit_code_of(columns[9]);
  out.reason = one_line(columns[10]);
  if (out.state == State::kPending && is_held_reason(out.reason)) out.state = State::kHeld;
  out.requeued_held = out.state == State::kHeld && out.reason == kRequeuedHeld;
  return out;
}

SlurmResult<SeenHost> parse_node_line(std::string_view line) {
  const std::string name(value_after(line, "NodeName="));
  if (!is_host_name(name)) return unreadable("scontrol show node", line);
  const auto node = parse_node(line, name);
  if (!node) return tl::unexpected(node.error());
  SeenHost out;
  out.host = name;
  constexpr std::array<std::string_view, 6> kOut{"DRAIN", "DOWN", "FAIL", "MAINT", "POWER", "NOT_RESPONDING"};
  out.out = std::ranges::any_of(kOut, [&](std::string_view flag) { return node->has(flag); });
  out.idle = !out.out && node->has("IDLE");
  out.op = op_of_reason(node->reason);
  out.by = node->by.substr(0, node->by.find('@'));
  for (const std::string_view partition : split(value_after(line, " Partitions="), ','))
    if (!partition.empty()) out.partitions.emplace_back(partition);
  return out;
}

Result<const std::vector<std::string>*> SlurmLook::expand(const Commands& commands, const std::string& list) {
  if (const auto known = lists_.find(list); known != lists_.end()) return &known->second;
  if (auto before = last_lists_.extract(list); !before.empty())
    return &lists_.insert(std::move(before)).position->second;
  auto hosts = commands.expand(list);
  if (!hosts) return fail(ErrorCode::kIo, hosts.error().text);
  return &lists_.emplace(list, std::move(*hosts)).first->second;
}

Result<SchedulerView> SlurmLook::look() {
  const Commands commands(options_, pace_);
  const auto jobs = commands.job_lines();
  if (!jobs) return fail(ErrorCode::kIo, jobs.error().text);
  const auto nodes = commands.node_lines();
  if (!nodes) return fail(ErrorCode::kIo, nodes.error().text);
  SchedulerView out;
  last_lists_ = std::exchange(lists_, {});
  for (const std::string_view line : split(*jobs, '\n')) {
    if (trim(line).empty()) continue;
    std::string list;
    auto job = parse_job_line(line, list);
    if (!job) return fail(ErrorCode::kInvalid, job.error().text);
    if (out.jobs.size() >= kJobsMost) return fail(ErrorCode::kLimit, "squeue: more than 20,000 jobs");
    if (job->state == State::kRunning || job->state == State::kEnding) {
      const auto hosts = expand(commands, list);
      if (!hosts) return tl::unexpected(hosts.error());
      job->hosts = **hosts;
    }
    out.jobs.push_back(std::move(*job));
  }
  for (const std::string_view line : split(*nodes, '\n')) {
    if (trim(line).empty()) continue;
    auto node = parse_node_line(line);
    if (!node) return fail(ErrorCode::kInvalid, node.error().text);
    if (out.hosts.size() >= kNodesMost) return fail(ErrorCode::kLimit, "scontrol: more than 20,000 nodes");
    out.hosts.push_back(std::move(*node));
  }
  return out;
}

}  // namespace culprit::respond::slurm
