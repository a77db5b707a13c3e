#include "app/confirm/cause.h"

#include <fmt/format.h>
#include <re2/re2.h>

#include <algorithm>
#include <memory>
#include <unordered_map>
#include <utility>

#include "app/confirm/line.h"
#include "app/confirm/pattern.h"
#include "base/text.h"
#include "core/logs/mask.h"
#include "core/logs/shape.h"

namespace culprit::app {
namespace {

constexpr size_t kCandidates = 24;
constexpr size_t kOffers = 9;  // lines offered to a person, who answers with one digit
constexpr double kIndicates = 0.5;
constexpr double kQuoted = 0.6;             // score of a quoted line that is not an indicating line
constexpr TimeNs kSkewNs = 1'000'000'000;   // clocks of hosts differ
constexpr TimeNs kLaterNs = 5'000'000'000;  // lines of one event come this close together
constexpr size_t kFewWords = 3;             // a pattern with fewer fixed words is a heading
constexpr size_t kExceptionWords = 2;       // the same for an exception, whose name is one word
constexpr double kVariant = 0.75;           // share of common words in two wordings of one message

struct Candidate {
  std::string pattern;
  double score = 0.5;
  Occurrences seen;
  std::set<std::string> hosts;
  TimeNs first_ns = kNoTime;
  bool accused = true;   // an accused host prints the line, or no host is accused
  std::string why_not;   // why the line is not the cause; empty: it may be
  bool follows = false;  // according to the library, the line follows from another fault
  bool later = false;    // came after symptoms on other hosts
  uint64_t failed = 0;   // lines in other failed jobs
  bool healthy = false;  // a successful job writes the line
  double worth = 0;
};

class Chooser {
 public:
  Chooser(const Report& report, const Diagnosis& diagnosis, const ConfirmContext& context)
      : report_(report), d_(diagnosis), context_(context), consequences_(context.known) {
    for (const Suspect& s : d_.hosts)
      if (s.host) accused_.insert(*s.host);
    for (const Evidence& e : d_.evidence)
      if (e.host) names_.insert(*e.host);
    for (const Suspect& s : report.suspects)
      if (s.host) names_.insert(*s.host);
    for (const Indicating& i : report.indicating)
      for (const LinePlace& place : i.where)
        if (place.host) names_.insert(*place.host);
    names_.insert(accused_.begin(), accused_.end());
    names_.insert(context.job_hosts.begin(), context.job_hosts.end());
    count_words();
    // A job's name occurs in paths and messages, so it is removed; a name of common words such as "train" is
    // not.
    if (const std::string name = report.job.id.value_or(""); !name.empty()) {
      const std::set<std::string> words = words_of_text(name);
      if (std::ranges::any_of(words, [&](const std::string& word) { return !usual_.contains(word); }))
        names_.insert(name);
    }
  }

  Result<Cause> choose() {
    gather();
    if (candidates_.empty())
      return fail(ErrorCode::kInvalid, fmt::format("{}: no line of it is fit for a rule", d_.id));
    search_job();
    merge_variants();
    for (Candidate& c : candidates_) judge(c);
    judge_order();
    try_others();
    Candidate* best = nullptr;
    for (Candidate& c : candidates_) {
      if (!c.why_not.empty()) continue;
      c.worth = worth(c);
      if (!best || c.worth > best->worth) best = &c;
    }
    if (!best) return fail(ErrorCode::kInvalid, refusal());
    return outcome(*best);
  }

  // Accepts the line that a person chose despite doubts about it, unless successful jobs write it.
  Result<Cause> take(const std::string& line) {
    const std::string message = message_of(line);
    const std::string lines[] = {message};
    Candidate chosen;
    chosen.pattern = pattern_of(lines, names_);
    if (chosen.pattern.empty())
      return fail(ErrorCode::kInvalid,
                  fmt::format("'{}': nothing in the line is fixed", shorten(message, 80)));
    gather();
    std::erase_if(candidates_, [&](const Candidate& c) { return Fires(c.pattern).in(message); });
    candidates_.insert(candidates_.begin(), chosen);
    quoted_.push_back({message, "", kNoTime});
    search_job();
    for (Candidate& c : candidates_) judge(c);
    Candidate& mine = candidates_[0];
    if (!Fires(mine.pattern).in(message)) {  // the other lines of its first pattern do not have this wording
      mine.pattern = chosen.pattern;
      mine.seen = {1, {quoted_.back()}};
    }
    const std::string against = std::exchange(mine.why_not, "");
    const uint64_t n = in_pool(Fires(mine.pattern), mine);
    try_others();
    if (n > 0)
      mine.why_not = fmt::format("successful jobs write it too ({} of the pool)", counted(n, "form"));
    if (n > 0 || mine.healthy)
      return fail(ErrorCode::kInvalid, fmt::format("'{}': {}", shorten(mine.pattern, 80), mine.why_not));
    auto out = outcome(mine);
    out->notes.clear();
    if (!against.empty())
      out->notes.push_back(fmt::format("'{}' is taken as you say: {}", shorten(mine.pattern, 90), against));
    return out;
  }

