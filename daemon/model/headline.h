// The one sentence of a report, for every screen, message and file, and what it says of the job: a fault, no
// fault, or that nothing can be said. Text of logs is unchanged: a caller that shows it escapes it. Pure.
#pragma once

#include <span>
#include <string>

#include "model/report.h"

namespace culprit {

enum class Outcome : uint8_t {
  kVerdict,       // a conclusive diagnosis
  kInconclusive,  // signs of a fault without a certain cause
  kNoticed,       // the job did not fail, but has an anomaly (slow steps, numbers, a hang)
  kUnknown,       // no fault was found, but no proof of a good end
  kHealthy,
  kEmpty,  // no input was read
};
Outcome outcome(const Report& report);
Conclusion conclusion_of(const Report& report);

// The diagnosis of the headline: the verdict, else the best one that no person refuted; null: none.
const Diagnosis* leading(const Report& report);
// The title as part of a sentence: one line of limited length without a full stop.
std::string title_of(const Diagnosis& diagnosis);
// "KeyError: 'lr' in f (tb.py:4) on node-3 (rank 2), at iteration 15": what, where in the program, who, when.
std::string sentence_of(const Diagnosis& diagnosis, const JobSummary& job);
// Of any outcome. Without times and sizes: it stays the same while the job does.
std::string headline_of(const Report& report);
// Fills in the standing and all headlines. Call after the last change of the report.
void conclude(Report& report);

// Whether part of a log is missing, which may contain the fault. Skipped inputs that are no logs do not
// count.
bool is_partly_read(const Report& report);
// Sentences of ranks that are late now and then, once each; three at most.
std::vector<std::string> watch_sentences(const Report& report);

// "node-17 (rank 139, GPU 3)"; "unknown host" if unknown.
std::string place(const Suspect& suspect);
// "node-1, node-2 and 5 more".
std::string places(std::span<const Suspect> suspects, size_t max);
// "0-3, 8 and 120 more".
std::string numbers(std::span<const uint32_t> values);
// "rank 3", "ranks 0-3".
std::string ranks(std::span<const uint32_t> values);

}  // namespace culprit
