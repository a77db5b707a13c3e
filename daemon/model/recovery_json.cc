#include "model/recovery_json.h"

#include <fmt/format.h>

#include <array>
#include <nlohmann/json.hpp>
#include <span>
#include <type_traits>

#include "model/json_members.h"
#include "model/json_text.h"

namespace culprit {

namespace {

using Json = nlohmann::json;

constexpr std::array<std::string_view, 5> kOrderKinds = {"isolate", "return", "end-tasks", "run-again",
                                                         "verify"};
constexpr std::array<std::string_view, 7> kActionStates = {"reserved",   "done",      "failed", "ambiguous",
                                                           "superseded", "abandoned", "undone"};

// The members of a row, once for writing and reading. Times are null where they are unknown.
template <class Io, class Row>
void job_members(Io& io, Row& job) {
  io.member("scheduler", job.scheduler);
  io.member("id", job.id);
  io.member("uid", job.uid);
  io.time("submit_ns", job.submit_ns);
  io.member("restarts", job.restarts);
}

template <class Io, class Row>
requires std::is_same_v<std::remove_const_t<Row>, ActionRecord>
void members(Io& io, Row& row) {
  io.member("op", row.order.op);
  io.member("decision", row.order.decision);
  io.word("kind", row.order.kind);
  io.member("target", row.order.target);
  io.object("job", [&](auto& inner) { job_members(inner, row.order.job); });
  io.member("excluded", row.order.excluded);
  io.member("code", row.order.code);
  io.member("reason", row.order.reason);
  io.member("device", row.order.device);
  io.word("state", row.state);
  io.member("attempt", row.attempt);
  io.member("sent", row.sent);
  io.member("precondition", row.precondition);
  io.member("before", row.before);
  io.member("by", row.by);
  io.member("root", row.root);
  io.member("undone_by", row.undone_by);
  io.time("reserved_ns", row.reserved_ns);
  io.time("settled_ns", row.settled_ns);
  io.member("detail", row.detail);
}

template <class Io, class Row>
requires std::is_same_v<std::remove_const_t<Row>, AttemptRecord>
void members(Io& io, Row& row) {
  io.object("job", [&](auto& inner) { job_members(inner, row.job); });
  io.member("attempt", row.attempt);
  io.time("begin_ns", row.begin_ns);
  io.time("end_ns", row.end_ns);
  io.time("first_step_ns", row.first_step_ns);
  io.time("last_progress_ns", row.last_progress_ns);
  io.time("saved_ns", row.saved_ns);
  io.time("detected_ns", row.detected_ns);
  io.time("decided_ns", row.decided_ns);
  io.member("exit", row.exit);
  io.member("exit_code", row.exit_code);
  io.member("exit_reason", row.exit_reason);
  io.member("root", row.root);
  io.member("cause", row.cause);
  io.member("restart", row.restart);
  io.member("decision", row.decision);
  io.member("closed", row.closed);
  io.member("hosts", row.hosts);
  io.member("excluded", row.excluded);
  io.member("progress_from", row.progress_from);
  io.member("progress_to", row.progress_to);
  io.member("checkpoint", row.checkpoint);
  io.member("lost_s", row.lost_s);
  io.member("declined", row.declined);
}

template <class Io, class Row>
requires std::is_same_v<std::remove_const_t<Row>, MachineRecord>
void members(Io& io, Row& row) {
  io.member("host", row.host);
  io.member("device", row.device);
  io.member("suspected", row.suspected);
  io.member("confirmed", row.confirmed);
  io.member("refuted", row.refuted);
  io.member("isolated", row.isolated);
  io.member("returned", row.returned);
  io.member("repaired", row.repaired);
  io.time("suspected_ns", row.suspected_ns);
  io.time("isolated_ns", row.isolated_ns);
  io.time("returned_ns", row.returned_ns);
  io.time("last_ns", row.last_ns);
  io.member("last_root", row.last_root);
  io.member("op", row.op);
  io.member("isolations", row.isolations);
}

template <class Row>
void write_row(JsonWriter& w, const Row& row) {
  w.object([&] {
    JsonMembersOut writing(w);
    members(writing, row);
  });
}

template <class Row>
Result<Row> read_row(std::string_view text) {
  const Json json = parse_json(text);
  if (!json.is_object())
    return fail(ErrorCode::kInvalid, "a row of the controller's ledger is no JSON object");
  Row out;
  JsonMembersIn reading(json);
  members(reading, out);
  if (!reading.wrong().empty())
    return fail(ErrorCode::kInvalid, "a row of the controller's ledger: " + reading.wrong());
  return out;
}

}  // namespace

std::span<const std::string_view> word_list(OrderKind) { return kOrderKinds; }
std::span<const std::string_view> word_list(ActionState) { return kActionStates; }
std::span<const std::string_view> word_list(AdviceKind) {
  static constexpr std::string_view kWords[] = {"none", "rollback",   "skip_batches", "lower_lr",
                                                "clip", "check_rank", "save_now",     "stop"};
  return kWords;
}
std::span<const std::string_view> word_list(AdviceOutcome) {
  static constexpr std::string_view kWords[] = {"taken", "refused", "achieved", "not_applied"};
  return kWords;
}

std::string_view word_of(OrderKind kind) { return kOrderKinds[static_cast<size_t>(kind)]; }
std::string_view word_of(ActionState state) { return kActionStates[static_cast<size_t>(state)]; }

void write(JsonWriter& w, const ActionRecord& row) { write_row(w, row); }
void write(JsonWriter& w, const AttemptRecord& row) { write_row(w, row); }
void write(JsonWriter& w, const MachineRecord& row) { write_row(w, row); }

Result<ActionRecord> action_of(std::string_view json) { return read_row<ActionRecord>(json); }
Result<AttemptRecord> attempt_of(std::string_view json) { return read_row<AttemptRecord>(json); }
Result<MachineRecord> machine_of(std::string_view json) { return read_row<MachineRecord>(json); }

}  // namespace culprit
