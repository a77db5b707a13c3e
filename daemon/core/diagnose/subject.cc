#include "core/diagnose/subject.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <re2/re2.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/text.h"
#include "core/logs/unwrap.h"
#include "core/rules/matcher.h"
#include "core/rules/observed_holes.h"

namespace culprit::diagnose {
namespace {

constexpr size_t kTitle = 160;      // bytes; the texts of holes may be long
constexpr size_t kSubjects = 2;     // holes shown after a title
constexpr size_t kShortQuote = 20;  // minimum bytes of a useful quote
constexpr size_t kBefore = 24;      // bytes of a quote before the rule's match
constexpr uint32_t kListedRanks = 4096;
constexpr size_t kCompiled = 64;  // wordings; some 10 KB each

// Holes without a meaning outside the line.
constexpr std::array<std::string_view, 12> kSilent = {"pid",  "n",    "seq",    "times", "count", "iteration",
                                                      "loss", "norm", "number", "codec", "kind",  "cgroup"};
// Holes whose value needs a name.
constexpr std::array<std::pair<std::string_view, std::string_view>, 15> kNamed = {
    {{"rank", "rank "},
     {"failed_rank", "rank "},
     {"worker", "worker "},
     {"code", "exit code "},
     {"rank2", "rank "},
     {"ranks", "ranks "},
     {"ranks2", "ranks "},
     {"local_rank", "local rank "},
     {"device", "device "},
     {"gpu", "GPU "},
     {"node", "node "},
     {"port", "port "},
     {"status", "status "},
     {"signal", "signal "},
     {"limit", "limit "}}};

// Removes blanks, punctuation and quotes at the edges. A quote stays if its counterpart is within the text.
std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kEdge = " \t\r,;:.", kQuotes = "'\"`";
  for (;;) {
    const size_t begin = text.find_first_not_of(kEdge);
    if (begin == text.npos) return {};
    text = text.substr(begin, text.find_last_not_of(kEdge) + 1 - begin);
    const auto lone = [&](char c) {
      return kQuotes.find(c) != kQuotes.npos && (std::ranges::count(text, c) % 2 == 1 || text.size() == 1);
    };
    const bool pair = text.size() > 1 && text.front() == text.back() &&
                      kQuotes.find(text.front()) != kQuotes.npos &&
                      std::ranges::count(text, text.front()) == 2;
    if (pair)
      text = text.substr(1, text.size() - 2);
    else if (lone(text.front()))
      text.remove_prefix(1);
    else if (lone(text.back()))
      text.remove_suffix(1);
    else
      return text;
    if (text.empty()) return {};
  }
}

// The wording as a regular expression. A storm has many lines of one rule: the last ones stay compiled.
const re2::RE2& compiled(const std::string& regex) {
  thread_local std::map<std::string, re2::RE2> recent;
  if (recent.size() >= kCompiled && !recent.contains(regex)) recent.clear();
  return recent.try_emplace(regex, regex, rules::regex_options()).first->second;
}

// Position of the rule's first wording in the text; 0: none occurs.
size_t start_of_match(const rules::Rule& rule, std::string_view text) {
  for (const rules::Pattern& pattern : rule.any) {
    const re2::RE2& regex = compiled(pattern.regex);
    re2::StringPiece match;
    const re2::StringPiece piece(text.data(), text.size());
    if (regex.ok() && regex.Match(piece, 0, text.size(), re2::RE2::UNANCHORED, &match, 1))
      return static_cast<size_t>(match.data() - text.data());
  }
  return 0;
}

// Whether a hole tells a reader something. Of lines of ranks that wait, marks are bits of the wording, and
// numbers have no name.
bool is_shown(const rules::Rule& rule, const std::string& hole) {
  if (std::ranges::find(kSilent, hole) != kSilent.end()) return false;
  const auto observed = rule.observes == Observes::kNothing ? std::nullopt : rules::observed_hole(hole);
  if (!observed) return true;
  const rules::HoleType type = rules::observed_holes()[static_cast<size_t>(*observed)].type;
  return type != rules::HoleType::kMark && type != rules::HoleType::kNumber;
}

// The ranks missing from a list of arrived ranks ("5, 1, 4"), up to the list's highest rank.
std::string missing_of(std::string_view came) {
  std::set<uint32_t> ranks;
  for (size_t at = 0; at < came.size();) {
    uint32_t rank = 0;
    const auto [end, error] = std::from_chars(came.data() + at, came.data() + came.size(), rank);
    if (error == std::errc() && rank < kListedRanks) ranks.insert(rank);
    const size_t next = came.find(',', at);
    if (next == came.npos) break;
    at = came.find_first_not_of(" ,", next);
  }
  std::vector<uint32_t> missing;
  for (uint32_t rank = 0; !ranks.empty() && rank < *ranks.rbegin(); ++rank)
    if (!ranks.contains(rank)) missing.push_back(rank);
  if (missing.empty()) return fmt::format("ranks {} came", came);
  return fmt::format("rank{} {} missing", missing.size() > 1 ? "s" : "", fmt::join(missing, ", "));
}

// The line's text, starting at a word shortly before the rule's match. Consecutive blanks become one.
std::string quote(const rules::Rule& rule, const logs::RuleLine& line, size_t room) {
  const std::string_view words = logs::words_of(std::string_view(line.text).substr(0, line.text.find('\n')));
  size_t begin = 0;
  if (words.size() > room) begin = start_of_match(rule, words);
  begin = begin > kBefore ? words.find(' ', begin - kBefore) : 0;
  std::string out;
  for (const char c : trimmed(words.substr(std::min(begin, words.size()))))
    if (const bool blank = c == ' ' || c == '\t'; !blank || !out.ends_with(' ')) out += blank ? ' ' : c;
  return shorten(out, room);
}

std::string subject_of_hole(std::string_view name, std::string_view value) {
  if (name == "ranks_there") return missing_of(value);
  const auto named = std::ranges::find(kNamed, name, &std::pair<std::string_view, std::string_view>::first);
  const bool plain = named == kNamed.end() || value.starts_with('/');  // a path needs no name
  return std::string(plain ? std::string_view() : named->second) + std::string(value);
}

// Replaces "<name>" in a title by the hole's text, and "<text>" by the line; "title: <name>" loses its colon
// if the hole is empty.
std::string fill(const rules::Rule& rule, const logs::RuleLine& line, bool& filled) {
  const std::string& title = rule.title;
  std::string out;
  for (size_t at = 0; at < title.size();) {
    const size_t open = title.find('<', at);
    const size_t close = open == title.npos ? open : title.find('>', open);
    if (close == title.npos) {
      out += title.substr(at);
      break;
    }
    out += title.substr(at, open - at);
    const std::string name = title.substr(open + 1, close - open - 1);
    const bool known = name == "text" || std::ranges::find(rule.holes, name) != rule.holes.end();
    const std::string_view value = name == "text" ? std::string_view(line.text) : hole_of(rule, line, name);
    out += known ? value : std::string_view(title).substr(open, close + 1 - open);
    filled = filled || !value.empty();
    at = close + 1;
  }
  while (out.ends_with(' ') || out.ends_with(':')) out.pop_back();
  return out;
}

}  // namespace

std::optional<uint32_t> number_in(std::string_view text) {
  uint32_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() ? std::optional(number) : std::nullopt;
}

std::string_view hole_of(const rules::Rule& rule, const logs::RuleLine& line, std::string_view name) {
  for (size_t i = 0; i < rule.holes.size() && i < line.holes.size(); ++i)
    if (rule.holes[i] == name && !line.holes[i].empty()) return line.holes[i];
  return {};
}

std::string headline(const rules::Rule& rule, const logs::RuleLine& line) {
  bool filled = false;
  std::string title = fill(rule, line, filled);
  if (filled) return shorten(title, kTitle);
  size_t shown = 0;
  for (size_t i = 0; i < rule.holes.size() && i < line.holes.size() && shown < kSubjects; ++i) {
    const std::string_view value = trimmed(line.holes[i]);
    if (value.empty() || !is_shown(rule, rule.holes[i])) continue;
    title += (shown++ == 0 ? ": " : ", ") + subject_of_hole(rule.holes[i], value);
  }
  if (shown > 0 || title.size() + kShortQuote > kTitle) return shorten(title, kTitle);
  return fmt::format("{}: \"{}\"", title, quote(rule, line, kTitle - title.size() - 4));
}

}  // namespace culprit::diagnose
