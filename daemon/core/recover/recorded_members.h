// Internal to core/recover/recording.cc: the members of each input, once for writing and reading. A member
// that is added later needs a default, so that an older record can be read.
#pragma once

#include <array>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "core/recover/controller.h"
#include "model/json_members.h"
#include "model/recovery_json.h"
#include "model/verdict.h"

namespace culprit::recover {

// In the order of Input.
constexpr std::array<std::string_view, std::variant_size_v<Input>> kKindWords = {
    "options", "cluster",       "attempt-started", "means",  "verdict",  "suspects", "progress", "ended",
    "changed", "host",          "host-checked",    "result", "approval", "reset",    "undo",     "restored",
    "tick",    "host-repaired", "advice-seen",     "ledger", "adopted"};

template <class In>
constexpr size_t kind_of() {
  return Input(std::in_place_type<In>).index();
}

template <size_t... n>
Input empty_input_of(size_t kind, std::index_sequence<n...>) {
  Input out = Tick{};
  (void)((kind == n ? (out.emplace<n>(), true) : false) || ...);
  return out;
}
inline Input empty_input(size_t kind) {
  return empty_input_of(kind, std::make_index_sequence<std::variant_size_v<Input>>());
}

inline std::span<const std::string_view> word_list(Mode) {
  static constexpr std::string_view kWords[] = {"observe", "ask", "act"};
  return kWords;
}
inline std::span<const std::string_view> word_list(JobEnd) {
  static constexpr std::string_view kWords[] = {"completed", "cancelled",   "time-limit",
                                                "preempted", "node-failed", "failed"};
  return kWords;
}
inline std::span<const std::string_view> word_list(ForeignKind) {
  static constexpr std::string_view kWords[] = {"started", "held", "released"};
  return kWords;
}
inline std::span<const std::string_view> word_list(CheckAnswer) {
  static constexpr std::string_view kWords[] = {"passed", "failed", "no-answer"};
  return kWords;
}

template <class In, class Wanted>
concept Is = std::is_same_v<std::remove_const_t<In>, Wanted>;

template <class Io, Is<ScheduledJob> In>
void job_members(Io& io, In& job) {
  io.member("scheduler", job.scheduler);
  io.member("id", job.id);
  io.member("uid", job.uid);
  io.time("submit_ns", job.submit_ns);
  io.member("restarts", job.restarts);
}
template <class Io, class In>
void job_of(Io& io, In& in) {
  io.object("job", [&](auto& inner) { job_members(inner, in.job); });
}

// ---- options

template <class Io, Is<HostLimit> In>
void limit_members(Io& io, const char* name, In& in) {
  io.object(name, [&](auto& inner) {
    inner.member("hosts", in.hosts);
    inner.member("share", in.share);
  });
}
template <class Io, Is<Stages> In>
void stage_members(Io& io, In& in) {
  io.member("isolate", in.isolate);
  io.member("restart", in.restart);
  io.member("check", in.check);
  io.member("return", in.give_back);
}
template <class Io, Is<Policy> In>
void policy_members(Io& io, In& in) {
  io.member("isolate_confidence", in.isolate_confidence);
  io.member("stop_confidence", in.stop_confidence);
  io.member("network_repeat", in.network_repeat);
  io.member("check_network", in.check_network);
  io.member("network_window_ns", in.network_window_ns);
  io.member("slow_measured", in.slow_measured);
  io.member("slow_share", in.slow_share);
  io.member("corruption_audits", in.corruption_audits);
  io.member("group_hosts", in.group_hosts);
  io.member("group_share", in.group_share);
  io.member("machine_repeat", in.machine_repeat);
  io.member("machine_window_ns", in.machine_window_ns);
  io.member("cause_hosts", in.cause_hosts);
  io.member("cause_share", in.cause_share);
  io.member("cause_window_ns", in.cause_window_ns);
  io.member("exclude_ns", in.exclude_ns);
  io.member("isolate_groups", in.isolate_groups);
  io.member("align", in.align);
}
// One of GuardOptions::partitions.
struct PartitionStages {
  std::string name;
  Stages stages;
};
template <class Io>
void partition_members(Io& io, const std::map<std::string, Stages>& in) {
  std::vector<PartitionStages> list;
  for (const auto& [name, stages] : in) list.push_back({name, stages});
  io.list("partitions", list, [](auto& inner, const PartitionStages& one) {
    inner.member("name", one.name);
    stage_members(inner, one.stages);
  });
}
inline void partition_members(JsonMembersIn& io, std::map<std::string, Stages>& out) {
  std::vector<PartitionStages> list;
  io.list("partitions", list, [](auto& inner, PartitionStages& one) {
    inner.member("name", one.name);
    stage_members(inner, one.stages);
  });
  for (const PartitionStages& one : list) out[one.name] = one.stages;
}
template <class Io, Is<GuardOptions> In>
void guard_members(Io& io, In& in) {
  io.word("mode", in.mode);
  io.object("stages", [&](auto& inner) { stage_members(inner, in.stages); });
  partition_members(io, in.partitions);
  io.member("short_window_ns", in.short_window_ns);
  limit_members(io, "short_limit", in.short_limit);
  io.member("long_window_ns", in.long_window_ns);
  limit_members(io, "long_limit", in.long_limit);
  limit_members(io, "at_once_limit", in.at_once_limit);
  limit_members(io, "group_limit", in.group_limit);
  io.member("veto_ns", in.veto_ns);
  io.member("undo_ns", in.undo_ns);
  io.member("probation_ns", in.probation_ns);
  io.member("evidence_max_ns", in.evidence_max_ns);
}
template <class Io, Is<Bounds> In>
void bound_members(Io& io, In& in) {
  io.member("suspect_ns", in.suspect_ns);
  io.member("stop_ns", in.stop_ns);
  io.member("check_ns", in.check_ns);
  io.member("isolate_ns", in.isolate_ns);
  io.member("restart_ns", in.restart_ns);
  io.member("verify_min_ns", in.verify_min_ns);
  io.member("verdict_ns", in.verdict_ns);
  io.member("pending_ns", in.pending_ns);
  io.member("remind_ns", in.remind_ns);
  io.member("question_ns", in.question_ns);
}
template <class Io, Is<Limits> In>
void limits_members(Io& io, In& in) {
  io.member("retries", in.retries);
  io.member("attempts_per_day", in.attempts_per_day);
  io.member("storm", in.storm);
  io.member("storm_ns", in.storm_ns);
  io.member("later_max_ns", in.later_max_ns);
  io.member("min_left_ns", in.min_left_ns);
}
template <class Io, Is<ControllerOptions> In>
void input_members(Io& io, In& in) {
  io.object("policy", [&](auto& inner) { policy_members(inner, in.policy); });
  io.object("guard", [&](auto& inner) { guard_members(inner, in.guard); });
  io.object("bounds", [&](auto& inner) { bound_members(inner, in.bounds); });
  io.object("limits", [&](auto& inner) { limits_members(inner, in.limits); });
  io.member("storm_hosts", in.storm_hosts);
  if constexpr (std::is_same_v<Io, JsonMembersIn>) in.origins.kernel_files.clear();
  io.member("kernel_files", in.origins.kernel_files);
  io.member("advise", in.advise);
  io.member("advice_ns", in.advice_ns);
}

// ---- inputs

template <class Io, Is<ClusterSeen> In>
void input_members(Io& io, In& in) {
  io.member("hosts", in.hosts);
}
template <class Io, Is<AttemptStarted> In>
void input_members(Io& io, In& in) {
  job_of(io, in);
  io.member("hosts", in.hosts);
  io.member("partition", in.partition);
  io.member("from_iteration", in.from_iteration);
  io.member("checkpoint", in.checkpoint);
}
template <class Io, Is<JobMeans> In>
void input_members(Io& io, In& in) {
  job_of(io, in);
  io.member("spares", in.means.spares);
  io.member("may_shrink", in.means.may_shrink);
  io.member("may_requeue", in.means.may_requeue);
  io.time("left_ns", in.means.left_ns);
  io.member("chance", in.means.chance);
  io.member("may_leave_devices", in.means.may_leave_devices);
  io.member("eligible", in.eligible);
  io.member("needed", in.needed);
  io.member("whole_checkpoint", in.checkpoint);
  io.member("pending", in.pending);
  io.member("pending_reason", in.pending_reason);
}
// What the controller reads of a diagnosis: without sentences and texts of logs.
inline Diagnosis without_texts(const Diagnosis& d) {
  Diagnosis out;
  out.id = d.id;
  out.rule = d.rule;
  out.detector = d.detector;
  out.found_by = d.found_by;
  out.about = d.about;
  out.title = d.title;
  out.category = d.category;
  out.component = d.component;
  out.symptom = d.symptom;
  out.iteration = d.iteration;
  out.time_ns = d.time_ns;
  out.confidence = d.confidence;
  out.said_by = d.said_by;
  out.action = d.action;
  out.restart = d.restart;
  for (const Suspect& s : d.hosts) {
    Suspect& added = out.hosts.emplace_back();
    added.host = s.host;
    added.score = s.score;
    added.devices = s.devices;
  }
  for (const Evidence& e : d.evidence) {
    Evidence& added = out.evidence.emplace_back();
    added.host = e.host;
    added.file = e.file;
    added.line = e.line;
    added.time_ns = e.time_ns;
    added.uid = e.uid;
  }
  return out;
}
template <class Io>
void diagnosis_member(Io& io, const Diagnosis& in) {
  Verdict verdict;
  verdict.diagnosis = without_texts(in);
  io.member("diagnosis", to_json(verdict));
  // The form above rounds the confidence, and leaves an advice without a sentence out.
  io.member("confidence", in.confidence);
  io.member("restart", std::string(to_string(in.restart.kind)));
  io.member("sure", in.restart.sure);
  io.member("without_hosts", in.restart.hosts);
  io.member("without_devices", in.restart.devices);
}
inline void diagnosis_member(JsonMembersIn& io, Diagnosis& out) {
  std::string text;
  io.member("diagnosis", text);
  if (auto verdict = verdict_from_json(text))
    out = std::move(verdict->diagnosis);
  else
    io.refuse("diagnosis");
  io.member("confidence", out.confidence);
  std::string kind;
  io.member("restart", kind);
  if (const auto known = from_word<Restart>(kind))
    out.restart.kind = *known;
  else
    io.refuse("restart");
  io.member("sure", out.restart.sure);
  out.restart.hosts.clear();
  out.restart.devices.clear();
  io.member("without_hosts", out.restart.hosts);
  io.member("without_devices", out.restart.devices);
}
template <class Io, Is<VerdictSeen> In>
void input_members(Io& io, In& in) {
  job_of(io, in);
  diagnosis_member(io, in.diagnosis);
  io.member("alive", in.alive);
  io.member("settled", in.settled);
  io.member("by_user", in.also.user);
  io.member("by_kernel", in.also.kernel);
  io.member("by_plugin", in.also.plugin);
  io.member("by_scheduler", in.also.scheduler);
  io.member("by_peers", in.also.peers);
  io.member("measured", in.measured);
  io.member("step_share", in.step_share);
  io.member("withdrawn", in.withdrawn);
}
template <class Io, Is<SuspectsSeen> In>
void input_members(Io& io, In& in) {
  job_of(io, in);
  io.member("hosts", in.hosts);
  io.member("stalled", in.stalled);
  io.member("why", in.why);
}
template <class Io, Is<ProgressSeen> In>
void input_members(Io& io, In& in) {
  job_of(io, in);
  io.member("iteration", in.iteration);
  io.member("saved", in.saved);
}
template <class Io, Is<AttemptEnded> In>
void input_members(Io& io, In& in) {
  job_of(io, in);
  io.word("end", in.end);
  io.member("failed_hosts", in.failed_hosts);
  io.member("word", in.word);
  io.member("exit_code", in.exit_code);
  io.member("reason", in.reason);
}
template <class Io, Is<JobChanged> In>
void input_members(Io& io, In& in) {
  job_of(io, in);
  io.word("change", in.kind);
  io.member("by", in.by);
}
template <class Io, Is<HostSeen> In>
void input_members(Io& io, In& in) {
  io.member("host", in.host);
  io.member("out", in.out);
  io.member("op", in.op);
  io.member("by", in.by);
  io.member("partition", in.partition);
  io.time("read_ns", in.read_ns);
  io.time("boot_ns", in.boot_ns);
}
template <class Io, Is<HostChecked> In>
void input_members(Io& io, In& in) {
  io.member("host", in.host);
  io.word("answer", in.answer);
  io.member("why", in.why);
  io.member("spare", in.spare);
  bool align = in.kind == CheckKind::kAlign;
  io.member("align", align);
  if constexpr (!std::is_const_v<In>) in.kind = align ? CheckKind::kAlign : CheckKind::kHost;
}
template <class Io, Is<ActionResult> In>
void input_members(Io& io, In& in) {
  job_of(io, in);
  io.member("op", in.op);
  io.word("state", in.state);
  io.member("detail", in.detail);
  io.member("hosts", in.hosts);
  io.time("at_ns", in.at_ns);
}
template <class Io, Is<Approval> In>
void input_members(Io& io, In& in) {
  io.member("decision", in.decision);
  io.member("approved", in.approved);
  io.member("by", in.by);
}
template <class Io, Is<BreakerReset> In>
void input_members(Io& io, In& in) {
  io.member("by", in.by);
  io.time("at_ns", in.at_ns);
}
template <class Io, Is<Undo> In>
void input_members(Io& io, In& in) {
  io.member("op", in.op);
  io.member("by", in.by);
}
template <class Io, Is<Restored> In>
void input_members(Io& io, In& in) {
  io.list("read", in.read, [](auto& inner, auto& one) {
    inner.member("op", one.op);
    inner.member("mark_present", one.mark_present);
    inner.member("precondition_holds", one.precondition_holds);
  });
}
template <class Io, Is<Tick> In>
void input_members(Io&, In&) {}
template <class Io, Is<AdviceSeen> In>
void input_members(Io& io, In& in) {
  job_of(io, in);
  io.member("id", in.id);
  io.word("advice", in.kind);
  io.word("outcome", in.outcome);
  io.member("ranks", in.ranks);
  io.member("step", in.step);
  io.member("why", in.why);
}
// Rows in their stored form.
template <class Io, class Row>
void rows_member(Io& io, const char* name, const std::vector<Row>& rows) {
  std::vector<std::string> texts;
  for (const Row& row : rows) texts.push_back(to_json(row));
  io.member(name, texts);
}
inline void rows_member(JsonMembersIn& io, const char* name, auto& rows, auto read) {
  std::vector<std::string> texts;
  io.member(name, texts);
  for (const std::string& text : texts)
    if (auto row = read(text))
      rows.push_back(std::move(*row));
    else
      io.refuse(name);
}
template <class Io, Is<LedgerSeen> In>
void input_members(Io& io, In& in) {
  if constexpr (std::is_const_v<In>) {
    rows_member(io, "isolations", in.isolations);
    rows_member(io, "machines", in.machines);
  } else {
    rows_member(io, "isolations", in.isolations, action_of);
    rows_member(io, "machines", in.machines, machine_of);
  }
}
template <class Io, Is<JobAdopted> In>
void input_members(Io& io, In& in) {
  job_of(io, in);
  if constexpr (std::is_const_v<In>) {
    rows_member(io, "attempts", in.attempts);
    rows_member(io, "actions", in.actions);
  } else {
    rows_member(io, "attempts", in.attempts, attempt_of);
    rows_member(io, "actions", in.actions, action_of);
  }
}
template <class Io, Is<HostRepaired> In>
void input_members(Io& io, In& in) {
  io.member("host", in.host);
  io.member("by", in.by);
}

}  // namespace culprit::recover
