// What parsing makes of a piece of a source, and Engine::step takes: its lines by columns, the distinct forms
// and writers among them, and counts. `text` is borrowed: it must outlive the step that takes the batch.
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

// Who wrote a line, as far as the line and its path tell.
struct WriterKey {
  std::string host;
  uint32_t rank = kNoRank;
  uint32_t local = kNoRank;
  bool task = false;  // `rank` is a task number (see Header)
  bool operator==(const WriterKey&) const = default;
};

constexpr uint32_t kNoForm = 0xffffffff;

struct LineRecord {
  TimeNs time_ns;          // kNoTime: none yet in this batch; the engine carries the source's last one over
  uint32_t offset;         // of the message in the batch's text
  uint32_t size : 27;      // of the message
  uint32_t indented : 1;   // blanks stood before the message
  uint32_t skipped : 1;    // outside of the wanted times
  uint32_t continued : 1;  // belongs to the event of an earlier line; the engine says so
  uint32_t own_time : 1;   // the time stands in this very line
  uint32_t form;           // index into forms; kNoForm for a blank or skipped line
  uint32_t group;          // index into groups, of a line with a form
};

struct FormSeen {
  uint64_t hash;  // of the masked form
  uint32_t line;  // first line that has it
  FormShape shape;
  Level level;  // the highest seen in a level field
};

// Lines of one form by one writer.
struct GroupSeen {
  uint32_t writer, form;
};

// What a known wording says of the line that has it.
enum class Known : uint8_t {
  kNothing,
  kNote,   // no failure by itself
  kEcho,   // that something else failed
  kFault,  // a fault
};

// The number that a line counts up: its words say so, or (`counted`) it proved to count where it was written.
struct LineNumber {
  uint32_t line;  // index into lines
  bool counted = false;
  Progress progress;
};

// One of the last lines that told of progress, whatever batch it stood in.
struct PaceLine {
  uint32_t writer;  // index into writers
  uint64_t back;    // lines of its source from it to the end of this batch
  TimeNs time_ns;
  std::string_view text;
};

// A rule found in a line.
struct LineHit {
  uint32_t line;               // index into lines
  uint32_t rule;               // index into the rules in use
  uint32_t first_hole, holes;  // into LogBatch::holes
  Known known;
  Level level;         // as the line's header says
  bool general;        // gives way to other rules on the same event
  bool kernel;         // a kernel's message
  bool event = false;  // an event of a trace
};

struct LogBatch {
  SourceId source = 0;
  uint64_t index = 0;
  uint64_t offset = 0;
  bool last = false;
  std::string_view text;
  uint64_t range_bytes = 0;                       // of the source that this batch stands for
  TimeNs since_ns = kNoTime, until_ns = kNoTime;  // the wanted times
  uint64_t skipped_lines = 0;                     // outside of them
  std::vector<LineRecord> lines;
  std::vector<FormSeen> forms;
  std::vector<WriterKey> writers;
  std::vector<GroupSeen> groups;
  std::vector<LineHit> hits;            // in order of lines
  std::vector<std::string_view> holes;  // what their wordings left open; views into text
  std::vector<LineNumber> numbers;      // in order of lines
  uint64_t cut_lines = 0;               // longer than limits::kLineBytes
  // Of what came condensed (condense.h): only lines whose texts are asked for have them, what counts was
  // found out before, and the last lines of progress are told by themselves.
  bool condensed = false;
  std::vector<PaceLine> pace;

  std::string_view message(const LineRecord& line) const { return text.substr(line.offset, line.size); }
  bool wanted(TimeNs time) const {
    return time == kNoTime ||
           ((since_ns == kNoTime || time >= since_ns) && (until_ns == kNoTime || time <= until_ns));
  }
};

}  // namespace culprit::logs
