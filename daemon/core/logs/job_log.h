// What is kept of a job's logs: not the lines, but counts by template and writer, a bounded number of places,
// the progress of the iterations, the rhythm of each writer. Memory grows with templates and writers, not
// with lines. Fed with batches in the order of their sources and indexes; one thread; pure.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/flat_map.h"
#include "core/logs/batch.h"
#include "core/logs/drops.h"
#include "core/logs/iterations.h"
#include "core/logs/miner.h"
#include "core/logs/numbers.h"
#include "core/logs/records.h"
#include "model/topology.h"

namespace culprit::logs {

struct LogSample {
  LogPlace place;
  std::string text;  // the message, at most limits::kEvidenceText bytes
};

// Lines of one template by one writer.
struct GroupStats {
  uint32_t writer = 0;
  uint64_t count = 0;
  TimeNs first_ns = kNoTime, last_ns = kNoTime;
};

struct TemplateStats {
  uint64_t count = 0;
  TimeNs first_ns = kNoTime, last_ns = kNoTime;
  bool untimed = false;  // its first lines came before any time was known: first_ns is too late
  Level level = Level::kNone;
  FormShape shape;
  Known known = Known::kNothing;  // the most that a rule says of any of its lines
  bool shaped = false;            // `shape` is that of a form
  bool partial = false;           // some of its lines are in no group: limits::kGroups was reached
  uint64_t rises = 0;             // lines in which its writer's iteration was further than before
  // Whether counting iterations is what its lines are for, and not just something that they mention.
  bool is_progress() const { return rises >= 2 && rises * 4 >= count; }
  std::vector<LogPlace> places;    // the first ones
  size_t placed = 0;               // of them, kept or not
  std::vector<LogSample> samples;  // the first one of each of a few writers
  std::vector<GroupStats> groups;  // by writer, in order of writer
};

// A writer's rhythm: how long it usually is silent.
struct Rhythm {
  uint64_t gaps = 0;
  TimeNs longest_ns = 0;  // but for the gap after its last line, which is not over
  void add(TimeNs gap) { ++gaps, longest_ns = std::max(longest_ns, gap); }
};

struct WriterStats {
  WriterKey key;
  std::optional<std::string> host;  // resolved
  std::optional<uint32_t> rank, device;
  uint64_t lines = 0, events = 0;
  TimeNs first_ns = kNoTime, last_ns = kNoTime;
  Rhythm rhythm;
  std::optional<Stage> stage;  // that its last staged line belongs to
};

// An event in which a rule was found, kept with its text: a line, a traceback (by its exception), a list.
struct RuleLine {
  LogPlace place;
  ClusterId cluster = 0;      // as given out; resolve it
  uint64_t writer_event = 0;  // events of its writer before it
  uint64_t source_event = 0;  // events in its source before it
  uint64_t text_line = 0;     // in its source, of `text`: a traceback's place is its first line
  OwnStep own_step;           // of its writer, at this line
  uint32_t rule = 0;          // index into the rules in use
  Known known = Known::kNote;
  bool general = false;    // gives way to other rules on the same event
  bool kernel = false;     // a kernel's message
  bool event = false;      // an event of a trace
  bool exception = false;  // an exception of the program
  bool own_time = true;    // its time stands in the line itself
  bool death = false;    // an uncaught exception, or a launcher's list of failures: the process ends with it
  bool handled = false;  // the line itself says that it was mended or is no failure
  std::string text;
  std::vector<std::string> holes;      // in the order of the rule's
  std::string about;                   // the host that a launcher's list names; empty: its writer's
  std::optional<uint32_t> about_rank;  // the rank whose entry of a launcher's list this is
};

// Lines written over time by one writer, in bins that double as the job grows.
struct ActivityBins {
  size_t bins = 256;  // a power of two
  TimeNs origin_ns = kNoTime, width_ns = 0;
  std::vector<uint32_t> counts;
  void add(TimeNs time, uint32_t n);
  double between(TimeNs from, TimeNs to) const;  // lines, bins taken to be even
};

class JobLog {
 public:
  explicit JobLog(const JobFile& job);
  ~JobLog();

  // Sources are numbered from 0 in the order in which they are opened.
  SourceId open_source(const SourceInfo& info);
  // Forms of a normal pool, so that its messages and this job's meet in one template.
  void add_pool_form(uint64_t hash, std::string_view form);
  // Fills in the times of the batch's first lines from the source's last one, and says which lines belong to
  // the event of another. An event that a later batch may continue is counted when it is complete, at the
  // latest with the source's last batch.
  void add(LogBatch& batch);
  // Other rules are in use: those that were `rule` are `to[rule]` now, or kNoRule: what they found is
  // forgotten.
  static constexpr uint32_t kNoRule = 0xffffffff;
  void renumber_rules(const std::vector<uint32_t>& to);
  // Settles the templates and gathers their counts; call once before the accessors below. Repeatable.
  void settle();

  const std::vector<SourceInfo>& sources() const;
  uint64_t lines_of(SourceId source) const;  // with SourceInfo::lines_before
  uint64_t events_of(SourceId source) const;
  const std::vector<WriterStats>& writers() const;  // resolved by settle()
  // By cluster; only those that Miner::resolve gives have counts.
  const std::vector<TemplateStats>& templates() const;
  const std::vector<ClusterId>& clusters() const;  // resolved, with at least one line of the job
  const Miner& miner() const;
  struct FormStats {
    std::string text;
    ClusterId cluster = 0;  // resolved by settle()
    ClusterId key = 0;      // as first given out: the symbol of this form in iterations()
    uint64_t count = 0;     // events of the job; 0: only the pool has it
    uint64_t told = 0;      // of those, told to the miner
    uint64_t hash = 0;      // form_hash of its messages
  };
  const std::vector<FormStats>& forms() const;
  // The forms of the batch added last, as indexes into forms(): last_forms()[line.form]. Lines of a record
  // that began in an earlier batch or ends in a later one have their own.
  const std::vector<uint32_t>& last_forms() const;

  const Iterations& iterations() const;
  // The course of the training's own numbers, as its lines give them.
  const Numbers& numbers() const;
  // The last lines that told of progress, oldest first: a few.
  const std::vector<LogSample>& last_progress() const;
  const std::vector<RuleLine>& rule_lines() const;    // in the order in which they came
  const std::vector<RuleLine>& uncaught() const;      // exceptions that ended a process and no rule knows
  const std::vector<ActivityBins>& activity() const;  // by writer
  uint64_t lines() const;
  uint64_t bytes() const;
  uint64_t events() const;
  uint64_t unplaced_lines() const;
  // What was lost to the bounds: of the job as a whole, and of a source by its number.
  Drops drops() const;
  // The first and the last time in a source; kNoTime where it has none.
  std::pair<TimeNs, TimeNs> span_of(SourceId source) const;
  uint64_t cut_lines_of(SourceId source) const;
  TimeNs first_ns() const;
  TimeNs last_ns() const;
  const JobFile& job() const;
  // The job's host that also has this name ("node7" for "node7.cluster.local"); empty: none.
  std::string host_called(std::string_view name) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace culprit::logs
