// The headline of a report for every screen, message and file, and the conclusion: fault, no fault, or
// unknown. Log text is not escaped: callers escape it for display. Pure.
#pragma once

#include <span>
#include <string>

#include "model/report.h"

namespace culprit {

enum class Outcome : uint8_t {
  kVerdict,       // a conclusive diagnosis
  kInconclusive,  // signs of a fault, but no certain cause
  kNoticed,       // no failure, but an anomaly (slow steps, numerics, a hang)
  kUnknown,       // no fault found, but no proof of success
  kHealthy,
  kEmpty,  // no input was read
};
Outcome outcome(const Report& report);
Conclusion conclusion_of(const Report& report);

// The diagnosis of the headline: the verdict, else the best one that no person refuted; null: none.
const Diagnosis* leading(const Report& report);
// The title for use in a sentence: one line of limited length without a full stop.
std::string title_of(const Diagnosis& diagnosis);
// "KeyError: 'lr' in f (tb.py:4) on node-3 (rank 2), at iteration 15": fault, code place, host and rank, time
// in the job.
std::string sentence_of(const Diagnosis& diagnosis, const JobSummary& job);
// The headline for any outcome. Without times and sizes, so it changes only with the job's state.
std::string headline_of(const Report& report);
// Fills in the conclusion and all headlines. Call after the last change of the report.
void conclude(Report& report);

// Whether part of a log is missing that may contain the fault. Skipped inputs other than logs do not count.
bool is_partly_read(const Report& report);
// Distinct sentences about occasionally late ranks; at most three.
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
