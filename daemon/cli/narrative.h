// Sentences of a report, shared by text and HTML: the fault, its place, its time, the confidence. Text from
// logs is unchanged; the caller must escape it. Pure functions of the report.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cli/render.h"
#include "model/report.h"

namespace culprit::cli {

enum class Outcome {
  kVerdict,       // a conclusive diagnosis
  kInconclusive,  // a fault without a certain cause
  kNoticed,       // the job did not fail, but has an anomaly (slow steps, numbers, a hang)
  kUnknown,       // no fault was found, but no proof of a good end
  kHealthy,
  kEmpty,  // no input was read
};
Outcome outcome(const Report& report);

// The diagnosis of the first lines: the verdict, else the best one; null: none.
const Diagnosis* leading(const Report& report);

// The numeric fault that the diagnosis is based on; null: none.
const NumericFault* fault_of(const Report& report, const Diagnosis& diagnosis);

// The title as part of a sentence: one line of limited length without a full stop.
std::string title_of(const Diagnosis& diagnosis);
// One sentence: the fault, its host and rank, the iteration, the confidence.
std::string headline(const Report& report, const RenderOptions& options);
// "hardware, gpu, crash, iterative stage, 2026-11-21 02:12:09.123 UTC".
std::string classified(const Diagnosis& diagnosis, const RenderOptions& options);
// "rule nvidia.xid.79, 11 of 12 of its kind confirmed, last judged by alice, diagnosis d1".
std::string reported_by(const Diagnosis& diagnosis);
// The recommended action with its targets ("Isolate node-17"), and how. Either may be empty. An action
// without targets comes before the remedy ("Fix: read the traceback").
struct Advice {
  std::string action, remedy;
};
Advice advice(const Diagnosis& diagnosis);
// Says that the reading was stopped early; empty if it was not.
std::string interruption(const Report& report);
inline constexpr std::string_view kSettling = "New evidence came seconds ago: this answer may still change.";
// One sentence on a slow spell, a numeric fault or a hang.
std::string sentence(const Irregularity& irregularity);
std::string sentence(const NumericFault& fault);
std::string sentence(const Hang& hang, const RenderOptions& options);
// Size and time range of the job, with the zone's name.
std::string job_size(const JobSummary& job);
std::string job_range(const JobSummary& job, const RenderOptions& options);

// "node-17 (rank 139, device 3)"; "unknown host" if unknown.
std::string place(const Suspect& suspect);
// "node-1, node-2 and 5 more".
std::string places(std::span<const Suspect> suspects, size_t max);
// "0-3, 8 and 120 more".
std::string numbers(std::span<const uint32_t> values);
// "rank 3", "ranks 0-3".
std::string ranks(std::span<const uint32_t> values);
// "runs/a.log:120", "runs/a.comm +4096".
std::string address(const Evidence& evidence);
// The command that shows the first evidence of the diagnosis for which there is one; empty: none.
std::string look_command(const Diagnosis& diagnosis, const RenderOptions& options);
std::string percent(double share);
// "61,204,331".
std::string grouped(uint64_t n);
// Without a zone; with the date only if `same_day` is another day.
std::string clock_time(TimeNs time, TimeNs same_day, const RenderOptions& options);

// Problems that are not also in `missing`.
std::vector<const Problem*> unread(const Report& report);

// Evidence of the same text from several places, shown once.
struct EvidenceGroup {
  const Evidence* first = nullptr;
  std::vector<const Evidence*> others;
};
std::vector<EvidenceGroup> group_evidence(std::span<const Evidence> evidence);

// The `max` most irregular iterations, in the report's order.
std::vector<const IterationScore*> most_irregular(const Report& report, size_t max);

// Position of the first words of an indicating template in a line; 0 if none matches.
size_t focus_of(std::string_view line, std::span<const Indicating> indicating);
// Lines of a record to show: all if few, else the first two and the last ones, which name the exception.
std::vector<std::string_view> record_lines(std::string_view text, size_t max);

}  // namespace culprit::cli
