// Joins the lines of a job's sources to events, and adds them to the job's writers, templates and numbers;
// keeps the lines that match rules. An event that a later batch may continue is pending until complete. Owned
// by JobLog, which gives the batches in the order of their sources and indexes. One thread; pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/logs/batch_groups.h"
#include "core/logs/job_log.h"
#include "core/logs/job_progress.h"
#include "core/logs/job_templates.h"
#include "core/logs/job_writers.h"
#include "core/logs/quoted_texts.h"
#include "core/logs/rule_lines.h"
#include "core/logs/writer_records.h"

namespace culprit::logs {

// The lines of one source so far.
struct SourceCounts {
  uint64_t lines = 0;  // including SourceInfo::lines_before
  uint64_t cut_lines = 0, events = 0;
  TimeNs first_ns = kNoTime, last_ns = kNoTime;  // of its lines in the selected times
};

class JobEvents {
 public:
  JobEvents(JobWriters& writers, JobTemplates& templates, JobProgress& progress)
      : writers_(writers), templates_(templates), progress_(progress), groups_(writers, templates) {}

  void open_source(const SourceInfo& info);
  // See JobLog::add.
  void add(LogBatch& batch);
  // See JobLog::renumber_rules.
  void renumber_rules(const std::vector<uint32_t>& to);

  const SourceCounts& counts(SourceId source) const { return sources_[source].counts; }
  const LastTrouble& last_trouble(SourceId source) const { return sources_[source].trouble; }
  // See JobLog::last_forms.
  const std::vector<uint32_t>& last_forms() const { return groups_.forms(); }
  // See JobLog::reported_since_progress.
  std::vector<std::string> reported_since_progress() const;
  const RuleLines& rule_lines() const { return rule_lines_; }
  // Quoted texts: their lines are no evidence, even if they match rules.
  const std::vector<QuotedLines>& quoted() const { return quoted_; }
  TimeNs first_ns() const { return first_ns_; }
  TimeNs last_ns() const { return last_ns_; }
  // Drops rule lines beyond the limit: call before rule_lines().
  void trim() { rule_lines_.trim(); }
  Drops drops() const;

 private:
  // The last line of program source in a traceback. It explains an exception without a message
  // ("AssertionError").
  struct CodeLine {
    std::string text;
    std::vector<RuleLine> found;
  };

  // The incomplete events of a source, until its last batch.
  struct OpenEvents {
    WriterRecords records;
    std::unordered_map<uint32_t, std::vector<RuleLine>> held;  // by record: rule lines of incomplete lists
    std::unordered_map<uint32_t, CodeLine> code;               // by record: of open tracebacks
    QuotedTexts quotes;                                        // by record
  };

  struct Source {
    std::optional<std::string> host;  // by its path or agent
    SourceCounts counts;
    LastTrouble trouble;
    TimeNs time = kNoTime;          // of its last line
    TimeNs begin_ns = kNoTime;      // beginning of the log: its first time, see follow_beginning()
    size_t older = 0;               // consecutive lines of an older log
    std::optional<LogPlace> fatal;  // place of a "Fatal Python error": its frames follow
    bool fatal_other = false;       // the current frames are of a thread that did not fail
    OpenEvents open;
  };

  static void follow_beginning(const LineRecord& line, Source& source);
  void walk_lines(LogBatch& batch, Source& source);
  bool walk_record(LogBatch& batch, Source& source, uint32_t i, std::vector<RuleLine>& found);
  static void add_code(const CodeLine& code, const RecordEvent& event, std::vector<RuleLine>& found);
  void read_fatal(const LogBatch& batch, const LineRecord& line, const LogPlace& place, Source& source);
  void take_hits(const LogBatch& batch, uint32_t i, std::vector<RuleLine>& out);
  void drop_quoted(const LogPlace& end, uint64_t begin);
  void add_event(const LogBatch& batch, uint32_t i, const LogPlace& place);
  void add_rules(std::vector<RuleLine>& found, uint32_t form, const LogPlace& place);
  void close_held(const RecordEvent& event, std::vector<RuleLine>& found, bool at_end = false);
  void keep_ends(std::vector<RuleLine>& found);
  void add_held(const RecordEvent& event);
  bool was_handled(const RecordEvent& event) const;
  void end(Source& source);

  JobWriters& writers_;
  JobTemplates& templates_;
  JobProgress& progress_;
  std::vector<Source> sources_;
  RuleLines rule_lines_;
  std::vector<QuotedLines> quoted_;
  BatchGroups groups_;
  size_t next_hit_ = 0;            // in the current batch
  std::vector<uint32_t> touched_;  // records that may have lines of the current batch
  std::vector<Relabel> relabels_;  // of the current batch
  static constexpr size_t kReported = 32;
  std::vector<uint32_t> reported_;  // forms of the first events since the last progress line
  static constexpr size_t kReportedForms = 4096;
  FlatMap<uint64_t> reported_times_{64};  // by form: how often it was in reported_
  TimeNs first_ns_ = kNoTime, last_ns_ = kNoTime;
  Drops drops_;
};

}  // namespace culprit::logs
