// The kept state of a job's logs: no lines, but counts by template and writer, a bounded number of places,
// iterations, and each writer's rhythm. Memory grows with templates and writers, not with lines. Batches
// arrive in the order of their sources and indexes; one thread; pure.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/flat_map.h"
#include "core/logs/activity.h"
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

// The last line of a source that reports trouble by its words or level.
struct LastTrouble {
  LogPlace place;
  uint64_t event = 0;  // number of its source's events up to and including this line
  std::string text;    // empty: the source has no such line
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
  bool untimed = false;  // its first lines preceded the first known time: first_ns is too late
  Level level = Level::kNone;
  FormShape shape;
  Meaning known = Meaning::kNothing;  // the strongest meaning of a rule on its lines
  bool shaped = false;                // `shape` is set from a form
  bool partial = false;               // some lines are in no group: limits::kGroups was reached
  uint64_t rises = 0;                 // lines with a higher iteration than their writer had before
  // Whether the purpose of its lines is to count iterations, not only a mention.
  bool is_progress() const { return rises >= 2 && rises * 4 >= count; }
  std::vector<LogPlace> places;    // the earliest ones
  size_t placed = 0;               // number of places, kept or not
  std::vector<LogSample> samples;  // one each of a few writers: the first
  std::vector<GroupStats> groups;  // by writer, in order of writer
};

// A writer's rhythm: its usual silence between lines.
struct Rhythm {
  uint64_t gaps = 0;
  TimeNs longest_ns = 0;  // without the gap after its last line, which has not ended
  void add(TimeNs gap) { ++gaps, longest_ns = std::max(longest_ns, gap); }
};

struct WriterStats {
  WriterKey key;
  std::optional<std::string> host;  // resolved
  std::optional<uint32_t> rank, device;
  uint64_t lines = 0, events = 0;
  TimeNs first_ns = kNoTime, last_ns = kNoTime;
  Rhythm rhythm;
  std::optional<Stage> stage;  // of its last line with a stage
};

// An event that matches a rule, with its text: a line, a traceback (by its exception), or a launcher's list.
struct RuleLine {
  LogPlace place;
  ClusterId cluster = 0;      // as first assigned; use Miner::resolve
  uint64_t writer_event = 0;  // events of its writer before it
  uint64_t source_event = 0;  // events in its source before it
  uint64_t text_line = 0;     // line of `text` in its source: a traceback's place is its first line
  OwnStep own_step;           // of its writer, at this line
  uint32_t rule = 0;          // index into the rules in use
  Meaning known = Meaning::kNote;
  bool general = false;  // gives way to other rules on the same event
  bool kernel = false;   // a kernel message
  bool event = false;    // a trace event
  Service service = Service::kNone;
  bool exception = false;  // an exception of the program
  bool mentioned = false;  // only mentioned in the line (core/logs/mention.h); `handled` too
  bool own_time = true;    // the line itself has its time
  bool death = false;      // an uncaught exception or a launcher's list of failures: the process ends with it
  bool handled = false;    // the line itself states that the fault was repaired or is no failure
  // Rank among the rules of its event, by line, then most specific first; at most 255.
  uint8_t order = 0;
  std::string text;
  std::vector<std::string> holes;      // in the order of the rule's holes
  std::string about;                   // the host in a launcher's list; empty: the writer's host
  std::optional<uint32_t> about_rank;  // the rank of this entry in a launcher's list
  std::optional<CodePlace> code;       // of an exception: the last frame in the program's own code
};

class JobLog {
 public:
  explicit JobLog(const JobFile& job);
  ~JobLog();

  // Sources are numbered from 0 in the order of opening.
  SourceId open_source(const SourceInfo& info);
  // Adds forms of a normal pool, so that the pool's messages and this job's share templates.
  void add_pool_form(uint64_t hash, std::string_view form);
  // Sets the times of the batch's first lines from the source's last one, and marks lines that continue an
  // event. An event that a later batch may continue is counted when complete, at the latest with the source's
  // last batch.
  void add(LogBatch& batch);
  // A form of forms() that is never normal, however many healthy jobs have it.
  void mark_alarm(uint32_t form);
  // The rules changed: index `rule` becomes `to[rule]`, or kNoRule, which discards the results of that rule.
  static constexpr uint32_t kNoRule = 0xffffffff;
  void renumber_rules(const std::vector<uint32_t>& to);
  // Settles the templates and collects their counts; call before the accessors below. Repeatable.
  void settle();

  const std::vector<SourceInfo>& sources() const;
  uint64_t lines_of(SourceId source) const;  // with SourceInfo::lines_before
  uint64_t events_of(SourceId source) const;
  // Forms of lines that arrived since the last progress line and report no trouble: only the first few.
  std::vector<std::string> reported_since_progress() const;
  const LastTrouble& last_trouble_of(SourceId source) const;
  const std::vector<WriterStats>& writers() const;  // resolved by settle()
  // By cluster; only results of Miner::resolve have counts.
  const std::vector<TemplateStats>& templates() const;
  const std::vector<ClusterId>& clusters() const;  // resolved, with at least one line of the job
  const Miner& miner() const;
  struct FormStats {
    std::string text;
    ClusterId cluster = 0;  // resolved by settle()
    ClusterId key = 0;      // as first assigned: the symbol of this form in iterations()
    uint64_t count = 0;     // events of the job; 0: only in the pool
    uint64_t reported = 0;  // part of `count` that the miner has
    uint64_t hash = 0;      // form_hash of its messages
    bool alarm = false;     // see mark_alarm()
  };
  const std::vector<FormStats>& forms() const;
  // The forms of the last batch, as indexes into forms(): last_forms()[line.form]. Lines of a record that
  // spans batches have entries of their own.
  const std::vector<uint32_t>& last_forms() const;

  const Iterations& iterations() const;
  // The training's own numbers over time, from its lines.
  const Numbers& numbers() const;
  // A few of the last progress lines, oldest first.
  const std::vector<LogSample>& last_progress() const;
  // Both in order of arrival, without lines dropped because of limits (see RetainedLines).
  const std::vector<RuleLine>& rule_lines() const;
  const std::vector<RuleLine>& uncaught() const;  // exceptions that ended a process and match no rule
  // Whether a counter in the place's source restarted from a lower number after the place and has made
  // several steps since: the job was restarted.
  bool steps_below(const LogPlace& place) const;
  // The last step of a counter that restarted in this way before the place; -1: none did.
  int64_t step_since_restart(const LogPlace& place) const;
  uint64_t rule_lines_added() const;  // including dropped lines
  // The retained rule lines, without the first `added` ones.
  std::span<const RuleLine> rule_lines_since(uint64_t added) const;
  // Number of dropped lines of a rule, or of uncaught exceptions for kNoRule. Lines that state that their
  // fault was handled do not count.
  uint64_t dropped_of_rule(uint32_t rule) const;
  const std::vector<ActivityBins>& activity() const;  // by writer
  uint64_t lines() const;
  uint64_t bytes() const;
  uint64_t events() const;
  uint64_t unplaced_lines() const;
  // Data dropped because of limits: by the job as a whole, and by sources.
  Drops drops() const;
  // The first and last time in a source; kNoTime without times.
  std::pair<TimeNs, TimeNs> span_of(SourceId source) const;
  uint64_t cut_lines_of(SourceId source) const;
  TimeNs first_ns() const;
  TimeNs last_ns() const;
  const JobFile& job() const;
  // The preferred name of the job's host with this name ("node7" for "node7.cluster.local"); empty: none.
  std::string host_called(std::string_view name) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace culprit::logs