  std::vector<LineChoice> offers() {
    gather();
    search_job();
    merge_variants();
    for (Candidate& c : candidates_) judge(c), c.worth = worth(c);
    judge_order();
    try_others();
    std::stable_sort(candidates_.begin(), candidates_.end(), [](const Candidate& a, const Candidate& b) {
      return std::pair(!a.why_not.empty(), -a.worth) < std::pair(!b.why_not.empty(), -b.worth);
    });
    std::vector<LineChoice> out;
    for (const Candidate& c : candidates_)
      if (out.size() < kOffers && !c.seen.lines.empty()) out.push_back({c.seen.lines[0].message, c.why_not});
    return out;
  }

 private:
  void add(const std::string& line, const std::string& pattern, double score) {
    if (pattern.empty() || words_of_text(pattern).size() < kExceptionWords) return;
    for (Candidate& c : candidates_)
      if (c.pattern == pattern || Fires(c.pattern).in(line)) {
        c.score = std::max(c.score, score);
        return;
      }
    if (candidates_.size() >= kCandidates) return;
    Candidate c;
    c.pattern = pattern;
    c.score = score;
    candidates_.push_back(std::move(c));
  }

  // Collects quoted lines, and templates that indicate the failure, above all on the accused hosts.
  void gather() {
    for (const Evidence& e : d_.evidence) {
      const std::string message = message_of(e.text);
      const std::string lines[] = {message};
      add(message, pattern_of(lines, names_), kQuoted);
      quoted_.push_back({message, e.host.value_or(""), e.time_ns});
    }
    for (const Indicating& i : report_.indicating) {
      if (!of_logs() && accused_.empty()) break;  // no fact ties these lines to the diagnosis
      if (i.score < kIndicates) {
        rate_quoted(i);
        continue;
      }
      const bool here = accused_.empty() ||
                        std::any_of(i.where.begin(), i.where.end(),
                                    [&](const LinePlace& p) { return p.host && accused_.contains(*p.host); });
      if (!here && !d_.evidence.empty()) continue;
      const std::string line = sample_line(i.template_text);
      add(line, rule_template(i.template_text), i.score);
      if (!context_.job)
        for (const LinePlace& p : i.where) quoted_.push_back({line, p.host.value_or(""), kNoTime});
    }
  }

  // Whether the diagnosis rests on log lines; a detector of traces or dumps only quotes lines.
  bool of_logs() const {
    constexpr std::string_view kOthers[] = {"comm", "flight", "numerics", "stacks"};
    const std::string by = d_.detector.value_or("");
    return std::ranges::find(kOthers, by) == std::end(kOthers) && !by.starts_with("plugin:");
  }

  // Lowers the score of a quoted line whose template hardly indicates the failure.
  void rate_quoted(const Indicating& i) {
    const Fires fires(rule_template(i.template_text));
    for (Candidate& c : candidates_)
      if (std::any_of(quoted_.begin(), quoted_.end(), [&](const Occurrence& o) {
            return fires.in(o.message) && Fires(c.pattern).in(o.message);
          }))
        c.score = std::min(c.score, i.score);
  }

