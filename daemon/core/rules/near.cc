#include "core/rules/near.h"

#include <algorithm>

#include "core/logs/header.h"
#include "core/rules/matcher.h"
#include "core/rules/pattern.h"

namespace culprit::rules {
namespace {

constexpr size_t kTried = 24;         // rules compared piece by piece
constexpr size_t kPieceBytes = 400;   // compared bytes of a wording
constexpr double kNearnessMin = 0.2;  // one or two shared words occur by chance
constexpr size_t kMatchedMin = 6;     // as do a few shared characters

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return out;
}

bool is_word(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9'); }

// The share of the wording's words, by characters, that the message (in lower case) contains.
double shared_words(std::string_view wording, std::string_view message) {
  const std::string text = lower(wording);
  size_t all = 0, shared = 0;
  for (size_t at = 0; at < text.size();) {
    size_t end = at;
    while (end < text.size() && is_word(text[end])) ++end;
    if (end - at >= kLiteralMin) {
      all += end - at;
      if (message.find(text.substr(at, end - at)) != message.npos) shared += end - at;
    }
    at = end + 1;
  }
  return all == 0 ? 0 : static_cast<double>(shared) / static_cast<double>(all);
}

// The alternatives of a regex outside all groups.
std::vector<std::string_view> alternatives(std::string_view regex) {
  std::vector<std::string_view> out;
  size_t begin = 0;
  int depth = 0;
  bool in_class = false;
  for (size_t i = 0; i < regex.size(); ++i) {
    const char c = regex[i];
    if (c == '\\')
      ++i;
    else if (in_class)
      in_class = c != ']';
    else if (c == '[')
      in_class = true;
    else if (c == '(')
      ++depth;
    else if (c == ')')
      --depth;
    else if (c == '|' && depth == 0) {
      out.push_back(regex.substr(begin, i - begin));
      begin = i + 1;
    }
  }
  out.push_back(regex.substr(begin));
  return out;
}

// A regex for the first `size` bytes of the wording; empty if a wording cannot end there.
std::string beginning(std::string_view wording, size_t size, bool is_template) {
  const std::string_view part = wording.substr(0, size);
  if (is_template) {
    auto regex = template_to_regex(part);
    return regex ? std::move(*regex) : std::string();
  }
  if (part.ends_with('|') || part.ends_with('(')) return {};
  std::string out(part);
  int open = 0;
  bool in_class = false;
  for (size_t i = 0; i < part.size(); ++i) {
    if (part[i] == '\\')
      ++i;
    else if (in_class)
      in_class = part[i] != ']';
    else if (part[i] == '[')
      in_class = true;
    else
      open += part[i] == '(' ? 1 : part[i] == ')' ? -1 : 0;
  }
  if (open > 0) out.append(static_cast<size_t>(open), ')');
  return out;
}

bool found_in(const std::string& regex, std::string_view message, std::string* matched) {
  const re2::RE2 compiled(regex, regex_options());
  if (!compiled.ok()) return false;
  re2::StringPiece all;
  const re2::StringPiece text(message.data(), message.size());
  if (!compiled.Match(text, 0, text.size(), re2::RE2::UNANCHORED, &all, 1)) return false;
  if (matched) *matched = std::string(all.data(), all.size());
  return true;
}

// Finds the longest prefix of a wording that matches in the message.
void follow(std::string_view wording, bool is_template, std::string_view message, NearRule& best) {
  const size_t whole = std::min(wording.size(), kPieceBytes);
  std::string matched;
  for (size_t size = whole; size > 0; --size) {
    // Prefixes end at whole words, which are easier to read in the report.
    if (size < wording.size() && is_word(wording[size - 1]) && is_word(wording[size])) continue;
    const double nearness = static_cast<double>(size) / static_cast<double>(whole);
    if (nearness <= best.nearness) return;
    const std::string regex = beginning(wording, size, is_template);
    if (regex.empty() || !found_in(regex, message, &matched) || matched.empty()) continue;
    best.nearness = nearness;
    best.wording = wording;
    best.matched = matched;
    best.wanted = wording.substr(size);
    return;
  }
}

class Nearness {
 public:
  Nearness(const Ruleset& set, const ReadLine& line, TextSource source)
      : set_(set),
        line_(line.text),
        message_(line.text.substr(line.message)),
        lower_(lower(message_)),
        lower_line_(lower(line_)),
        source_(source) {}

  std::vector<NearRule> nearest(size_t max) {
    std::vector<std::pair<double, uint32_t>> order;
    for (uint32_t i = 0; i < set_.rules().size(); ++i)
      if (set_.rules()[i].enabled) order.emplace_back(-quick(set_.rules()[i]), i);
    std::stable_sort(order.begin(), order.end());
    std::vector<NearRule> out;
    for (const auto& [score, i] : order) {
      if (score > -2 && (score == 0 || out.size() >= kTried)) break;
      out.push_back(look(i));
    }
    give_way(out);
    std::erase_if(out, [](const NearRule& n) {
      return n.stop == NearRule::Stop::kWording &&
             (n.nearness < kNearnessMin || n.matched.size() < kMatchedMin);
    });
    std::stable_sort(out.begin(), out.end(), [](const NearRule& a, const NearRule& b) {
      return std::pair(a.stop, -a.nearness) < std::pair(b.stop, -b.nearness);
    });
    if (out.size() > max) out.resize(max);
    return out;
  }

 private:
  bool has(const Pattern& pattern) const {
    const auto in = [&](const std::string& literal) { return lower_.find(literal) != lower_.npos; };
    return pattern.literals.empty() || std::any_of(pattern.literals.begin(), pattern.literals.end(), in);
  }

  // Whether the wording matches the line including its header.
  bool in_line(const Pattern& pattern, std::string* matched) const {
    const auto in = [&](const std::string& literal) {
      return lower_line_.find(literal) != std::string::npos;
    };
    return line_.size() > message_.size() &&
           (pattern.literals.empty() || std::ranges::any_of(pattern.literals, in)) &&
           found_in(pattern.regex, line_, matched);
  }

  // 2 if a wording matches the line, else the share of words plus a bonus for a literal.
  double quick(const Rule& rule) const {
    double best = 0;
    for (const Pattern& p : rule.any) {
      if ((has(p) && found_in(p.regex, message_, nullptr)) || in_line(p, nullptr)) return 2;
      best = std::max(best, shared_words(p.text, lower_) + (has(p) && !p.literals.empty() ? 0.5 : 0));
    }
    return best;
  }

  NearRule look(uint32_t index) const {
    const Rule& rule = set_.rules()[index];
    NearRule out;
    out.rule = index;
    for (const Pattern& p : rule.any) {
      if (!has(p) || !found_in(p.regex, message_, &out.matched)) continue;
      out.wording = p.text;
      out.nearness = 1;
      out.stop = NearRule::Stop::kFound;
      for (const Pattern& e : rule.except)
        if (out.other.empty() && found_in(e.regex, message_, nullptr)) out.other = e.text;
      if (!out.other.empty()) out.stop = NearRule::Stop::kExcept;
      if (!(rule.sources & bit(source_))) out.stop = NearRule::Stop::kSource;
      return out;
    }
    for (const Pattern& p : rule.any) {
      if (!in_line(p, &out.matched)) continue;
      out.wording = p.text;
      out.nearness = 1;
      out.stop = NearRule::Stop::kHeader;
      return out;
    }
    for (const Pattern& p : rule.any) {
      const double before = out.nearness;
      if (p.is_template)
        follow(p.text, true, message_, out);
      else
        for (std::string_view one : alternatives(p.text)) follow(one, false, message_, out);
      if (out.nearness > before) out.missing = has(p) ? "" : p.literals[0];
    }
    return out;
  }

  void give_way(std::vector<NearRule>& found) const {
    const auto says = [&](const NearRule& n) { return set_.rules()[n.rule].says; };
    const auto holds = [](const NearRule& n) { return n.stop == NearRule::Stop::kFound; };
    const NearRule* most = nullptr;
    for (const NearRule& n : found)
      if (holds(n) && (!most || says(n) > says(*most))) most = &n;
    if (!most) return;
    const Says bar = says(*most);
    const std::string id = set_.rules()[most->rule].id;
    for (NearRule& n : found)
      if (holds(n) && says(n) < bar) {
        n.stop = NearRule::Stop::kGeneral;
        n.other = id;
      }
  }

  const Ruleset& set_;
  std::string_view line_, message_;
  std::string lower_, lower_line_;
  TextSource source_;
};

}  // namespace

std::vector<NearRule> nearest_rules(const Ruleset& ruleset, const ReadLine& line, TextSource source,
                                    size_t max) {
  return Nearness(ruleset, line, source).nearest(max);
}

std::string hidden_by_header(const Rule& rule, std::string_view line) {
  const std::string begins = logs::begins_after(line);
  if (begins.empty()) return "";
  const std::string_view message = line.substr(logs::HeaderParser({}).parse(line).message);
  for (const Pattern& p : rule.any)
    if (found_in(p.regex, line, nullptr) && !found_in(p.regex, message, nullptr)) return begins;
  return "";
}

}  // namespace culprit::rules
