// What a masked form tells of its lines, decided once per form: is it a progress line, the start of a
// traceback, an exception, a notice of a stage? Words decide, so the form (numbers
// masked) is enough. Pure, any thread.
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
  kRootCause,  // head of a block in which torchrun lists the processes that failed
  kRule,       // a line of dashes, equals signs or stars: no event of its own
};

struct FormShape {
  ShapeKind kind = ShapeKind::kPlain;
  bool progress = false;  // names a counting number: iteration, step, a tqdm bar
  bool advice = false;    // tells what might help or be the cause: no evidence
  bool of_others =
      false;             // about somebody else: a launcher of its job, a process of its peers or of a signal
  bool handled = false;  // says that what it tells of was retried, recovered or ignored
  bool ignored = false;  // "Exception ignored in: ...": the traceback that follows belongs to it
  bool well = false;     // says that the job or the training ended as planned
  bool quotes = false;   // a text that a model read or wrote follows: "prompt: ...", "== samples =="
  bool heading = false;  // words with a drawn line before them: "=== end of sample ==="
  uint8_t words = 0;     // 0 none, 1 words of trouble, 2 words of failure
  std::optional<Stage> stage;  // the stage that such a line belongs to, where it says so
};

// `form` as form_text gives it.
FormShape shape_of(std::string_view form);

// Whether a line may be the last one of a traceback: one dotted name, alone or before a colon. It need not
// end in "Error": a program's own exceptions are named as it likes.
bool names_exception(std::string_view message);

// Where the text behind a progress bar begins: tqdm ends a bar without a newline, so the next message of the
// process stands on the bar's line. 0 where no text follows a bar.
size_t text_behind_bar(std::string_view line);

// The number that a progress line counts: "iteration 120/ 5000" gives 120, a tqdm bar its numerator.
// `total` is what it counts to, 0 where the line does not say.
struct Progress {
  int64_t iteration = 0;
  int64_t total = 0;
  bool bar = false;
  uint32_t name = 0;  // of the counter: lines with the same name count the same thing, whatever else they say
};
std::optional<Progress> progress_of(std::string_view message);

}  // namespace culprit::logs
