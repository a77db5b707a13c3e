#include "core/logs/miner_pieces.h"

#include <algorithm>
#include <array>

#include "base/hash.h"
#include "base/limits.h"
#include "core/logs/mask_token.h"

namespace culprit::logs {
namespace {

constexpr std::array<bool, 256> make_punctuation() {
  std::array<bool, 256> t{};
  for (const char c : std::string_view(" ()[]{}<>\"'`,;:=|/\\!?")) t[static_cast<uint8_t>(c)] = true;
  return t;
}
constexpr std::array<bool, 256> kPunctuation = make_punctuation();

bool is_punctuation(char c) { return kPunctuation[static_cast<uint8_t>(c)]; }
bool is_lower(char c) { return c >= 'a' && c <= 'z'; }
bool is_upper(char c) { return c >= 'A' && c <= 'Z'; }

bool hole_at(std::string_view form, size_t i) { return form.substr(i, kHole.size()) == kHole; }

// Words of state and outcome in plain English. Two messages that differ in one of them say different things,
// unless a great many words stand at its place. Sorted.
constexpr std::string_view kStates[] = {
    "abort",   "absent",   "accept",  "active",  "alive",   "allocate",  "attach",  "available", "bad",
    "begin",   "busy",     "clean",   "close",   "cold",    "complete",  "connect", "create",    "critical",
    "debug",   "delete",   "detach",  "dirty",   "disable", "done",      "empty",   "enable",    "end",
    "exit",    "false",    "finish",  "free",    "full",    "good",      "healthy", "high",      "hot",
    "idle",    "inactive", "info",    "join",    "leave",   "load",      "lock",    "low",       "miss",
    "missing", "never",    "no",      "normal",  "not",     "ok",        "on",      "online",    "open",
    "pass",    "pause",    "queue",   "read",    "ready",   "receive",   "recv",    "register",  "remove",
    "restart", "resume",   "run",     "save",    "send",    "skip",      "slow",    "start",     "startup",
    "stop",    "succeed",  "success", "suspend", "true",    "unhealthy", "unlock",  "up",        "valid",
    "wait",    "with",     "without", "write",   "yes"};
// Those that a job dies of, or that stand where a number is missing: never a mere value. Sorted.
constexpr std::string_view kBad[] = {"dead",  "die",  "disconnect", "down",    "fatal",    "gone",
                                     "hung",  "inf",  "infinity",   "kill",    "lost",     "nan",
                                     "none",  "null", "off",        "offline", "overflow", "reject",
                                     "reset", "shut", "shutdown",   "stuck",   "unknown",  "warning"};

// Parts that make a word one of trouble: "ValueError", "timeouts", "unreachable".
constexpr std::string_view kTrouble[] = {"abort", "corrupt", "crash", "denied",  "error",       "exception",
                                         "fail",  "fault",   "hang",  "illegal", "invalid",     "killed",
                                         "oom",   "panic",   "refus", "timeout", "unreachable", "warn"};

// At the start of a part: "hang" is in "NcclHang" and "hang_check", not in "Zhang".
bool begins_part(std::string_view word, size_t at) {
  return at == 0 || is_upper(word[at]) || !(is_lower(word[at - 1]) || is_upper(word[at - 1]));
}

void judge_state(std::string_view word, WordTraits& traits) {
  char lower[64];
  if (word.size() >= sizeof lower) return;
  size_t letters = 0, capitals = 0;
  for (size_t i = 0; i < word.size(); ++i) {
    letters += is_lower(word[i]) || is_upper(word[i]);
    capitals += is_upper(word[i]);
    lower[i] = is_upper(word[i]) ? static_cast<char>(word[i] + 32) : word[i];
  }
  const std::string_view low(lower, word.size());
  // Enumerators are written in capitals. Participles ("started", "Resuming") are verbs; shorter ones are none
  // ("red", "ring").
  traits.verb = (letters >= 2 && letters == capitals) ||
                (low.size() >= 5 && letters == low.size() && (low.ends_with("ed") || low.ends_with("ing")));
  for (size_t i = 0, j = 0; i < low.size(); i = j + 1) {
    j = std::min(low.find_first_of("_-.", i),
                 low.size());  // "run_stop" differs from "run_start" by a state too
    const std::string_view part = low.substr(i, j - i);
    traits.verb |= std::binary_search(std::begin(kStates), std::end(kStates), part);
    traits.state |= std::binary_search(std::begin(kBad), std::end(kBad), part);
  }
  for (const std::string_view part : kTrouble)
    for (size_t at = low.find(part); at != std::string_view::npos; at = low.find(part, at + 1))
      traits.state |= begins_part(word, at);
}

}  // namespace

void cut_pieces(std::string_view form, Pieces& pieces) {
  pieces.words.clear();
  uint64_t shape = 0;
  size_t i = 0;
  while (i < form.size() && pieces.words.size() < limits::kMessageTokens) {
    size_t j = i;
    while (j < form.size()) {
      if (hole_at(form, j))
        j += kHole.size();
      else if (is_punctuation(form[j]))
        break;
      else
        ++j;
    }
    while (j > i && form[j - 1] == '.') --j;  // the full stop of a sentence
    if (j > i) {
      pieces.words.push_back(form.substr(i, j - i));
      shape = mix64(shape, 256);
      i = j;
      continue;
    }
    shape = mix64(shape, static_cast<uint8_t>(form[i]));
    ++i;
  }
  if (i < form.size()) shape = mix64(shape, hash64(form.substr(i)));  // beyond the cap: equal or not at all
  pieces.shape = shape;
}

WordTraits traits_of(std::string_view word) {
  WordTraits traits;
  traits.hole = word == kHole;
  if (traits.hole) return traits;
  traits.typed = word.find(kHole) != std::string_view::npos;
  size_t letters = 0;
  for (const char c : word) letters += is_lower(c) || is_upper(c) || static_cast<uint8_t>(c) >= 128;
  for (size_t i = 1; i + 1 < word.size(); ++i)
    traits.qualified |= word[i] == '.' || word[i] == '-' || word[i] == '@';
  traits.anchor = letters >= 2;
  if (!traits.typed) judge_state(word, traits);
  traits.verb &= !traits.state;
  return traits;
}

}  // namespace culprit::logs
