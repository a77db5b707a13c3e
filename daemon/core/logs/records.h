// Joins the lines of a record to one event, whose address is its first line: tracebacks with their exception,
// frames behind any line, a launcher's list of the processes that failed. Each writer of a source has one
// record, which lives from batch to batch, so that the events do not depend on where the text was cut. A
// traceback and a list are held back until their last line is known. Pure; one thread.
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

// One line on its way into its writer's record; borrowed for the call.
struct RecordLine {
  uint32_t index = 0;  // in its batch
  uint32_t form = 0;   // index into JobLog::forms()
  const FormShape* shape = nullptr;
  std::string_view text;  // its message
  bool indented = false;
  bool own_time = false;  // the time stands in this very line
  LogPlace place;
};

// An event that was held back.
struct RecordEvent {
  uint32_t form = kNoForm;
  FormShape shape;
  LogPlace place;             // of its first line
  std::string text;           // the exception of a traceback; all lines of a list
  uint64_t text_line = 0;     // in its source, of that exception; else of the first line
  bool own_time = false;      // of its first line
  bool uncaught = false;      // its traceback begins at the entry point of a process: nothing caught it
  bool again = false;         // a further exception of a chain: counted, reported once
  bool cause = false;         // of those: what the exception before it only passes on
  uint32_t before = kNoForm;  // of the event before it, by the same writer
};

// The form that a line of the batch under way has as part of an event.
struct Relabel {
  uint32_t line = 0;
  uint32_t form = 0;
};

// What a line is to its writer's events.
enum class LineRole : uint8_t {
  kEvent,      // one of its own
  kHeld,       // the first of one that is held back
  kContinues,  // part of an earlier one
};

// The host in a launcher's list of the processes that failed ("host : node-3"); empty where it names none.
std::string listed_host(std::string_view text);

// The rank in the entry of such a list that holds `line` ("rank : 3 (local_rank: 3)", "exitcode : 1").
std::optional<uint32_t> listed_rank(std::string_view list, std::string_view line);

class Record {
 public:
  // Whether a plain line may be more than an event of its own.
  bool open() const { return open_ || block_ || framed_; }
  // Whether a launcher's list is being held back.
  bool list() const { return block_; }
  // A line that is an event of its own came: what follows may continue it.
  void plain(uint32_t form) {
    form_ = form;
    traceback_ = chained_ = ignored_ = cause_ = framed_ = false;
  }
  // `done` gets the event that ended with or before this line; `relabels` what lines of this batch are
  // part of an event.
  LineRole take(const RecordLine& line, std::optional<RecordEvent>& done, std::vector<Relabel>& relabels);
  // The batch ends: its lines cannot be relabelled any more.
  void leave_batch() { lines_.clear(); }
  // The source ends.
  void finish(std::optional<RecordEvent>& done, std::vector<Relabel>& relabels);

 private:
  bool continues(const RecordLine& line, std::optional<RecordEvent>& done, std::vector<Relabel>& relabels);
  bool continues_traceback(const RecordLine& line, std::optional<RecordEvent>& done,
                           std::vector<Relabel>& relabels);
  bool continues_chain(const RecordLine& line, std::vector<Relabel>& relabels);
  // What a line of an open traceback is.
  struct Part {
    bool belongs = false, exception = false;
    std::string_view text;
  };
  Part part_of(const RecordLine& line, std::string_view bare);
  Part notebook_part(const RecordLine& line, std::string_view bare);
  bool begins_traceback(const RecordLine& line);
  LineRole begin(const RecordLine& line);
  void hold(const RecordLine& line);
  void close(uint32_t form, std::optional<RecordEvent>& done, std::vector<Relabel>& relabels);

  uint32_t form_ = kNoForm;  // of the event that lines may still continue
  bool open_ = false;        // a traceback that has not met its exception
  bool traceback_ = false;   // the last event was one: a chained one may follow
  bool entered_ = false;     // the open traceback's first frame was seen
  bool code_ = false;        // a frame was seen: the next line is its source, however it is indented
  bool block_ = false;       // a launcher's list: indented lines and "[3]:" belong to it
  bool ignored_ = false;     // "Exception ignored in ...": a traceback that follows is part of it
  bool chained_ = false;     // "During handling of ..." was seen: the next traceback belongs to this record
  bool cause_ = false;       // what follows is the cause of the exception before it
  bool framed_ = false;      // the rest of a frame around the last traceback may follow
  bool boxed_ = false;       // the open traceback's box is complete: its exception follows
  TracebackStyle style_ = TracebackStyle::kPlain;  // of the open traceback
  std::string name_;                               // of a notebook's exception
  uint32_t shown_ = 0;                             // lines of a notebook's traceback
  RecordEvent held_;                               // of open_ or block_
  std::vector<uint32_t> lines_;                    // of this batch, to be given the exception's form
};

}  // namespace culprit::logs
