// The sentences in which a report is told, shared by text and HTML: what came out, where, when, how sure.
// Text from logs stands in them as it was read; who shows it makes it safe. Pure functions of the report.
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
  kInconclusive,  // something is wrong, and what is not sure
  kNoticed,       // the job did not fail, but something stood out (slow steps, numbers, a hang)
  kUnknown,       // no fault was found, and nothing proves that the job is well
  kHealthy,
  kEmpty,  // nothing was read
};
Outcome outcome(const Report& report);

// The diagnosis that the first lines speak of: the verdict, else the best one; null where there is none.
const Diagnosis* leading(const Report& report);

// The wrong numbers that it was made of; null: it was made of something else.
const NumericFault* fault_of(const Report& report, const Diagnosis& diagnosis);

// The title as part of a sentence: without its full stop, on one line, not endless.
std::string title_of(const Diagnosis& diagnosis);
// One sentence: what failed, on which host and rank, at which iteration, how sure.
std::string headline(const Report& report, const RenderOptions& options);
// "hardware, gpu, crash, iterative stage, 2026-11-21 02:12:09.123 UTC".
std::string classified(const Diagnosis& diagnosis, const RenderOptions& options);
// "rule nvidia.xid.79, 11 of 12 of its kind confirmed, last judged by alice, diagnosis d1".
std::string told_by(const Diagnosis& diagnosis);
// What to do: the action with its targets ("Isolate node-17"), and how. Either may be empty; an action
// without targets stands before the remedy ("Fix: read the traceback").
struct Advice {
  std::string action, remedy;
};
Advice advice(const Diagnosis& diagnosis);
// Why nothing more is known when the reading was stopped; empty when it was not.
std::string interruption(const Report& report);
inline constexpr std::string_view kSettling = "New evidence came seconds ago: this answer may still change.";
// What a slow spell, a numeric fault, a hang says, in one sentence.
std::string sentence(const Irregularity& irregularity);
std::string sentence(const NumericFault& fault);
std::string sentence(const Hang& hang, const RenderOptions& options);
// Size of the job and its range of time, with the zone's name.
std::string job_size(const JobSummary& job);
std::string job_range(const JobSummary& job, const RenderOptions& options);

// "node-17 (rank 139, device 3)"; "unknown host" where it is unknown.
std::string place(const Suspect& suspect);
// "node-1, node-2 and 5 more".
std::string places(std::span<const Suspect> suspects, size_t max);
// "0-3, 8 and 120 more".
std::string numbers(std::span<const uint32_t> values);
// "rank 3", "ranks 0-3".
std::string ranks(std::span<const uint32_t> values);
// "runs/a.log:120", "runs/a.comm +4096".
std::string address(const Evidence& evidence);
std::string percent(double share);
// "61,204,331".
std::string grouped(uint64_t n);
// Without a zone; the date only where `same_day` is another one.
std::string clock_time(TimeNs time, TimeNs same_day, const RenderOptions& options);

// Problems but those that `missing` tells too.
std::vector<const Problem*> unread(const Report& report);

// Evidence that says the same from several places, told once.
struct EvidenceGroup {
  const Evidence* first = nullptr;
  std::vector<const Evidence*> others;
};
std::vector<EvidenceGroup> group_evidence(std::span<const Evidence> evidence);

// The `max` most irregular iterations, in the order of the report.
std::vector<const IterationScore*> most_irregular(const Report& report, size_t max);

// Where in a line the words of an indicating template stand; 0 where none of them is in it.
size_t focus_of(std::string_view line, std::span<const Indicating> indicating);
// Lines of a record to show: all where few, else the first two and the last ones, which name the exception.
std::vector<std::string_view> record_lines(std::string_view text, size_t max);

}  // namespace culprit::cli
