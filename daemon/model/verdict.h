// A diagnosis of one run of a job, as it stands: what alerts, lists, pages and a controller read. It
// becomes JSON where it is stored or served (formats.md section 9). Plain values; pure; any thread.
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

// By host: arrival of the newest evidence against it.
using AccusedTimes = std::map<std::string, TimeNs>;

enum class Change : uint8_t { kNew, kRevised, kWithdrawn };
std::string_view to_string(Change change);  // "new", "revised", "withdrawn"

struct Verdict {
  std::string job;
  uint32_t run = 0;
  std::string kind;  // kind_of(diagnosis) when it was last there
  VerdictState state = VerdictState::kOpen;
  bool leads = false;                                 // announced as the verdict of its run
  bool settled = true;                                // false: it may change before it is announced
  TimeNs since_ns = kNoTime, last_ns = kNoTime;       // first and last occurrence
  Change change = Change::kNew;                       // by the last announcement
  std::string replaces_id = {}, replaces_title = {};  // the verdict before it; empty: none
  AccusedTimes accused_ns = {};
  std::string judged_by = {};  // who judged last; empty: not judged
  TimeNs judged_ns = kNoTime;
  Diagnosis diagnosis = {};  // gone before it was stored: its id alone

  const std::string& id() const { return diagnosis.id; }
  bool is_open() const { return state == VerdictState::kOpen || state == VerdictState::kConfirmed; }
  // Whether a kernel, root or several users say what it rests on.
  bool has_proof() const { return !diagnosis.said_by; }
};

// Equal for the same fault in any job: "rule:nvidia.xid.79", "comm:slowdown".
std::string kind_of(const Diagnosis& diagnosis);

// "job", "run", "verdict" (leads), "settled", "change", "replaces", "accused_ns" and the members of the
// diagnosis; of a list also "first_ns", "last_ns" and, where the diagnosis is gone, "state".
enum class VerdictForm : uint8_t { kEvent, kListed };
std::string to_json(const Verdict& verdict, VerdictForm form = VerdictForm::kEvent);
// Reads what to_json wrote, perhaps in another version. An error names the field of a wrong type.
Result<Verdict> verdict_from_json(std::string_view text);

}  // namespace culprit
