// Properties of a masked form, decided once per form: progress line, start of a traceback, exception, notice
// of a stage. Words decide, so the masked form is enough. Pure, any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "model/report.h"

namespace culprit::logs {

enum class ShapeKind : uint8_t {
  kPlain,
  kTraceback,  // "Traceback (most recent call last):"
  kChained,    // "During handling of the above exception, ..."
  kException,  // "ValueError: ..." alone or as the last line of a traceback
  kFrame,      // a stack frame or caret line: continues the event before it
  kRootCause,  // first line of torchrun's list of failed processes
  kRule,       // a line of dashes, equals signs or stars: not an event
};

struct FormShape {
  ShapeKind kind = ShapeKind::kPlain;
  bool progress = false;  // names a counting number: iteration, step, a tqdm bar
  bool advice = false;    // suggests a remedy or a cause, so it is not evidence
  // Reports on another process: a launcher on its job, a process on its peers or on a signal.
  bool of_others = false;
  bool handled = false;        // the line says that the fault was retried, recovered or ignored
  bool ignored = false;        // "Exception ignored in: ...": a following traceback belongs to it
  bool well = false;           // the job or the training ended as planned
  bool quotes = false;         // text read or written by a model follows: "prompt: ...", "== samples =="
  bool heading = false;        // words after a drawn line: "=== end of sample ==="
  bool lists_nodes = false;    // names the scheduler's list of the job's hosts
  uint8_t words = 0;           // 0 none, 1 words of trouble, 2 words of failure
  std::optional<Stage> stage;  // the stage of such a line, if its words name one
};

// `form` is a result of form_text.
FormShape shape_of(std::string_view form);

// Whether a line may be the last one of a traceback: one dotted name, alone or before a colon. The name need
// not end in "Error": programs name their exceptions freely.
bool names_exception(std::string_view message);

// The offset of the text after a progress bar; 0: none. tqdm ends a bar without a newline, so the next
// message of the process is on the bar's line.
size_t text_behind_bar(std::string_view line);

// The number of a progress line: 120 in "iteration 120/ 5000", or the numerator of a tqdm bar. `total` is the
// target number; 0: unknown.
struct Progress {
  int64_t iteration = 0;
  int64_t total = 0;
  bool bar = false;
  uint32_t name = 0;  // hash of the counter's name: lines of equal name count the same thing
};
std::optional<Progress> progress_of(std::string_view message);

}  // namespace culprit::logs
