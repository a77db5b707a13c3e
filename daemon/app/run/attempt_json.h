// An attempt as JSON: its line in attempts.jsonl, and the same fields in the decision of several members
// (daemon/docs/formats.md). Pure; any thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "app/run/attempt.h"
#include "app/run/record_fields.h"

namespace culprit::app {

// One line with its newline.
std::string ledger_line(const Attempt& attempt);
// The attempts of an attempts.jsonl; lines that are none are left out.
std::vector<Attempt> attempts_of(std::string_view lines);

void read_attempt(Fields& fields, Attempt& out);

}  // namespace culprit::app