  void search_job() {
    std::vector<std::string> patterns;
    for (const Candidate& c : candidates_) patterns.push_back(c.pattern);
    std::vector<Occurrences> found = context_.job ? context_.job(patterns) : std::vector<Occurrences>();
    for (size_t i = 0; i < candidates_.size(); ++i) {
      Candidate& c = candidates_[i];
      if (i < found.size()) c.seen = std::move(found[i]);
      if (c.seen.count == 0) {  // no logs, or a record of several lines: use the lines quoted by the report
        const Fires fires(c.pattern);
        for (const Occurrence& o : quoted_)
          if (fires.in(o.message)) c.seen.lines.push_back(o), ++c.seen.count;
      }
      std::vector<std::string> texts;
      for (const Occurrence& o : c.seen.lines) {
        if (!o.host.empty()) c.hosts.insert(o.host);
        if (o.time_ns != kNoTime && (c.first_ns == kNoTime || o.time_ns < c.first_ns)) c.first_ns = o.time_ns;
        texts.push_back(o.message);
      }
      c.pattern = pattern_of(texts, names_);
      c.accused = accused_.empty() || c.hosts.empty() ||
                  std::any_of(c.hosts.begin(), c.hosts.end(),
                              [&](const std::string& host) { return accused_.contains(host); });
    }
  }

  // One message may come with different levels or in slightly different words.
  void merge_variants() {
    for (size_t i = 0; i < candidates_.size(); ++i)
      for (size_t j = candidates_.size(); --j > i;) {
        Candidate &a = candidates_[i], &b = candidates_[j];
        if (alike(words_of_text(a.pattern), words_of_text(b.pattern)) < kVariant) continue;
        std::vector<std::string> texts;
        for (const Candidate* c : {&a, &b})
          for (const Occurrence& o : c->seen.lines) texts.push_back(o.message);
        const std::string both = pattern_of(texts, names_);
        const Fires fires(both);
        const bool all =
            std::all_of(texts.begin(), texts.end(), [&](const auto& text) { return fires.in(text); });
        if (both.empty() || !all || alike(words_of_text(both), words_of_text(a.pattern)) < kVariant) continue;
        a.pattern = both;
        a.score = std::max(a.score, b.score);
        a.seen.count += b.seen.count;
        a.seen.lines.insert(a.seen.lines.end(), b.seen.lines.begin(), b.seen.lines.end());
        a.hosts.insert(b.hosts.begin(), b.hosts.end());
        if (b.first_ns != kNoTime)
          a.first_ns = a.first_ns == kNoTime ? b.first_ns : std::min(a.first_ns, b.first_ns);
        a.accused = a.accused || b.accused;
        candidates_.erase(candidates_.begin() + static_cast<std::ptrdiff_t>(j));
      }
  }

  void judge(Candidate& c) const {
    const Fires fires(c.pattern);
    const size_t elsewhere = std::count_if(c.hosts.begin(), c.hosts.end(),
                                           [&](const std::string& host) { return !accused_.contains(host); });
    if (c.seen.lines.empty() || std::none_of(c.seen.lines.begin(), c.seen.lines.end(),
                                             [&](const Occurrence& o) { return fires.in(o.message); }))
      c.why_not = "its lines have no form in common";
    else if (words_of_text(c.pattern).size() < words_needed(c))
      c.why_not = "its fixed part has too few words";
    else if (c.score < kIndicates)
      c.why_not = "it hardly indicates the failure";
    else if (std::string known = known_as(fires, c); !known.empty())
      c.why_not = std::move(known);
    else if (std::string no = why_no_mark(c.seen.lines[0].message, c.pattern, c.seen.count, consequences_);
             !no.empty())
      c.why_not = std::move(no);
    else if (const uint64_t n = in_pool(fires, c); n > 0)
      c.why_not = fmt::format("successful jobs write it too ({} of the pool)", counted(n, "form"));
    else if (!c.accused)
      c.why_not = "only hosts that are not accused write it";
    else if (!accused_.empty() && elsewhere > accused_.size() && !speaks_of_failure(c.seen.lines[0].message))
      c.why_not = fmt::format("{} that are not accused write it too", counted(elsewhere, "host"));
  }

  static size_t words_needed(const Candidate& c) {
    const logs::FormShape shape = logs::shape_of(logs::form_text(c.seen.lines[0].message));
    return shape.kind == logs::ShapeKind::kException ? kExceptionWords : kFewWords;
  }

