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
bool is_letter(char c) { return is_lower(c) || is_upper(c) || (c & 0x80) != 0; }
bool is_part(char c) { return is_letter(c) || c == '<' || c == '>' || c == '_'; }

// Quoted stretches up to this size are values; longer ones are messages.
constexpr size_t kQuotedBytes = 48;

// Characters that join the parts of a name: "host.example.com", "user@host", "Outer$Inner", "layer#3".
constexpr std::string_view kNameTies = ".-@#$";

// The literals of programming languages. Sorted.
constexpr std::string_view kFlags[] = {"false", "nil", "none", "null", "true"};

bool is_flag(std::string_view word) {
  char lower[8];
  if (word.size() > sizeof lower) return false;
  for (size_t i = 0; i < word.size(); ++i)
    lower[i] = is_upper(word[i]) ? static_cast<char>(word[i] + 32) : word[i];
  return std::binary_search(std::begin(kFlags), std::end(kFlags), std::string_view(lower, word.size()));
}

// "www.example.com:<*>": a host and its port, whatever words the name has.
bool is_address(std::string_view form, size_t at, size_t end) {
  const std::string_view name = form.substr(at, end - at);
  return form.substr(end, 4) == ":<*>" && std::count(name.begin(), name.end(), '.') >= 2;
}

// "force=false", "'charging': False", "setLights(true)": a literal after which no sentence continues, unlike
// "error: none of them". Truth values within a sentence ("visible is false") do not count.
bool is_lone_flag(std::string_view form, size_t at, size_t end) {
  if (!is_flag(form.substr(at, end - at))) return false;
  size_t i = at;
  if (i > 0 && form[i - 1] == ' ' && (form[at] | 0x20) != 'n') return true;
  while (i > 0 && (form[i - 1] == ' ' || form[i - 1] == '"' || form[i - 1] == '\'')) --i;
  if (i == 0) return false;
  if (form[i - 1] == '=') return true;
  const bool ends = end == form.size() || (form[end] != ' ' && is_punctuation(form[end]));
  return ends && (form[i - 1] == ':' || (i == at && is_punctuation(form[i - 1])));
}

bool is_identifier(std::string_view word) {
  for (size_t i = 1; i + 1 < word.size(); ++i)
    if (word[i] == '_' && is_letter(word[i - 1]) && is_letter(word[i + 1])) return true;
  return false;
}

// "session of user root": a user's name may be any word, so it is a value.
bool is_user(std::string_view form, size_t at) {
  constexpr std::string_view kUser = " user ";
  const std::string_view before = form.substr(0, at);
  return before.ends_with(kUser) && !before.ends_with(" user user ");
}

// Whether "key=" or "key = " precedes the word, and the word is not a key itself ("ruser= rhost=<*>"). For an
// identifier, "key: " counts too ("EventType: CONTAINER_LAUNCH").
bool is_assigned(std::string_view form, size_t at, size_t end) {
  if (end < form.size() && form[end] == '=') return false;
  if (is_user(form, at)) return true;
  const bool identifier = is_identifier(form.substr(at, end - at));
  while (at > 0 && (form[at - 1] == ' ' || form[at - 1] == '"' || form[at - 1] == '\'')) --at;
  if (at < 2 || (form[at - 1] != '=' && !(form[at - 1] == ':' && identifier))) return false;
  at -= form[at - 2] == ' ' ? 2 : 1;
  return at > 0 && !is_punctuation(form[at - 1]);
}

Place place_of(std::string_view form, size_t at, size_t end) {
  if (is_lone_flag(form, at, end) || is_address(form, at, end)) return Place::kValue;
  return is_assigned(form, at, end) ? Place::kAssigned : Place::kText;
}

// The end of the quoted words after the quote before `at`; 0: none. A single quoted word is a plain word, and
// a quoted stretch with holes is a message ("GET <*> HTTP/<*>").
size_t quoted_end(std::string_view form, size_t at) {
  const char quote = at > 0 ? form[at - 1] : ' ';
  if ((quote != '"' && quote != '\'') || (at > 1 && !is_punctuation(form[at - 2]))) return 0;
  const size_t end = form.substr(0, at + kQuotedBytes).find(quote, at);
  if (end == std::string_view::npos || form[at] == ' ' || form[end - 1] == ' ') return 0;
  if (end + 1 < form.size() && !is_punctuation(form[end + 1])) return 0;
  const std::string_view quoted = form.substr(at, end - at);
  return quoted.find(' ') == quoted.npos || quoted.find(kHole) != quoted.npos ? 0 : end;
}

