// JSON of the controller's rows, for its store, the API and the command line: one object each. A row that
// contradicts itself, or that a newer version wrote, is an error, never an empty row. Pure; any thread.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/status.h"
#include "model/advice.h"
#include "model/json_writer.h"
#include "model/recovery_ledger.h"

namespace culprit {

// All words, in the order of the enum (model/json_members.h).
std::span<const std::string_view> word_list(OrderKind);
std::span<const std::string_view> word_list(ActionState);
std::span<const std::string_view> word_list(AdviceKind);
std::span<const std::string_view> word_list(AdviceOutcome);
std::string_view word_of(OrderKind kind);     // "isolate", "return", "end-tasks", "run-again", "verify"
std::string_view word_of(ActionState state);  // "reserved", "done", "failed", "ambiguous", …

void write(JsonWriter& w, const ActionRecord& row);
void write(JsonWriter& w, const AttemptRecord& row);
void write(JsonWriter& w, const MachineRecord& row);

template <class Row>
std::string to_json(const Row& row) {
  JsonWriter w;
  write(w, row);
  return w.finish();
}

Result<ActionRecord> action_of(std::string_view json);
Result<AttemptRecord> attempt_of(std::string_view json);
Result<MachineRecord> machine_of(std::string_view json);

}  // namespace culprit
