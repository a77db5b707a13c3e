#include "core/rules/pattern.h"

#include <fmt/format.h>
#include <re2/filtered_re2.h>
#include <re2/re2.h>

#include <algorithm>
#include <numeric>

#include "base/text.h"
#include "core/rules/library_tables.h"
#include "core/rules/line_share.h"
#include "core/rules/matcher.h"

namespace culprit::rules {
namespace {

bool is_name(std::string_view text) {
  if (text == "*") return true;
  if (text.empty() || (text[0] >= '0' && text[0] <= '9')) return false;
  return std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  });
}

// Units of LoadWork, measured: see tests/unit/core/rules/work_test.cc.
constexpr uint64_t kLookedUp = 1'000;        // per wording of the library
constexpr uint64_t kAnalysis = 20'000;       // of the shortest regex
constexpr uint64_t kAnInstruction = 500;     // per instruction of the regex's program
constexpr uint64_t kTooLarge = 100'000'000;  // for a regex that RE2 rejects as too large
constexpr uint64_t kAnAtom = 200;            // per atom examined once
// Minimum size of a text that only confirms lines found by other texts.
constexpr size_t kAlsoMin = 2;
constexpr uint64_t kAPair = 15'000;  // per pair of compared literals

// Restrictions of Vectorscan: a text must not begin with a NUL or exceed 16,000 bytes, which a regex of ten
// characters can require.
std::string usable_piece(const std::string& text) {
  std::string_view best;
  for (std::string_view piece : split(text, '\0'))
    if (piece.size() > best.size()) best = piece;
  return std::string(best.substr(0, kLiteralMax));
}

bool is_nameless(std::string_view name) { return name == "_" || name == "*"; }

}  // namespace

Result<std::string> template_to_regex(std::string_view text) {
  std::string out, literal;
  const auto flush = [&] {
    out += re2::RE2::QuoteMeta(literal);
    literal.clear();
  };
  bool fixed = false;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\n') return fail(ErrorCode::kInvalid, "a template is one line");
    if (text[i] != '<') {
      literal += text[i];
      fixed = true;
      continue;
    }
    if (text.substr(i, 2) == "<<") {
      literal += '<';
      fixed = true;
      ++i;
      continue;
    }
    const size_t end = text.find('>', i);
    const std::string_view name = end == text.npos ? "" : text.substr(i + 1, end - i - 1);
    if (!is_name(name))
      return fail(ErrorCode::kInvalid,
                  fmt::format("'<' at place {} begins no hole; write '<<' for a '<'", i + 1));
    flush();
    const std::string_view body = end + 1 == text.size() ? ".+" : ".+?";
    out += is_nameless(name) ? fmt::format("(?:{})", body) : fmt::format("(?P<{}>{})", name, body);
    i = end;
  }
  flush();
  if (!fixed) return fail(ErrorCode::kInvalid, "a template of holes alone fits every line");
  return out;
}