bool hole_at(std::string_view form, size_t i) { return form.substr(i, kHole.size()) == kHole; }

// The end of the word at `i`; `i` if there is none.
size_t word_end(std::string_view form, size_t i) {
  if (const size_t end = quoted_end(form, i)) return end;
  size_t j = i;
  while (j < form.size()) {
    if (hole_at(form, j))
      j += kHole.size();
    else if (is_punctuation(form[j]))
      break;
    else
      ++j;
  }
  while (j > i && form[j - 1] == '.') --j;  // full stops of a sentence
  return j;
}

// Words of state and outcome in plain English. Messages that differ in such a word have different meanings,
// unless very many words occur at its position. Sorted.
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
// Words for a job's failure or in place of a number: never a mere value. Sorted.
constexpr std::string_view kBad[] = {"dead",  "die",  "disconnect", "down",    "fatal",    "gone",
                                     "hung",  "inf",  "infinity",   "kill",    "lost",     "nan",
                                     "none",  "null", "off",        "offline", "overflow", "reject",
                                     "reset", "shut", "shutdown",   "stuck",   "unknown",  "warning"};

// Parts of words that report trouble: "ValueError", "timeouts", "unreachable".
constexpr std::string_view kTrouble[] = {"abort", "corrupt", "crash", "denied",  "error",       "exception",
                                         "fail",  "fault",   "hang",  "illegal", "invalid",     "killed",
                                         "oom",   "panic",   "refus", "timeout", "unreachable", "warn"};

// Whether a part begins at `at`: "hang" matches in "NcclHang" and "hang_check", not in "Zhang".
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
  // Enumerators are in capitals. Participles ("started", "Resuming") are verbs, but not shorter words ("red",
  // "ring").
  traits.verb = (letters >= 2 && letters == capitals && !traits.assigned) ||
                (low.size() >= 5 && letters == low.size() && (low.ends_with("ed") || low.ends_with("ing")));
  // The parts of a name ("android.intent.SCREEN_ON", "View Lock") are not words of a sentence.
  const bool name = std::count(low.begin(), low.end(), '.') >= 2 || low.find(' ') != low.npos;
  for (size_t i = 0, j = 0; i < low.size() && !name; i = j + 1) {
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
  pieces.places.clear();
  uint64_t shape = 0;
  size_t i = 0;
  while (i < form.size() && pieces.words.size() < limits::kMessageTokens) {
    if (const size_t end = word_end(form, i); end > i) {
      const std::string_view word = form.substr(i, end - i);
      pieces.words.push_back(word);
      pieces.places.push_back(place_of(form, i, end));
      shape = mix64(shape, 256);
      i = end;
      continue;
    }
    shape = mix64(shape, static_cast<uint8_t>(form[i]));
    ++i;
  }
  if (i < form.size())
    shape = mix64(shape, hash64(form.substr(i)));  // beyond the limit: equal as a whole or different
  pieces.shape = shape;
}

WordTraits traits_of(std::string_view word, Place place) {
  WordTraits traits;
  traits.hole = word == kHole;
  if (traits.hole) return traits;
  traits.assigned = place == Place::kAssigned;
  traits.value = place == Place::kValue;
  traits.typed = word.find(kHole) != std::string_view::npos;
  size_t letters = 0;
  for (const char c : word) letters += is_lower(c) || is_upper(c) || static_cast<uint8_t>(c) >= 128;
  for (size_t i = 1; i + 1 < word.size(); ++i)
    traits.qualified |=
        kNameTies.find(word[i]) != std::string_view::npos && is_part(word[i - 1]) && is_part(word[i + 1]);
  traits.anchor = letters >= 2;
  traits.numbered = traits.typed && traits.anchor && !traits.qualified && !is_identifier(word);
  if (!traits.numbered && !traits.value) judge_state(word, traits);
  traits.verb &= !traits.state && !traits.typed;
  return traits;
}

}  // namespace culprit::logs
