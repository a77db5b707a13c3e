#include "app/confirm/line.h"

#include <algorithm>
#include <array>

#include "app/confirm/pattern.h"
#include "base/text.h"
#include "core/logs/mask.h"
#include "core/logs/shape.h"

namespace culprit::app {
namespace {

// An exiting program reports a signal, and a launcher an ended process: neither line has the cause.
constexpr std::array<std::string_view, 13> kEnds = {
    "sigterm",   "sigkill",     "sigint",      "received signal",   "closing signal", "exitcode", "exit code",
    "exit_code", "exit status", "exited with", "returned non-zero", "job failed",     "signal 15"};
constexpr std::array<std::string_view, 2> kHeads = {"most recent call first", "most recent call last"};
// A program's guess about an error that it met.
constexpr std::array<std::string_view, 8> kSupposes = {" may be ",   " might ",   " maybe ",    " possibly ",
                                                       " probably ", " perhaps ", " could be ", " seems "};
constexpr size_t kOwnWords = 2;       // minimum of words without cascade vocabulary in a line about other
                                      // processes
constexpr size_t kValues = 3;         // "name=<_>": a line with this many pairs reports measurements
constexpr uint64_t kChanceLines = 3;  // minimum of lines without a word of trouble; fewer may be chatter

bool has_any(const std::string& text, const auto& words) {
  return std::ranges::any_of(words, [&](std::string_view word) { return text.find(word) != text.npos; });
}

size_t values_in(const std::string& pattern) {
  size_t n = 0;
  for (size_t at = 0; (at = pattern.find("=<", at)) != pattern.npos; ++at) ++n;
  return n;
}

logs::FormShape shape_of_line(const std::string& line) { return logs::shape_of(logs::form_text(line)); }

}  // namespace

ConsequenceWords::ConsequenceWords(const rules::Ruleset* known) {
  if (!known) return;
  for (const rules::Rule& rule : known->rules())
    if (rule.role == rules::Role::kCascade)
      for (const std::string& text : rule.hit) words_.merge(words_of_text(text));
}

size_t ConsequenceWords::own_words(const std::string& line) const {
  const std::set<std::string> all = words_of_text(line);
  return static_cast<size_t>(
      std::ranges::count_if(all, [&](const std::string& word) { return !words_.contains(word); }));
}

std::string why_no_mark(const std::string& line, const std::string& pattern, uint64_t count,
                        const ConsequenceWords& words) {
  const logs::FormShape shape = shape_of_line(line);
  std::string low(line.size(), '\0');
  lower_ascii(line, low.data());
  using K = logs::ShapeKind;
  if (shape.kind == K::kRootCause || shape.kind == K::kTraceback || shape.kind == K::kChained ||
      has_any(low, kHeads))
    return "it is the head of what follows";
  if (shape.advice) return "it gives advice";
  if (shape.handled || shape.well) return "it tells that all went on";
  if (has_any(low, kEnds)) return "it tells that a process was ended, not why";
  if (shape.of_others && words.own_words(pattern) < kOwnWords) return "it tells what other processes met";
  if (shape.words <= 1 && shape.kind != K::kException && has_any(low, kSupposes))
    return "it supposes a cause, and tells of no failure";
  if (shape.words > 0 || shape.kind == K::kException) return "";
  if (shape.progress || shape.kind == K::kFrame) return "it tells of progress";
  if (values_in(pattern) >= kValues) return "it reports measurements, and its fixed words say nothing";
  if (count < kChanceLines) return "it came " + counted(count, "time") + " and has no word of trouble";
  return "";
}

bool speaks_of_failure(const std::string& line) {
  const logs::FormShape shape = shape_of_line(line);
  return shape.words > 1 || shape.kind == logs::ShapeKind::kException;
}

}  // namespace culprit::app
