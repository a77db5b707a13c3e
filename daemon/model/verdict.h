// The current state of a diagnosis of one run, for alerts, lists, pages and controllers. Stored and served as
// JSON (formats.md section 9). Plain values; pure; any thread.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"
#include "base/time.h"
#include "model/report.h"

namespace culprit {

// By host: arrival time of the newest evidence against the host.
using AccusedTimes = std::map<std::string, TimeNs>;

enum class Change : uint8_t { kNew, kRevised, kWithdrawn };
std::string_view to_string(Change change);  // "new", "revised", "withdrawn"

struct Verdict {
  std::string job;
  uint32_t run = 0;
  std::string kind;  // kind_of(diagnosis) when the run last had the diagnosis
  VerdictState state = VerdictState::kOpen;
  bool leads = false;                            // announced as the run's verdict
  bool settled = true;                           // false: the diagnosis may change before its announcement
  TimeNs since_ns = kNoTime, last_ns = kNoTime;  // first and last occurrence
  Change change = Change::kNew;                  // kind of the last announcement
  std::string replaces_id = {}, replaces_title = {};  // the previous verdict; empty: none
  AccusedTimes accused_ns = {};
  std::string judged_by = {};  // the person who judged last; empty: not judged
  TimeNs judged_ns = kNoTime;
  Diagnosis diagnosis = {};  // only the id, if the diagnosis disappeared before it was stored

  const std::string& id() const { return diagnosis.id; }
  bool is_open() const { return state == VerdictState::kOpen || state == VerdictState::kConfirmed; }
  // Whether the evidence is from a kernel, root or several users.
  bool has_proof() const { return !diagnosis.said_by; }
};

// Equal for the same fault in any job: "rule:nvidia.xid.79", "comm:slowdown".
std::string kind_of(const Diagnosis& diagnosis);

// JSON members: "job", "run", "verdict" (leads), "settled", "change", "replaces", "accused_ns" and the
// members of the diagnosis. kListed adds "first_ns", "last_ns" and, if the diagnosis is gone, "state".
enum class VerdictForm : uint8_t { kEvent, kListed };
std::string to_json(const Verdict& verdict, VerdictForm form = VerdictForm::kEvent);
// Reads the output of to_json, also from another version. An error names the field of a wrong type.
Result<Verdict> verdict_from_json(std::string_view text);

}  // namespace culprit
