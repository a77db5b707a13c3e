#include "core/logs/shape.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <string>
#include <utility>
#include <vector>

#include "base/ascii.h"
#include "base/check.h"
#include "base/hash.h"
#include "base/text.h"
#include "core/logs/tracebacks.h"

namespace culprit::logs {
namespace {

bool is_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

std::string lowered(std::string_view text) {
  std::string out(text.size(), '\0');
  lower_ascii(text, out.data());
  return out;
}

// Whether `text` contains `word` with no word character before it; `whole`: and none after it.
bool has_word(std::string_view text, std::string_view word, bool whole = false) {
  for (size_t at = find_text(text, word); at != npos; at = find_text(text, word, at + 1)) {
    if (at > 0 && is_word(text[at - 1]) && is_word(word[0])) continue;
    const size_t end = at + word.size();
    if (whole && end < text.size() && is_word(text[end])) continue;
    return true;
  }
  return false;
}

template <size_t N>
bool any_of(std::string_view text, const std::array<std::string_view, N>& words) {
  for (std::string_view w : words)
    if (has_word(text, w)) return true;
  return false;
}

// Stems of words for failure and trouble, at the beginning of a word. docs/detectors.md: 54.8 % of indicating
// lines are errors, so the words are a hint, not a proof.
constexpr std::array<std::string_view, 32> kFailureWords = {
    "error",           "fail",          "fatal",      "exception",   "abort",     "panic",
    "crash",           "segfault",      "killed",     "core dumped", "sigterm",   "sigkill",
    "sigabrt",         "sigsegv",       "sigbus",     "bus error",   "traceback", "corrupt",
    "timed out",       "timeout",       "uncorrect",  "unreachable", "refused",   "no space",
    "out of memory",   "oom",           "fallen off", "terminat",    "aborting",  "cannot allocate",
    "lost connection", "not responding"};
constexpr std::array<std::string_view, 28> kTroubleWords = {"warn",       "received signal",
                                                            "retry",      "retries",
                                                            "unable",     "cannot",
                                                            "could not",  "can't",
                                                            "denied",     "invalid",
                                                            "missing",    "mismatch",
                                                            "lost",       "down",
                                                            "stuck",      "hung",
                                                            "stall",      "dead",
                                                            "degraded",   "reset",
                                                            "closed by",  "broken",
                                                            "overflow",   "throttl",
                                                            "unexpected", "not found",
                                                            "nan",        "inf"};
constexpr std::array<std::string_view, 10> kAdvice = {
    "might be caused", "may be caused",   "possible cause",       "possible reason", "please try",
    "please check",    "could be caused", "for more information", "to debug",        "can be caused"};
// Phrases that report in the same line that the fault was handled.
constexpr std::array<std::string_view, 9> kRetried = {"succeeded",    "recovered",   "reconnecting",
                                                      "will retry",   "retrying",    "retry in",
                                                      "falling back", "reconnected", "still trying"};
// More such words; not in an exception, where these words describe its arguments.
constexpr std::array<std::string_view, 5> kOverlooked = {"corrected", "ignored", "ignoring", "handled",
                                                         "continuing"};
// Launchers report on the job, communication libraries on peers, and a signal comes from outside.
constexpr std::array<std::string_view, 29> kOfOthers = {
    "srun:",       "slurmstepd",    "mpirun",     "mpiexec",  "prterun",        "orted",
    "elastic",     "torchrun",      "kubelet",    "launcher", "closing signal", "received signal",
    "sigterm",     "nccl",          "hccl",       "rccl",     "gloo",           "watchdog",
    "collective",  "remote",        "peer",       "socket",   "connection",     "notify",
    "distbackend", "process group", "rendezvous", "tcpstore", "heartbeat"};
constexpr std::array<std::string_view, 22> kEndedWell = {
    "training completed",     "training finished",     "training is done",   "train success",
    "finished training",      "training done",         "job completed",      "completed successfully",
    "training complete",      "done training",         "done with training", "training has finished",
    "training has completed", "finished optimization", "optimization done",  "fine-tuning completed",
    "fine-tuning finished",   "models exported",       "model exported",     "exported model to",
    "saved final model",      "final model saved"};
// Limits of a trainer: "max_steps reached", "`Trainer.fit` stopped: `max_epochs=3` reached."
constexpr std::array<std::string_view, 9> kLimits = {"max_steps",     "max_epochs",     "max_iters",
                                                     "max steps",     "max epochs",     "max iterations",
                                                     "maximum steps", "maximum epochs", "max_train_steps"};
// Phrases before a text of the data or the model.
constexpr std::array<std::string_view, 8> kQuotingKeys = {
    "prompt:",    "completion:",     "answer:",     "generation:",
    "generated:", "generated text:", "prediction:", "assistant:"};
constexpr std::array<std::string_view, 4> kSampleWords = {"sample", "generat", "completion", "prompt"};
constexpr std::array<std::string_view, 8> kTeardown = {
    "destroy_process_group", "ncclcommdestroy", "comm destroy", "shutting down",
    "destroying process",    "cleaning up",     "teardown",     "exiting"};
constexpr std::array<std::string_view, 10> kInit = {
    "nccl version",    "initializ", "building model", "number of parameters", "loading checkpoint",
    "load checkpoint", "tokenizer", "channel <*>/",   "connected all rings",  "compiling"};

// Parts of a training: their end is not the end of the job ("done training epoch <*>").
constexpr std::array<std::string_view, 6> kParts = {"epoch <", "epoch #", "stage <",
                                                    "phase <", "round <", "fold <"};

// The lists above, one bit each.
enum Reported : uint32_t {
  kFails = 1,
  kTroubles = 2,
  kAdvises = 4,
  kRetries = 8,
  kOverlooks = 16,
  kNamesOthers = 32,
  kEnds = 64,
  kNamesLimit = 128,
  kSamples = 256,
  kTearsDown = 512,
  kStarts = 1024,
};

// All these words by their first two letters: one pass over the words of a text finds the lists it uses.
class WordLists {
 public:
  WordLists() {
    add(kFailureWords, kFails);
    add(kTroubleWords, kTroubles);
    add(kAdvice, kAdvises);
    add(kRetried, kRetries);
    add(kOverlooked, kOverlooks);
    add(kOfOthers, kNamesOthers);
    add(kEndedWell, kEnds);
    add(kLimits, kNamesLimit);
    add(kSampleWords, kSamples);
    add(kTeardown, kTearsDown);
    add(kInit, kStarts);
  }

