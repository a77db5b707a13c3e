// The result of parsing one piece of a source, and an input of Engine::step: its lines by columns, its
// distinct forms and writers, and counts. `text` is borrowed: it must outlive the step that gets the batch.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.h"
#include "core/logs/header.h"
#include "core/logs/shape.h"
#include "model/batch.h"

namespace culprit::logs {

// The writer of a line, as far as the line and its path name it.
struct WriterKey {
  std::string host;
  uint32_t rank = kNoRank;
  uint32_t local = kNoRank;
  bool task = false;  // `rank` is a task number (see Header)
  bool operator==(const WriterKey&) const = default;
};

constexpr uint32_t kNoForm = 0xffffffff;

struct LineRecord {
  // `kNoTime`: before the batch's first time; the engine then uses the source's last time.
  TimeNs time_ns;
  uint32_t offset;         // of the message in the batch's text or in its `made`
  uint32_t size : 27;      // of the message
  uint32_t indented : 1;   // blanks precede the message
  uint32_t skipped : 1;    // outside the selected times
  uint32_t continued : 1;  // part of an earlier line's event; set by the engine
  uint32_t own_time : 1;   // the line itself has the time
  uint32_t made : 1;       // its message is in LogBatch::made
  uint32_t form;           // index into forms; kNoForm for a blank or skipped line
  uint32_t group;          // index into groups, for a line with a form
};

struct FormSeen {
  uint64_t hash;  // of the masked form
  uint32_t line;  // first line of this form
  FormShape shape;
  Level level;  // the highest in a level field
};

// Lines of one form by one writer.
struct GroupSeen {
  uint32_t writer, form;
};

// The meaning of a rule's wording for its line.
enum class Meaning : uint8_t {
  kNothing,  // the line only mentions it
  kNote,     // not a failure by itself
  kEcho,     // reports that something else failed
  kFault,    // a fault
};

// The number that a line counts up: named by the line's words, or (`counted`) detected from earlier lines.
struct LineNumber {
  uint32_t line;  // index into lines
  bool counted = false;
  Progress progress;
};

// One of the last progress lines, from this or an earlier batch.
struct PaceLine {
  uint32_t writer;  // index into writers
  uint64_t back;    // lines of its source from this line to the end of the batch
  TimeNs time_ns;
  std::string_view text;
};

// A line that matches a rule.
struct LineHit {
  uint32_t line;               // index into lines
  uint32_t rule;               // index into the rules in use
  uint32_t first_hole, holes;  // into LogBatch::holes
  Meaning known;
  Level level;         // from the line's header
  bool general;        // gives way to other rules on the same event
  bool kernel;         // a kernel message
  bool event = false;  // a trace event
  Service service = Service::kNone;
};

struct LogBatch {
  SourceId source = 0;
  uint64_t index = 0;
  uint64_t offset = 0;
  bool last = false;
  std::string_view text;
  std::string made;                               // message texts that do not occur verbatim in `text`
  uint64_t range_bytes = 0;                       // bytes of the source that this batch represents
  TimeNs since_ns = kNoTime, until_ns = kNoTime;  // the selected times
  uint64_t skipped_lines = 0;                     // outside the selected times
  std::vector<LineRecord> lines;
  std::vector<FormSeen> forms;
  std::vector<WriterKey> writers;
  std::vector<GroupSeen> groups;
  std::vector<LineHit> hits;            // in order of lines
  std::vector<std::string_view> holes;  // the captured texts of the hits; views into texts
  std::vector<LineNumber> numbers;      // in order of lines
  uint64_t cut_lines = 0;               // longer than limits::kLineBytes
  // In batches from a condensed log (condense.h), only lines whose text the engine reads have texts, counting
  // numbers are already detected, and `pace` has the last progress lines.
  bool condensed = false;
  std::vector<PaceLine> pace;

  std::string_view message(const LineRecord& line) const {
    return (line.made ? std::string_view(made) : text).substr(line.offset, line.size);
  }
  bool wanted(TimeNs time) const {
    return time == kNoTime ||
           ((since_ns == kNoTime || time >= since_ns) && (until_ns == kNoTime || time <= until_ns));
  }
};

}  // namespace culprit::logs