  // What the library knows of these lines: examples in its rules, and its rules that match the line.
  std::string known_as(const Fires& fires, Candidate& c) const {
    if (!context_.known) return "";
    size_t examples = 0;
    std::string of;
    for (const rules::Rule& rule : context_.known->rules()) {
      if (!rule.enabled) continue;
      for (const Occurrence& o : c.seen.lines)
        if (matches(rule, o.message)) {
          c.follows = rule.role == rules::Role::kCascade;
          return rule.role == rules::Role::kCascade
                     ? fmt::format("it follows from another fault, as the rule {} knows", rule.id)
                     : fmt::format("the rule {} knows it", rule.id);
        }
      for (const auto* texts : {&rule.hit, &rule.miss})
        for (const std::string& text : *texts)
          for (std::string_view line : split(text, '\n'))
            if (fires.in(line)) ++examples, of = rule.id;
    }
    if (examples == 0) return "";
    return fmt::format("it is too general: it fires on {} of other rules, such as {}",
                       counted(examples, "example"), of);
  }

  bool matches(const rules::Rule& rule, const std::string& message) const {
    if (rule.severity < Severity::kWarning || rule.general()) return false;
    std::string low(message.size(), '\0');
    lower_ascii(message, low.data());
    for (const rules::Pattern& p : rule.any) {
      const bool may =
          p.literals.empty() || std::any_of(p.literals.begin(), p.literals.end(),
                                            [&](const auto& l) { return low.find(l) != low.npos; });
      if (!may || !found(p.regex, message)) continue;
      return std::none_of(rule.except.begin(), rule.except.end(),
                          [&](const rules::Pattern& e) { return found(e.regex, message); });
    }
    return false;
  }

  bool found(const std::string& regex, const std::string& message) const {
    auto& one = regexes_[regex];
    if (!one) one = std::make_unique<re2::RE2>(regex, rules::regex_options());
    return re2::RE2::PartialMatch(message, *one);
  }

  // A form's hole may hide a fixed word of the pattern, so the forms of the lines are compared too.
  uint64_t in_pool(const Fires& fires, const Candidate& c) const {
    if (!context_.pool) return 0;
    std::set<std::string> own;
    for (const Occurrence& o : c.seen.lines) own.insert(logs::form_text(o.message));
    uint64_t n = 0;
    for (const detect::PoolForm& form : context_.pool->forms)
      n += own.contains(form.text) || fires.in(form.text);
    return n;
  }

  // A line after the first symptom on other hosts is a consequence.
  void judge_order() {
    TimeNs sign = kNoTime, elsewhere = kNoTime;
    for (const Candidate& c : candidates_) {
      if (c.first_ns == kNoTime) continue;
      if (c.why_not.empty() && (sign == kNoTime || c.first_ns < sign)) sign = c.first_ns;
      if (accused_.empty()) continue;
      for (const Occurrence& o : c.seen.lines)
        if (!accused_.contains(o.host) && !o.host.empty() && o.time_ns != kNoTime &&
            (c.why_not.empty() || c.follows))
          elsewhere = elsewhere == kNoTime ? o.time_ns : std::min(elsewhere, o.time_ns);
    }
    const auto follows = [&](const Candidate& c) {
      return elsewhere != kNoTime && c.first_ns != kNoTime && c.first_ns > elsewhere + kSkewNs;
    };
    // If all lines came later, the clocks or the accusation are inexact: no line is ruled out.
    const bool all = std::all_of(candidates_.begin(), candidates_.end(),
                                 [&](const Candidate& c) { return !c.why_not.empty() || follows(c); });
    for (Candidate& c : candidates_) {
      if (!c.why_not.empty()) continue;
      if (follows(c) && !all) c.why_not = "it came after the first sign on other hosts";
      c.later = c.first_ns != kNoTime && sign != kNoTime && c.first_ns > sign + kLaterNs;
    }
  }

  void try_others() {
    std::vector<std::string> patterns;
    for (const Candidate& c : candidates_) patterns.push_back(c.pattern);
    for (const TriedJob& job : context_.others) {
      const std::vector<Occurrences> found = job.search(patterns);
      for (size_t i = 0; i < candidates_.size() && i < found.size(); ++i) {
        Candidate& c = candidates_[i];
        if (found[i].count == 0) continue;
        c.healthy = c.healthy || job.healthy;
        if (!job.healthy)
          c.failed += found[i].count;
        else if (c.why_not.empty())
          c.why_not = fmt::format("the successful job {} writes it too ({})", job.name,
                                  counted(found[i].count, "line"));
      }
    }
    // Another failed job may have had the same fault, so its lines rule out a candidate only if others
    // remain.
    const bool fresh = std::any_of(candidates_.begin(), candidates_.end(),
                                   [](const Candidate& c) { return c.why_not.empty() && c.failed == 0; });
    for (Candidate& c : candidates_)
      if (fresh && c.why_not.empty() && c.failed > 0) c.why_not = "other failed jobs write it too";
  }

