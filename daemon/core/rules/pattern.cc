#include "core/rules/pattern.h"

#include <fmt/format.h>
#include <re2/filtered_re2.h>
#include <re2/re2.h>

#include <algorithm>
#include <numeric>

#include "base/text.h"
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
constexpr uint64_t kAnalysis = 20'000;       // of the shortest regex
constexpr uint64_t kAnInstruction = 500;     // of its program
constexpr uint64_t kTooLarge = 100'000'000;  // a regex that RE2 gives up
constexpr uint64_t kAnAtom = 200;            // looked at once
constexpr uint64_t kAPair = 15'000;          // of literals compared

// What Vectorscan takes of a text: none that begins with a NUL, and none of more than 16,000 bytes, which a
// regex of ten can ask for.
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

// Texts that share a long part are looked for by that part: wordings in which each word may stand in several
// forms would else fill the pass over the text.
void merge(std::vector<std::string>& literals, LoadWork& work) {
  constexpr size_t kShared = 8;   // rare still, and all that a literal matcher looks at first
  constexpr size_t kMerged = 64;  // of one regex; each round compares all pairs
  while (literals.size() <= kMerged && work.spend(literals.size() * literals.size() / 2 * kAPair)) {
    std::string best;
    for (size_t i = 0; i < literals.size(); ++i)
      for (size_t j = i + 1; j < literals.size(); ++j)
        if (const std::string_view shared = common(literals[i], literals[j]); shared.size() > best.size())
          best = shared;
    if (best.size() < kShared) return;
    std::erase_if(literals, [&](const std::string& l) { return l.find(best) != l.npos; });
    literals.push_back(best);
  }
}

// Fixed texts; every match contains at least one of them. See Wording.
std::vector<std::string> required_literals(re2::FilteredRE2& filter, LoadWork& work) {
  std::vector<std::string> out, atoms;
  filter.Compile(&atoms);
  std::vector<int> seen, possible;
  // Whether a line with exactly these atoms may match.
  const auto might = [&] {
    possible.clear();
    filter.AllPotentials(seen, &possible);
    return !possible.empty();
  };
  if (atoms.empty() || might()) return out;
  // Drops atoms, shortest first, while no line without the kept atoms can match.
  std::vector<int> order(atoms.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](int x, int y) { return atoms[x].size() < atoms[y].size(); });
  for (int atom : order) {
    if (!work.spend(atoms.size() * kAnAtom)) return {};
    seen.push_back(atom);
    if (!might()) continue;
    seen.pop_back();
    out.push_back(usable_piece(atoms[atom]));
    if (out.back().size() < kLiteralMin) return {};
  }
  return out;
}

}  // namespace

Result<Wording> analyse(const std::string& regex) {
  LoadWork work(kLoadWork, {});
  return analyse(regex, work);
}

Result<Wording> analyse(const std::string& regex, LoadWork& work) {
  re2::FilteredRE2 filter(static_cast<int>(kLiteralMin));
  int id = 0;
  const re2::RE2::ErrorCode error = filter.Add(regex, regex_options(), &id);
  if (error == re2::RE2::ErrorPatternTooLarge) work.spend(kTooLarge);
  if (error != re2::RE2::NoError) return fail(ErrorCode::kInvalid, re2::RE2(regex, regex_options()).error());
  work.spend(kAnalysis + kAnInstruction * static_cast<uint64_t>(filter.GetRE2(id).ProgramSize()));
  Wording out;
  for (const auto& [index, name] : filter.GetRE2(id).CapturingGroupNames()) {
    if (std::find(out.holes.begin(), out.holes.end(), name) != out.holes.end())
      return fail(ErrorCode::kInvalid, fmt::format("the hole '{}' stands twice", name));
    out.holes.push_back(name);
  }
  out.literals = required_literals(filter, work);
  merge(out.literals, work);
  return out;
}

}  // namespace culprit::rules
