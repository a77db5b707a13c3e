// Sentences of a report, shared by text and HTML: the fault, its place, its time, the confidence. Text from
// logs is unchanged; the caller must escape it. Pure functions of the report.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cli/render.h"
#include "model/headline.h"
#include "model/report.h"

namespace culprit::cli {

// The numeric fault that the diagnosis is based on; null: none.
const NumericFault* fault_of(const Report& report, const Diagnosis& diagnosis);

// The first line: the report's headline, with the confidence or the amount of input read.
std::string headline(const Report& report, const RenderOptions& options);
// "hardware, gpu, crash, iterative stage, 2026-11-21 02:12:09.123 UTC".
std::string classified(const Diagnosis& diagnosis, const RenderOptions& options);
// "rule nvidia.xid.79, 11 of 12 of its kind confirmed, last judged by alice, diagnosis d1".
std::string reported_by(const Diagnosis& diagnosis);
// The recommended action with its targets ("Isolate node-17"), and the remedy. Either may be empty. An action
// without targets precedes the remedy ("Fix: read the traceback").
struct Advice {
  std::string action, remedy;
};
Advice advice(const Diagnosis& diagnosis);
// A sentence if the reading was stopped early; else empty.
std::string interruption(const Report& report);
inline constexpr std::string_view kSettling = "New evidence came seconds ago: this answer may still change.";
// One sentence on a period of slow steps, a numeric fault or a hang.
std::string sentence(const Irregularity& irregularity);
std::string sentence(const NumericFault& fault);
std::string sentence(const Hang& hang, const RenderOptions& options);
// Size and time range of the job, with the zone's name.
std::string job_size(const JobSummary& job);
std::string job_range(const JobSummary& job, const RenderOptions& options);

// "runs/a.log:120", "runs/a.comm +4096".
std::string address(const Evidence& evidence);
// The command that shows the first evidence of the diagnosis that a command can show; empty: none.
std::string look_command(const Diagnosis& diagnosis, const RenderOptions& options);
std::string percent(double share);
// "61,204,331".
std::string grouped(uint64_t n);
// A time without a zone; with the date only if its day differs from `same_day`.
std::string clock_time(TimeNs time, TimeNs same_day, const RenderOptions& options);

// Problems that are not also in `missing`.
std::vector<const Problem*> unread(const Report& report);

// Evidence with equal text from several places, shown once.
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