  void count_words() {
    const auto take = [&](std::string_view text) {
      for (const std::string& word : words_of_text(text)) ++usual_[word];
    };
    if (context_.pool)
      for (const detect::PoolForm& form : context_.pool->forms) take(form.text);
    if (context_.known)
      for (const rules::Rule& rule : context_.known->rules())
        if (rule.enabled)
          for (const std::string& text : rule.hit) take(text);
    for (const std::string& text : context_.job_templates) take(text);
  }

  // Words that few other lines contain are the most specific; words of failure mark a fault.
  double worth(const Candidate& c) const {
    double rare = 0;
    size_t words = 0;
    for (const std::string& word : words_of_text(c.pattern)) {
      if (++words > 10) break;
      const auto usual = usual_.find(word);
      rare += 1.0 / (1.0 + (usual == usual_.end() ? 0.0 : static_cast<double>(usual->second)));
    }
    const std::string line = c.seen.lines.empty() ? c.pattern : c.seen.lines[0].message;
    const logs::FormShape shape = logs::shape_of(logs::form_text(line));
    double out = (0.5 + rare) * (0.5 + c.score) * (1 + 0.5 * shape.words);
    if (shape.kind == logs::ShapeKind::kException) out *= 1.5;
    if (shape.progress || shape.kind == logs::ShapeKind::kFrame) out *= 0.2;
    if (c.later) out *= 0.4;
    return out;
  }

  std::string refusal() const {
    std::string out = fmt::format("{}: refused: none of its lines is the mark of one fault", d_.id);
    for (size_t i = 0; i < candidates_.size() && i < 5; ++i)
      out += fmt::format("; '{}': {}", shorten(candidates_[i].pattern, 80), candidates_[i].why_not);
    return out;
  }

  Result<Cause> outcome(const Candidate& best) const {
    Cause out;
    out.pattern = best.pattern;
    out.seen = best.seen;
    out.hosts = best.hosts;
    // The proof on the job uses the finished pattern, not the patterns that it was built from.
    if (std::vector<Occurrences> again; context_.job) {
      again = context_.job({best.pattern});
      if (!again.empty() && again[0].count > 0) out.seen = std::move(again[0]);
      for (const Occurrence& o : out.seen.lines)
        if (!o.host.empty()) out.hosts.insert(o.host);
    }
    for (const Candidate& c : candidates_) {
      if (&c == &best) continue;
      if (!c.why_not.empty())
        out.notes.push_back(fmt::format("left out '{}': {}", shorten(c.pattern, 90), c.why_not));
      else
        out.notes.push_back(fmt::format("not taken '{}': it tells less ({:.1f}, the chosen one {:.1f})",
                                        shorten(c.pattern, 90), c.worth, best.worth));
      if (!c.seen.lines.empty()) out.left_out.push_back(c.seen.lines[0].message);
    }
    if (context_.pool) out.pool_forms = context_.pool->forms.size();
    if (context_.known)
      for (const rules::Rule& rule : context_.known->rules())
        out.examples += rule.hit.size() + rule.miss.size();
    return out;
  }

  const Report& report_;
  const Diagnosis& d_;
  const ConfirmContext& context_;
  const ConsequenceWords consequences_;
  std::set<std::string> accused_, names_;
  std::vector<Occurrence> quoted_;
  std::vector<Candidate> candidates_;
  std::unordered_map<std::string, size_t> usual_;  // texts with each word
  mutable std::unordered_map<std::string, std::unique_ptr<re2::RE2>> regexes_;
};

}  // namespace

Result<Cause> cause_of(const Report& report, const Diagnosis& diagnosis, const ConfirmContext& context,
                       const std::string& line) {
  Chooser chooser(report, diagnosis, context);
  return line.empty() ? chooser.choose() : chooser.take(line);
}

std::vector<LineChoice> lines_of(const Report& report, const Diagnosis& diagnosis,
                                 const ConfirmContext& context) {
  return Chooser(report, diagnosis, context).offers();
}

}  // namespace culprit::app
