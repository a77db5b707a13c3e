// An action order: its JSON for launchers of the user, and the check of its names before they reach a command
// line or a URL. Pure; any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/status.h"
#include "model/recovery.h"

namespace culprit::respond {

// "isolate", "return", "end_tasks", "run_again", "verify".
std::string_view name_of(OrderKind kind);
// "done", "failed", …
std::string_view name_of(ActionState state);

// Letters, digits, '.', '_' and '-', beginning with a letter or digit; at most 253 bytes. Slurm would expand
// brackets and commas, and a program takes a leading '-' as an option.
bool is_host_name(std::string_view text);

// Error kInvalid names the part of the order that is malformed: hosts, op, decision, code. At most
// kExcludedMost excluded hosts.
Status check_order(const ActionOrder& order);
constexpr size_t kExcludedMost = 4096;

// One object without a newline: op, decision, kind, target, job, excluded, code, reason (formats.md section
// 13).
std::string order_json(const ActionOrder& order);

// The answer of a launcher or webhook to an order: empty, one line of text, or
// {"state":"done|failed|superseded|ambiguous","detail":"…","hosts":["n1"]}. `state` is of an answer without
// one. Unknown members are ignored; a malformed answer is its first line as text.
ActionResult parse_answer(const ActionOrder& order, ActionState state, std::string_view text);

ActionResult result_of(const ActionOrder& order, ActionState state, std::string detail);

// One printable line of at most 300 bytes for a result's detail.
std::string one_line(std::string_view text);

}  // namespace culprit::respond