namespace {

// The longest common substring.
std::string_view common(std::string_view a, std::string_view b) {
  std::string_view best;
  for (size_t i = 0; i < a.size(); ++i)
    while (i + best.size() < a.size() && b.find(a.substr(i, best.size() + 1)) != b.npos)
      best = a.substr(i, best.size() + 1);
  return best;
}

// Replaces texts that share a long part by that part if it is rare enough. Otherwise wordings with several
// forms of each word would add too many texts to the pass.
void merge(std::vector<std::string>& literals, LoadWork& work) {
  constexpr size_t kShared = 10;  // shorter parts occur in too many lines
  constexpr size_t kMerged = 64;  // texts of one regex; each round compares all pairs
  while (literals.size() <= kMerged && work.spend(literals.size() * literals.size() / 2 * kAPair)) {
    std::string best;
    for (size_t i = 0; i < literals.size(); ++i)
      for (size_t j = i + 1; j < literals.size(); ++j)
        if (const std::string_view shared = common(literals[i], literals[j]); shared.size() > best.size())
          best = shared;
    if (best.size() < kShared || line_share(best) > kRareShare) return;
    std::erase_if(literals, [&](const std::string& l) { return l.find(best) != l.npos; });
    literals.push_back(best);
  }
}

constexpr double kCommonest = 1'000;  // above the sum of any set of literals

// The share of a set is the sum over its texts. A set with a text too short to search counts as the most
// common.
double share_of(const std::vector<std::string>& texts) {
  double out = 0;
  for (const std::string& text : texts) out += text.size() < kLiteralMin ? kCommonest : line_share(text);
  return out;
}

// Removes texts that contain another text of the set.
std::vector<std::string> shortest(const std::vector<std::string>& texts) {
  constexpr size_t kCompared = 64;  // texts; each is compared with all others
  if (texts.size() > kCompared) return texts;
  std::vector<std::string> out;
  for (const std::string& text : texts)
    if (std::none_of(texts.begin(), texts.end(), [&](const std::string& other) {
          return other.size() < text.size() && text.find(other) != text.npos;
        }))
      out.push_back(text);
  return out;
}

// Derives sets of texts such that every match contains at least one text of each set. RE2 answers only
// whether a line with given texts may match. So texts are dropped one by one while lines that contain none of
// the remaining texts cannot match.
class Required {
 public:
  Required(re2::FilteredRE2& filter, LoadWork& work) : filter_(filter), work_(work) {
    filter_.Compile(&atoms_);
    used_.resize(atoms_.size());
    std::vector<double> shares;
    for (const std::string& atom : atoms_) shares.push_back(line_share(atom));
    order_.resize(atoms_.size());
    std::iota(order_.begin(), order_.end(), 0);
    std::stable_sort(order_.begin(), order_.end(), [&](int x, int y) {
      const auto at = [&](int i) {
        return std::pair(-shares[static_cast<size_t>(i)], atoms_[static_cast<size_t>(i)].size());
      };
      return at(x) < at(y);
    });
  }

  // The rarest set first; the last sets may contain texts too short to search. Empty: every line may match,
  // or the budget is spent.
  std::vector<std::vector<std::string>> sets() {
    std::vector<std::vector<std::string>> out;
    if (atoms_.empty()) return out;
    for (size_t i = 0; i < kSets && !might_match(); ++i) {
      auto set = next_set();
      if (work_.ended()) return {};
      if (!set.empty()) out.push_back(std::move(set));
    }
    std::stable_sort(out.begin(), out.end(),
                     [](const auto& a, const auto& b) { return share_of(a) < share_of(b); });
    return out;
  }

 private:
  static constexpr size_t kSets = 6;

  // Whether a line with exactly the texts of `seen_` may match.
  bool might_match() {
    possible_.clear();
    filter_.AllPotentials(seen_, &possible_);
    return !possible_.empty();
  }

  // Drops texts, the most common and shortest first. Empty: a text of the set is too short.
  std::vector<std::string> next_set() {
    std::vector<std::string> out;
    bool usable = true;
    for (const int atom : order_) {
      if (used_[static_cast<size_t>(atom)]) continue;
      if (!work_.spend(atoms_.size() * kAnAtom)) return {};
      seen_.push_back(atom);
      if (!might_match()) continue;
      seen_.pop_back();
      retained_.push_back(atom);
      used_[static_cast<size_t>(atom)] = true;
      out.push_back(usable_piece(atoms_[static_cast<size_t>(atom)]));
      usable = usable && out.back().size() >= kAlsoMin;
    }
    seen_ = retained_;  // the next set uses other texts
    return usable ? shortest(out) : std::vector<std::string>();
  }

  re2::FilteredRE2& filter_;
  LoadWork& work_;
  std::vector<std::string> atoms_;
  std::vector<int> order_, seen_, possible_;
  std::vector<int> retained_;  // texts of all earlier sets
  std::vector<bool> used_;
};

}  // namespace

