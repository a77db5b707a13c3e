#include "core/logs/mention.h"

#include <algorithm>
#include <array>

#include "base/ascii.h"

namespace culprit::logs {
namespace {

constexpr size_t kFrameBytes = 4096;  // text around a part that is examined; text farther away is unrelated
constexpr TimeNs kPast = 48 * 3600 * kNsPerSecond;  // no time zone shifts a line by that much
constexpr int kDenied = 6;                          // maximum distance in words from "no" to the denied part
// Maximum distance in words from "patterns" to the last one listed.
constexpr int kAnnounced = 12;

bool is_word(char c) { return alpha(c) || digit(c) || c == '_'; }

template <size_t N>
bool is_one_of(std::string_view word, const std::array<std::string_view, N>& words) {
  return std::ranges::any_of(words, [&](std::string_view w) {
    return w.size() == word.size() && std::ranges::equal(w, word, {}, {}, [](char c) { return lower(c); });
  });
}

constexpr std::array<std::string_view, 7> kDenies = {"no",      "not", "without", "never",
                                                     "neither", "nor", "zero"};
// Words that introduce what a program searches for or acts on.
constexpr std::array<std::string_view, 17> kSought = {
    "pattern", "patterns", "regex",  "regexes", "regexp",  "grep",     "egrep",    "zgrep",    "rule",
    "rules",   "policy",   "filter", "filters", "keyword", "keywords", "denylist", "allowlist"};
constexpr std::array<std::string_view, 3> kConditions = {"if", "whether", "unless"};
// Words that introduce a quoted error text.
constexpr std::array<std::string_view, 46> kReports = {
    "error",    "err",    "errors",      "msg",      "message",  "messages",    "reason", "exception",
    "exc",      "cause",  "detail",      "details",  "what",     "stderr",      "stdout", "output",
    "log",      "line",   "status",      "state",    "desc",     "description", "failed", "failure",
    "said",     "says",   "saying",      "warning",  "fatal",    "raised",      "caught", "threw",
    "got",      "with",   "because",     "returned", "reported", "reports",     "info",   "result",
    "response", "errmsg", "diagnostics", "event",    "by",       "value"};
constexpr std::array<std::string_view, 8> kFailureNames = {"Error", "Exception", "Warning", "Interrupt",
                                                           "Exit",  "Failure",   "Fault",   "Timeout"};

bool names_a_failure(std::string_view name) {
  return std::ranges::any_of(kFailureNames, [&](std::string_view tail) { return name.ends_with(tail); });
}

std::string_view without_blanks(std::string_view text) {
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

// The last word of the text, including inner dots.
std::string_view last_word(std::string_view text) {
  size_t begin = text.size();
  while (begin > 0 && (is_word(text[begin - 1]) || text[begin - 1] == '.')) --begin;
  return text.substr(begin);
}

// "error_message" counts as "message".
std::string_view last_part(std::string_view word) {
  const size_t at = word.find_last_of("_.");
  return at == npos ? word : word.substr(at + 1);
}

// The opening quotes and brackets around a place, outermost first.
class Around {
 public:
  Around(std::string_view text, size_t at) {
    for (size_t i = 0; i < at; ++i) step(text, i);
  }

  static constexpr size_t kDepth = 16;
  size_t size() const { return depth_; }
  size_t operator[](size_t i) const { return open_[i]; }

 private:
  static bool is_quote(char c) { return c == '"' || c == '\'' || c == '`'; }

  void step(std::string_view text, size_t& i) {
    const char c = text[i];
    if (c == '\\') {
      ++i;  // an escaped quote is a part of its text
      return;
    }
    const char before = i > 0 ? text[i - 1] : ' ';
    if (c == '\x1b' && i + 1 < text.size() && text[i + 1] == '[') {  // a colour
      ++i;
      return;
    }
    if (quote_ != 0) {
      const bool apostrophe = c == '\'' && i + 1 < text.size() && is_word(text[i + 1]) && is_word(before);
      if (c == quote_ && !apostrophe) quote_ = 0, pop(c);
    } else if (is_quote(c)) {
      // "can't", "workers'"; but b'...' and f"..."
      const bool prefixed = i == 1 || (i > 1 && !is_word(text[i - 2]));
      if (is_word(before) && !(prefixed && alpha(before))) return;
      quote_ = c;
      push(i, c);
    } else if (c == '[' || c == '{' || c == '(') {
      push(i, c);
    } else if (c == ']' || c == '}' || c == ')') {
      pop(c == ']' ? '[' : c == '}' ? '{' : '(');
    }
  }

  void push(size_t at, char c) {
    if (depth_ < kDepth) open_[depth_] = at, kind_[depth_++] = c;
  }
  // Closes the innermost bracket of this kind and everything still open inside it.
  void pop(char c) {
    for (size_t i = depth_; i-- > 0;)
      if (kind_[i] == c) {
        depth_ = i;
        return;
      }
  }

  size_t open_[kDepth] = {};
  char kind_[kDepth] = {};
  size_t depth_ = 0;
  char quote_ = 0;
};

// Whether the text introduces, before a quote or bracket, a program's own report: "failed with '...'",
// "error=...", "OSError(5, '...')", "('Connection aborted.', OSError('...'))".
bool introduces_report(std::string_view text) {
  text = without_blanks(text);
  if (text.size() > 1 && alpha(text.back()) && !is_word(text[text.size() - 2]))  // b'...'
    if (std::string_view("bfruBFRU").find(text.back()) != npos)
      text = without_blanks(text.substr(0, text.size() - 1));
  while (!text.empty() && (text.back() == '\\' || text.back() == '"' || text.back() == '\''))
    text.remove_suffix(1);
  if (text.empty()) return true;
  if (text.back() == '(') {
    text.remove_suffix(1);
    const std::string_view name = last_word(text);
    if (name.empty()) return introduces_report(text);
    const std::string_view before = without_blanks(text.substr(0, text.size() - name.size()));
    return names_a_failure(name) && last_word(before) != "raise";
  }
  if (text.back() == ':' || text.back() == '=') {
    text.remove_suffix(1);
    while (!text.empty() && std::string_view("\"'`)( ").find(text.back()) != npos) text.remove_suffix(1);
  }
  const std::string_view name = last_word(text);
  return names_a_failure(name) || is_one_of(last_part(name), kReports);
}

bool ends_with_word(std::string_view text, std::string_view word) {
  return text.ends_with(word) && text.size() > word.size() && text[text.size() - word.size() - 1] == ' ';
}

// The text that introduces an opening quote or bracket. For a later item of a list: the text that introduces
// the list.
std::string_view introduction(std::string_view message, const Around& around, size_t i) {
  const char quote = message[around[i]];
  std::string_view text = without_blanks(message.substr(0, around[i]));
  while (true) {
    text = without_blanks(text);
    if (text.ends_with(',') && i > 0) {
      text = message.substr(0, around[--i] + 1);
    } else if (text.ends_with(',') || text.ends_with('[') || text.ends_with('{')) {
      text.remove_suffix(1);
    } else if (ends_with_word(text, "and") || ends_with_word(text, "or")) {
      text.remove_suffix(3);
    } else if (const size_t open = text.ends_with(quote) ? text.rfind(quote, text.size() - 2) : npos;
               open != npos && text.size() > 1) {
      text = text.substr(0, open);
    } else {
      return text;
    }
  }
}

// Whether the enclosing bracket or quote closes after the part. If the part extends to the end of the
// message, the part itself may contain the closing one.
bool closes_behind(const MessagePart& part, char open) {
  const char close = open == '[' ? ']' : open == '{' ? '}' : open;
  const bool to_the_end = part.end == part.message.size();
  return part.message.find(close, to_the_end ? part.begin : part.end) != npos;
}

// Counts the quotes, lists and objects around the part that no report introduces. Counts from the inside out,
// up to the first that a report introduces.
uint8_t quotes_around(const MessagePart& part) {
  const Around around(part.message, part.begin);
  uint8_t quotes = 0;
  for (size_t i = around.size(); i-- > 0;) {
    const char open = part.message[around[i]];
    if (open == '(' || !closes_behind(part, open)) continue;
    const std::string_view text = introduction(part.message, around, i);
    if (!text.empty() && introduces_report(text)) return quotes;
    // An item of a list printed one item per line; a tag in brackets is not an item.
    const std::string_view rest = without_blanks(part.message);
    const bool item = open != '[' && open != '{' && (rest.ends_with(',') || rest.ends_with(open));
    quotes += !text.empty() || item;
  }
  return quotes;
}

// "# ...", "// ...", "+ grep ...", "-  ...", "@@ ...": comments, shell commands, diffs.
bool begins_as_text(std::string_view message) {
  if (message.size() < 2) return false;
  const char c = message[0], next = message[1];
  if (c == '#') return next == ' ' || next == '#' || next == '!' || alpha(next);
  if (c == '/' && (next == '/' || next == '*')) return true;
  if (c == '@' && next == '@') return true;
  if (c == '$' && next == ' ') return true;
  if (c == '+') return !digit(next);
  // Not text: a list item has one blank after the dash ("- rank 3: ..."), a shell's own message none ("-bash:
  // ...").
  return c == '-' && (message.starts_with("-  ") || next == '\t' || next == '"' || next == '#');
}

// "preflight: no ...", "without ...": a record that begins with a denial denies everything it names.
bool begins_with_denial(std::string_view before) {
  while (true) {
    const size_t begin = before.find_first_not_of(' ');
    if (begin == npos) return false;
    before.remove_prefix(begin);
    if (before.starts_with("no ") || before.starts_with("without ")) return true;
    size_t end = 0;
    while (end < before.size() && (is_word(before[end]) || before[end] == '.')) ++end;
    if (end == 0 || !before.substr(end).starts_with(": ")) return false;
    before.remove_prefix(end + 1);
  }
}

// Whether words before the part deny it, or show that a program searches for it.
bool is_denied_or_sought(std::string_view before) {
  int words = 0;
  bool clause = true;  // still within the part's own clause
  for (size_t at = before.size(); at > 0;) {
    const char c = before[at - 1];
    if (!is_word(c)) {
      if (std::string_view(".;:!?,()[]{}").find(c) != npos) clause = false;
      --at;
      continue;
    }
    size_t begin = at;
    while (begin > 0 && is_word(before[begin - 1])) --begin;
    const std::string_view word = before.substr(begin, at - begin);
    at = begin;
    ++words;
    if (words > kAnnounced) return false;
    if (is_one_of(word, kSought)) return true;
    if (clause && words <= kDenied && (is_one_of(word, kDenies) || is_one_of(word, kConditions))) return true;
  }
  return false;
}

// The day of "2026-10-01" at `at`; -1: none.
int64_t day_at(std::string_view text, size_t at) {
  const std::string_view date = text.substr(at, 10);
  if (date.size() < 10 || (date[4] != '-' && date[4] != '/') || date[7] != date[4]) return -1;
  if (!all_digits(date.substr(0, 4)) || !all_digits(date.substr(5, 2)) || !all_digits(date.substr(8, 2)))
    return -1;
  if ((at > 0 && digit(text[at - 1])) || (at + 10 < text.size() && digit(text[at + 10]))) return -1;
  const auto number = [&](size_t pos, size_t count) {
    return static_cast<int64_t>(digits_value(date, pos, count));
  };
  const int64_t year = number(0, 4), month = number(5, 2), day = number(8, 2);
  if (year < 1990 || month < 1 || month > 12 || day < 1 || day > 31) return -1;
  return days_from_civil(year, static_cast<unsigned>(month), static_cast<unsigned>(day));
}

constexpr TimeNs kDay = 24 * 3600 * kNsPerSecond;

bool is_long_over(int64_t day, TimeNs time_ns) {
  return day >= 0 && (time_ns == kNoTime || day * kDay + kPast < time_ns);
}

// "last failure (2026-10-01): cannot open ...": a wording that begins at "failure" includes the date.
// Requires "(date): ", which dates in paths and versions lack.
bool holds_past(std::string_view part, TimeNs time_ns) {
  if (time_ns == kNoTime) return false;
  for (size_t at = part.find('('); at != npos; at = part.find('(', at + 1))
    if (part.substr(std::min(at + 11, part.size())).starts_with("): ") &&
        is_long_over(day_at(part, at + 1), time_ns))
      return true;
  return false;
}

// Whether words and an old date before the part show that it happened long before the line. A date at the
// beginning of the text is an unparsed header.
bool is_past(std::string_view before, TimeNs time_ns) {
  if (std::ranges::none_of(before.substr(0, 4), alpha)) return false;
  for (size_t at = 0; at + 10 <= before.size(); ++at) {
    if (digit(before[at]) && is_long_over(day_at(before, at), time_ns)) return true;
  }
  return false;
}

}  // namespace

MentionFrame frame_of(const MessagePart& part, TimeNs time_ns) {
  MessagePart near = part;
  // If the text has several lines, only the part's own line counts.
  if (const size_t line = near.message.substr(0, near.begin).rfind('\n'); line != npos)
    near = {near.message.substr(line + 1), near.begin - line - 1, near.end - line - 1};
  MentionFrame frame;
  frame.text = begins_as_text(near.message);
  if (near.begin > kFrameBytes) {
    const size_t skipped = near.begin - kFrameBytes;
    near = {near.message.substr(skipped), kFrameBytes, near.end - skipped};
  }
  near.message = near.message.substr(0, near.end + kFrameBytes);
  const std::string_view before = near.message.substr(0, near.begin);
  frame.denied = begins_with_denial(before) || is_denied_or_sought(before);
  frame.past =
      is_past(before, time_ns) || holds_past(near.message.substr(near.begin, near.end - near.begin), time_ns);
  frame.quotes = quotes_around(near);
  return frame;
}

bool is_in_exception(const MessagePart& part) {
  const std::string_view before = part.message.substr(0, std::min(part.begin, kFrameBytes));
  const size_t colon = before.find(": ");
  return colon != npos && names_a_failure(before.substr(0, colon)) &&
         before.substr(0, colon).find(' ') == npos;
}

}  // namespace culprit::logs