  // The lists with a word in the text, at the beginning of a word there.
  uint32_t used_in(std::string_view text) const {
    uint32_t used = 0;
    for (size_t at = 0; at + 1 < text.size(); ++at) {
      if (!is_lower(text[at]) || !is_lower(text[at + 1]) || (at > 0 && is_word(text[at - 1]))) continue;
      for (const Entry& entry : entries_[slot(text[at], text[at + 1])])
        if (!(used & entry.list) && text.substr(at).starts_with(entry.word)) used |= entry.list;
    }
    return used;
  }

 private:
  struct Entry {
    std::string_view word;
    Reported list;
  };

  static bool is_lower(char c) { return c >= 'a' && c <= 'z'; }
  static size_t slot(char a, char b) {
    return static_cast<size_t>(a - 'a') * 26 + static_cast<size_t>(b - 'a');
  }

  void add(const auto& words, Reported list) {
    for (const std::string_view word : words) {
      CULPRIT_CHECK(word.size() >= 2 && is_lower(word[0]) && is_lower(word[1]));
      entries_[slot(word[0], word[1])].push_back({word, list});
    }
  }

  std::array<std::vector<Entry>, 26 * 26> entries_;
};

uint32_t lists_used_in(std::string_view text) {
  static const WordLists lists;
  return lists.used_in(text);
}

bool names_good_end(std::string_view t) {
  constexpr size_t kNear = 24;  // bytes after the words, for "of " and "for "
  return std::ranges::any_of(kEndedWell, [&](std::string_view words) {
    const size_t at = find_text(t, words);
    return at != npos && !any_of(t.substr(at + words.size(), kNear), kParts);
  });
}

bool starts_with_any(std::string_view t, const auto& words) {
  return std::ranges::any_of(words, [&](std::string_view w) { return t.starts_with(w); });
}

// "=== end of sample ===": a line of one character, interrupted by words.
bool is_heading(std::string_view t) {
  constexpr size_t kDrawn = 3;
  if (t.size() <= kDrawn || std::string_view("=-*#~").find(t[0]) == npos) return false;
  const size_t end = t.find_first_not_of(t[0]);
  return end != npos && end >= kDrawn && t[end] == ' ';
}

bool mentions_checkpoint(std::string_view t) {
  const auto has = [t](std::string_view part) { return find_text(t, part) != npos; };
  return (has("checkpoint") || has("ckpt")) && (has("sav") || has("writ") || has("stor"));
}

std::optional<Stage> stage_of(std::string_view t, uint32_t used) {
  if (mentions_checkpoint(t)) return Stage::kCheckpoint;
  if (used & (kTearsDown | kEnds)) return Stage::kTeardown;
  if (used & kStarts) return Stage::kInit;
  return std::nullopt;
}

// "pkg.mod.ValueError: ..." or "ValueError"; the name ends like the names of Python's exceptions.
bool is_exception_line(std::string_view form) {
  size_t end = 0;
  while (end < form.size() && (is_word(form[end]) || form[end] == '.')) ++end;
  if (end == 0 || (end < form.size() && form[end] != ':')) return false;
  const std::string_view name = form.substr(0, end);
  const size_t dot = name.rfind('.');
  const std::string_view last = dot == npos ? name : name.substr(dot + 1);
  if (last.empty() || last[0] < 'A' || last[0] > 'Z') return false;
  for (std::string_view tail : {"Error", "Exception", "Interrupt", "Exit", "StopIteration"})
    if (last.ends_with(tail)) return true;
  return last == "Timeout" || last == "Empty" || last == "BrokenBarrierError";
}

bool is_frame(std::string_view f) {
  // loguru marks the frame that caught the exception.
  const std::string_view frame = f.starts_with("> ") ? f.substr(2) : f;
  if (frame.starts_with("File \"") && frame.find(", line ") != npos) return true;
  if (f.starts_with("frame #") || f.starts_with("#<*> <*> in ") || f.starts_with("@ <*> ")) return true;
  return !f.empty() && f.find_first_not_of("^~ ") == npos;
}

// A line drawn with one character.
bool is_rule(std::string_view f) {
  return f.size() >= 8 && std::string_view("-=*_#~+").find(f[0]) != npos && f.find_first_not_of(f[0]) == npos;
}

// A bar of tqdm: a percentage, '|', and counts with a rate.
bool is_bar(std::string_view f) {
  const size_t percent = f.find('%');
  return percent != npos && percent < 80 && f.find('|', percent) != npos && f.find('[', percent) != npos;
}

// Content of the brackets at the end of a tqdm bar: "00:20<00:46,  4.49it/s, loss=2.953".
bool is_bar_tail(std::string_view inside) {
  size_t end = 0;
  while (end < inside.size() && (digit(inside[end]) || inside[end] == ':')) ++end;
  if (end < 4 || end == inside.size() || !digit(inside[0]) || inside.find(':') >= end) return false;
  if (inside[end] != '<' && !inside.substr(end).starts_with(", ")) return false;
  return inside.find("/s", end) != npos || inside.find("s/", end) != npos;
}

constexpr std::array<std::string_view, 6> kCounters = {"iteration", "iter",        "global_step",
                                                       "step",      "global step", "train_step"};

// A counter's name with only separators before the number: "step=120", "'iteration': 7".
size_t counter_at(std::string_view t, std::string_view hole) {
  const bool iterations = find_text(t, "iter") != npos, steps = find_text(t, "step") != npos;
  for (std::string_view name : kCounters) {
    if (!(name.starts_with("iter") ? iterations : steps)) continue;
    for (size_t at = find_text(t, name); at != npos; at = find_text(t, name, at + 1)) {
      if (at > 0 && is_word(t[at - 1]) && t[at - 1] != '_') continue;
      size_t i = at + name.size();
      const size_t start = i;
      while (i < t.size() &&
             (t[i] == ' ' || t[i] == ':' || t[i] == '=' || t[i] == '[' || t[i] == '"' || t[i] == '\'' ||
              t[i] == '#' || t[i] == '(') &&
             i - start < 16)
        ++i;
      const bool number =
          hole.empty() ? i < t.size() && t[i] >= '0' && t[i] <= '9' : t.substr(i).starts_with(hole);
      if (i > start && number) return i;
    }
  }
  return npos;
}

// The word before a counter's number, without separators: "iteration", "global_step".
std::string_view counter_name(std::string_view text, size_t at) {
  size_t end = at;
  while (end > 0 && !is_word(text[end - 1])) --end;
  size_t begin = end;
  while (begin > 0 && is_word(text[begin - 1])) --begin;
  return text.substr(begin, end - begin);
}

std::optional<int64_t> number_at(std::string_view text, size_t at, size_t* end = nullptr) {
  int64_t value = 0;
  const char* first = text.data() + at;
  const auto [stop, error] = std::from_chars(first, text.data() + text.size(), value);
  if (error != std::errc() || stop == first || value < 0) return std::nullopt;
  const std::string_view rest(stop, static_cast<size_t>(text.data() + text.size() - stop));
  const bool fraction = rest.size() > 1 && rest[0] == '.' && digit(rest[1]);
  // "global_step=132.0", but not "*** STEP 3150571.0 ON gpu-3 CANCELLED", which is the number of a job.
  const bool whole =
      at > 0 && text[at - 1] == '=' && rest.starts_with(".0") && (rest.size() == 2 || !digit(rest[2]));
  if (fraction && !whole) return std::nullopt;  // a fraction is no counter
  if (end) *end = static_cast<size_t>(stop - text.data());
  return value;
}

std::optional<Progress> bar_progress(std::string_view text) {
  const size_t percent = text.find('%');
  if (percent == npos || percent > 200) return std::nullopt;
  const size_t bar = text.find('|', percent + 2);
  if (bar == npos) return std::nullopt;
  const size_t at = text.find_first_not_of(' ', bar + 1);
  size_t end = 0;
  if (at == npos) return std::nullopt;
  const auto done = number_at(text, at, &end);
  if (!done || end >= text.size() || text[end] != '/') return std::nullopt;
  // The name of a bar is the text before it: "Epoch 0:", "Loading shards".
  std::string name(text.substr(0, percent));
  name.erase(
      std::remove_if(name.begin(), name.end(), [](char c) { return c == ' ' || (c >= '0' && c <= '9'); }),
      name.end());
  return Progress{*done, number_at(text, end + 1).value_or(0), true, static_cast<uint32_t>(hash64(name))};
}

}  // namespace

FormShape shape_of(std::string_view form) {
  FormShape shape;
  const std::string text = lowered(form);
  if (is_frame(form)) {
    shape.kind = ShapeKind::kFrame;
    return shape;
  }
  if (is_rule(form)) {
    shape.kind = ShapeKind::kRule;
    return shape;
  }
  shape.progress = is_bar(form) || counter_at(text, "<*>") != npos;
  const uint32_t used = lists_used_in(text);
  shape.advice = used & kAdvises;
  shape.of_others = used & kNamesOthers;
  shape.ignored = text.starts_with("exception ignored in");
  shape.well = names_good_end(text) || ((used & kNamesLimit) && has_word(text, "reached"));
  shape.stage = stage_of(text, used);
  shape.words = used & kFails ? 2 : used & kTroubles ? 1 : 0;
  // Other headings ("=== job finished with exit code 1 ===") do not end samples.
  const bool ends = has_word(text, "end", true);
  shape.heading = is_heading(text) && shape.words < 2 && (ends || (used & kSamples));
  shape.lists_nodes = text.find("nodelist") != text.npos;
  shape.quotes = starts_with_any(text, kQuotingKeys) || (shape.heading && !ends);
  const bool exception = is_exception_line(form);
  shape.handled = used & (exception ? kRetries : kRetries | kOverlooks);
  if (shape.handled && shape.words == 2) shape.words = 1;
  const bool coloured = form.find('\x1b') != npos;
  if (traceback_head(coloured ? without_colours(form) : form)) {
    shape.kind = ShapeKind::kTraceback;
  } else if (text.starts_with("during handling of the above exc") ||
             text.starts_with("the above exception was") || introduces_cause(form)) {
    shape.kind = ShapeKind::kChained;
  } else if (find_text(text, "root cause (first observed failure)") != npos || text == "failures:") {
    shape.kind = ShapeKind::kRootCause;
  } else if (exception && !shape.advice && !shape.handled) {
    shape.kind = ShapeKind::kException;
  }
  return shape;
}

size_t text_behind_bar(std::string_view line) {
  constexpr size_t kTailBytes = 256;  // of the brackets of a bar
  size_t rest = 0;                    // offset after the last closed bracket
  for (size_t at = line.find(']'); at != npos && at + 1 < line.size(); at = line.find(']', at + 1)) {
    const std::string_view before = line.substr(rest, at - rest);
    rest = at + 1;
    const char next = line[rest];
    if (!is_word(next) && next != '[' && next != '(') continue;
    const size_t open = before.rfind('[');
    if (open == npos || before.size() - open > kTailBytes) continue;
    if (is_bar_tail(before.substr(open + 1))) return rest;
  }
  return 0;
}

bool names_exception(std::string_view message) {
  constexpr std::string_view kLocals = "<locals>";  // name of a class within a function
  const std::string_view name = message.substr(0, message.find(':'));
  if (name.empty() || (name[0] >= '0' && name[0] <= '9')) return false;
  for (size_t at = 0; at < name.size(); ++at) {
    const bool other_script = static_cast<unsigned char>(name[at]) >= 0x80;
    if (is_word(name[at]) || name[at] == '.' || other_script) continue;
    if (!name.substr(at).starts_with(kLocals)) return false;
    at += kLocals.size() - 1;
  }
  return true;
}

std::optional<Progress> progress_of(std::string_view message) {
  if (const auto bar = bar_progress(message)) return bar;
  std::array<char, 400> low;  // a counter is at the beginning of its line
  const std::string_view begin = message.substr(0, low.size());
  const std::string_view text(low.data(), begin.size());
  lower_ascii(begin, low.data());
  const size_t at = counter_at(text, "");
  if (at == npos) return std::nullopt;
  size_t end = 0;
  const auto value = number_at(text, at, &end);
  if (!value) return std::nullopt;
  Progress progress{*value, 0, false, static_cast<uint32_t>(hash64(counter_name(text, at)))};
  const size_t slash = text.find_first_not_of(' ', end);
  if (slash != npos && text[slash] == '/') {
    const size_t total = text.find_first_not_of(' ', slash + 1);
    if (total != npos) progress.total = number_at(text, total).value_or(0);
  }
  return progress;
}

}  // namespace culprit::logs
