// What a detector found, in the one shape in which all of them hand it to the correlator: logs, rules,
// communication, numerics, stacks, plugins. A plain value: whoever holds one owns all of it, and nothing in
// it points into the detector. Times are nanoseconds since the epoch, kNoTime where unknown. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/time.h"
#include "model/report.h"

namespace culprit {

// A root explains what follows it; a cascade only says that something else failed, and never outranks a root.
enum class FindingRole : uint8_t { kRoot, kCascade };

enum class FindingKind : uint8_t {
  kFault,      // it says by itself what is wrong: it can carry a diagnosis
  kSupport,    // it speaks against its subjects, for whatever reason others give
  kIteration,  // `iteration` was out of the ordinary, on its subjects where it has any
};

// Whom a finding speaks against: a host, a rank or a device of one, or the link from it to `peer`. A rank
// whose host is not known stands alone. Names as in logs and job.toml, ranks global, devices local.
struct FindingSubject {
  std::optional<std::string> host;
  std::optional<uint32_t> rank, device;
  std::optional<std::string> peer;
  // How much it says against the subject: 1 is one certain line of the subject's own that nobody else has, 3
  // the most that a single finding may bring, 0 names the subject and accuses it of nothing more.
  double strength = 0;
};

struct Finding {
  std::string detector;  // a word of formats.md section 7: "spatial", "comm", "plugin:NAME", ...
  std::string rule;      // the id of the rule that it comes from; empty where it comes from none
  FindingKind kind = FindingKind::kSupport;
  FindingRole role = FindingRole::kRoot;
  std::vector<FindingSubject> subjects;  // empty: nobody is known
  bool of_nobody = false;  // a fault of the program or of the cluster: no host is to blame, whoever shows it
  TimeNs first_ns = kNoTime, last_ns = kNoTime;
  std::optional<int64_t> iteration;  // training iteration under way at first_ns
  std::vector<Evidence> evidence;    // by time, the first ones; the place of the first dates the finding
  uint64_t lines = 0;                // of which `evidence` holds the first
  std::vector<std::string> why;      // a sentence for each reason; shown for a subject and for a diagnosis

  // Of kIteration: how odd it was. Of kFault: how sure that the job has this fault. 0..1
  double confidence = 0;

  // Of kFault: what the diagnosis will say, as far as the detector knows.
  std::string title;
  bool fatal = false;    // no job goes on after it
  bool general = false;  // gives way to any other root
  Category category = Category::kUnknown;
  Component component = Component::kUnknown;
  Symptom symptom = Symptom::kOther;
  ActionKind action = ActionKind::kNone;
  std::string remedy;
};

}  // namespace culprit
