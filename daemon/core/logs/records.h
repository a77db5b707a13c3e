// Joins the lines of a record to one event, located at its first line. Records: tracebacks with their
// exception, frames after any line, a launcher's list of failed processes. Each writer of a source has one
// Record across all batches, so events do not depend on how the text was divided. A traceback or list is
// pending until its last line is known. Pure; one thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/logs/batch.h"
#include "core/logs/tracebacks.h"

namespace culprit::logs {

struct LogPlace {
  uint32_t source = 0;
  uint32_t writer = 0;
  uint64_t line = 0;  // from 1
  TimeNs time_ns = kNoTime;
};

// One line for its writer's record; borrowed for the call.
struct RecordLine {
  uint32_t index = 0;  // in its batch
  uint32_t form = 0;   // index into JobLog::forms()
  const FormShape* shape = nullptr;
  std::string_view text;  // its message
  bool indented = false;
  bool own_time = false;  // the line itself has the time
  LogPlace place;
};

// A pending event, now complete.
struct RecordEvent {
  uint32_t form = kNoForm;
  FormShape shape;
  LogPlace place;                 // of its first line
  std::string text;               // the exception of a traceback; all lines of a list
  std::optional<CodePlace> code;  // of a traceback: the last frame in the user's own code
  // Line of `text` in its source: for a traceback the exception's line, else the first line.
  uint64_t text_line = 0;
  bool own_time = false;      // of its first line
  bool uncaught = false;      // no code caught it: the traceback begins at the entry point of a process
  bool again = false;         // a further exception of a chain: counted, but reported once
  bool cause = false;         // a further exception that caused the previous one
  uint32_t before = kNoForm;  // form of the writer's previous event
};

// Assigns a line of the current batch the form of the event it is part of.
struct Relabel {
  uint32_t line = 0;
  uint32_t form = 0;
};

// The role of a line in its writer's events.
enum class LineRole : uint8_t {
  kEvent,      // an event of its own
  kHeld,       // the first line of a pending event
  kContinues,  // part of an earlier event
};

// The host in a launcher's list of failed processes ("host : node-3"); empty: none.
std::string listed_host(std::string_view text);

// The rank in the list entry that contains `line` ("rank : 3 (local_rank: 3)", "exitcode : 1").
std::optional<uint32_t> listed_rank(std::string_view list, std::string_view line);

class Record {
 public:
  // `form`: form of the writer's last event if that was a plain line; kNoForm: none.
  explicit Record(uint32_t form = kNoForm) : form_(form) {}
  // Whether a plain line may be part of a record.
  bool open() const { return open_ || block_ || framed_ || source_; }
  // Whether a launcher's list is pending.
  bool list() const { return block_; }
  // `done` receives the event that ended at or before this line. `relabels` receives lines of this batch that
  // are part of an event.
  LineRole add(const RecordLine& line, std::optional<RecordEvent>& done, std::vector<Relabel>& relabels);
  // The batch ends: its lines can no longer be relabelled.
  void leave_batch() { lines_.clear(); }
  // The source ends.
  void finish(std::optional<RecordEvent>& done, std::vector<Relabel>& relabels);

 private:
  bool continues(const RecordLine& line, std::optional<RecordEvent>& done, std::vector<Relabel>& relabels);
  bool continues_traceback(const RecordLine& line, std::optional<RecordEvent>& done,
                           std::vector<Relabel>& relabels);
  bool continues_chain(const RecordLine& line, std::vector<Relabel>& relabels);
  // A line of an open traceback.
  struct Part {
    bool belongs = false, exception = false;
    std::string_view text;
  };
  Part part_of(const RecordLine& line, std::string_view bare);
  Part notebook_part(const RecordLine& line, std::string_view bare);
  bool begins_traceback(const RecordLine& line);
  LineRole begin(const RecordLine& line);
  // A line that is its own event: later lines may continue it.
  void plain(uint32_t form) {
    form_ = form;
    traceback_ = chained_ = ignored_ = cause_ = framed_ = source_ = false;
  }
  void buffer(const RecordLine& line);
  void close(uint32_t form, std::optional<RecordEvent>& done, std::vector<Relabel>& relabels);

  uint32_t form_ = kNoForm;  // of the event that later lines may continue
  bool open_ = false;        // a traceback without its exception so far
  bool traceback_ = false;   // the last event was a traceback: a chained one may follow
  bool entered_ = false;     // the open traceback's first frame was seen
  bool code_ = false;        // a frame was seen: the next line is its source code, with any indentation
  bool block_ = false;       // a launcher's list: indented lines and "[3]:" belong to it
  bool ignored_ = false;     // "Exception ignored in ...": a following traceback is part of it
  bool chained_ = false;     // "During handling of ..." was seen: the next traceback belongs to this record
  bool cause_ = false;       // the cause of the last exception follows
  bool framed_ = false;      // the rest of a drawn frame around the last traceback may follow
  bool source_ = false;      // a frame outside of a traceback was seen: its line of program source follows
  bool boxed_ = false;       // the open traceback's box is complete: its exception follows
  TracebackStyle style_ = TracebackStyle::kPlain;  // of the open traceback
  std::string name_;                               // of a notebook's exception
  uint32_t shown_ = 0;                             // lines of a notebook's traceback
  RecordEvent held_;                               // the pending event, if open_ or block_
  std::vector<uint32_t> lines_;                    // lines of this batch that will get the exception's form
};

}  // namespace culprit::logs