namespace {

// The end of the character, class, escape or quantifier that begins at `at`.
size_t end_of_token(std::string_view regex, size_t at) {
  if (regex[at] == '\\' && at + 1 < regex.size()) {
    if (regex[at + 1] == 'Q') return std::min(regex.find("\\E", at), regex.size() - 2) + 2;
    const bool braces = at + 2 < regex.size() && regex[at + 2] == '{';
    return braces ? std::min(regex.find('}', at), regex.size() - 1) + 1 : at + 2;
  }
  if (regex[at] != '[') return at + 1;
  size_t i = at + 1;
  if (i < regex.size() && regex[i] == '^') ++i;
  for (bool first = true; i < regex.size() && (first || regex[i] != ']'); first = false) {
    if (regex.substr(i, 2) == "[:")
      i = std::min(regex.find(":]", i), regex.size() - 2) + 2;
    else
      i += regex[i] == '\\' ? 2 : 1;
  }
  return std::min(i + 1, regex.size());
}

// "fail(?:ed)?" -> "fail(?:(?:ed)|)": equivalent, but RE2's analysis treats the former as matching any text.
std::string with_alternatives(std::string_view regex) {
  std::string out;
  std::vector<size_t> open;  // begins of the open groups in `out`
  // Begin of the last group in `out`; npos: there is none, or a quantifier cannot follow.
  size_t atom = npos;
  for (size_t at = 0; at < regex.size();) {
    const size_t end = std::max(end_of_token(regex, at), at + 1);
    const std::string_view token = regex.substr(at, end - at);
    at = end;
    if (token == "?" && atom != npos) {
      out.insert(atom, "(?:");
      out += "|)";
      if (regex.substr(at, 1) == "?") ++at;
      atom = npos;
      continue;
    }
    const size_t begin = out.size();
    out += token;
    atom = npos;
    if (token == "(") {
      open.push_back(begin);
      // The '?' that marks the kind of a group is no quantifier.
      if (regex.substr(at, 1) == "?") out += regex[at++];
    } else if (token == ")" && !open.empty()) {
      atom = open.back();
      open.pop_back();
    } else if (const size_t brace = token == "{" ? regex.find_first_not_of("0123456789,", at) : npos;
               brace != npos && brace != at && regex[brace] == '}') {
      out += regex.substr(at, brace + 1 - at);
      at = brace + 1;
    } else if (token != "*" && token != "+" && token != "?" && token != "|" && token != "^" && token != "$") {
      atom = begin;
    }
  }
  return out;
}

}  // namespace

Result<Wording> analyse(const std::string& regex) {
  LoadWork work(kLoadWork, {});
  return analyse(regex, work);
}

Result<Wording> analyse(const std::string& regex, LoadWork& work) {
  if (auto known = library_wording(regex)) {
    work.spend(kLookedUp);
    return std::move(*known);
  }
  re2::FilteredRE2 filter(static_cast<int>(kAlsoMin));
  int id = 0;
  re2::RE2::ErrorCode error = filter.Add(with_alternatives(regex), regex_options(), &id);
  if (error != re2::RE2::NoError) error = filter.Add(regex, regex_options(), &id);
  if (error == re2::RE2::ErrorPatternTooLarge) work.spend(kTooLarge);
  if (error != re2::RE2::NoError) return fail(ErrorCode::kInvalid, re2::RE2(regex, regex_options()).error());
  work.spend(kAnalysis + kAnInstruction * static_cast<uint64_t>(filter.GetRE2(id).ProgramSize()));
  Wording out;
  for (const auto& [index, name] : filter.GetRE2(id).CapturingGroupNames()) {
    if (std::find(out.holes.begin(), out.holes.end(), name) != out.holes.end())
      return fail(ErrorCode::kInvalid, fmt::format("the hole '{}' stands twice", name));
    out.holes.push_back(name);
  }
  out.also = Required(filter, work).sets();
  const auto is_short = [](const std::string& text) { return text.size() < kLiteralMin; };
  if (!out.also.empty() && std::none_of(out.also[0].begin(), out.also[0].end(), is_short)) {
    out.literals = std::move(out.also.front());
    out.also.erase(out.also.begin());
  }
  std::vector<std::string> whole = out.literals;
  merge(out.literals, work);
  if (out.literals != whole) out.also.insert(out.also.begin(), std::move(whole));
  return out;
}

}  // namespace culprit::rules
