// Runs a rule's examples through the same matcher and windows as the lines of a job, in virtual time.
#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "base/text.h"
#include "core/logs/header.h"
#include "core/rules/near.h"
#include "core/rules/ruleset.h"
#include "core/rules/run.h"

namespace culprit::rules {
namespace {

// Units of LoadWork, measured: see tests/unit/core/rules/work_test.cc.
constexpr uint64_t kExample = 2'000, kMatchAByte = 5;
constexpr uint64_t kALine = 500;
constexpr uint64_t kAHit = 2'000;  // including a call of the rule's function
constexpr uint64_t kAnEntry = 30;  // per entry of a window, for each hit
constexpr uint64_t kARelated = 300;

// The ids of the other rules that decide whether this rule fires.
std::vector<const std::string*> named_by(const Rule& rule) {
  std::vector<const std::string*> out;
  if (rule.window) out = {&rule.window->after, &rule.window->unless, &rule.window->with};
  if (rule.recovery) out.push_back(&rule.recovery->rule);
  std::erase_if(out, [](const std::string* id) { return id->empty(); });
  return out;
}

// Tests whether the lines of a text make the rule fire; if not, finds the nearest miss.
class Prover {
 public:
  Prover(Ruleset& set, LoadWork& work) : set_(set), work_(work), scanner_(set.matcher()), run_(borrow(set)) {}

  void begin(uint32_t rule) {
    rule_ = rule;
    find_related();
    scanner_.restrict_to(related_);
    count_scanning();
  }

  // The result is invalid once the budget of work is spent.
  bool fires(std::string_view text) {
    if (!work_.spend(kExample + text.size() * kMatchAByte)) return false;
    run_.clear();
    shadow_.clear();
    matched_ = false;
    logs::HeaderParser headers({});
    scanner_.begin(text);
    TimeNs time = 0;
    hits_.clear();
    for (size_t begin = 0; begin < text.size() && work_.spend(kALine);) {
      const size_t end = std::min(text.find('\n', begin), text.size());
      const std::string_view line = text.substr(begin, end - begin);
      const logs::Header header = headers.parse(line);
      if (header.time_ns != kNoTime) time = header.time_ns;
      const bool whole = set_.rules()[rule_].sources == bit(TextSource::kFatal);
      if (!whole || header.level == logs::Level::kFatal)
        take(begin, end, whole ? line : line.substr(header.message), header, time);
      begin = end + 1;
    }
    // Hits of rules that depend on other rules are added last, so that the order of lines does not matter.
    for (RuleHit& hit : std::exchange(waiting_, {})) add(std::move(hit));
    // As in a job's report, a state that ended soon gives no diagnosis.
    std::erase_if(hits_, [&](const RuleHit& hit) { return run_.recovered(hit); });
    return !hits_.empty();
  }

  bool matched() const { return matched_; }
  const std::string& shadow() const { return shadow_; }
  const std::vector<RuleTrouble>& troubles() const { return run_.troubles(); }

 private:
  static std::shared_ptr<Ruleset> borrow(Ruleset& set) { return {std::shared_ptr<void>(), &set}; }

  // The rule and all rules that it names, directly or indirectly; in order.
  void find_related() {
    related_ = {rule_};
    std::set<uint32_t> seen{rule_};
    for (size_t i = 0; i < related_.size() && work_.spend(kARelated); ++i) {
      const Rule& rule = set_.rules()[related_[i]];
      for (const std::string* id : named_by(rule))
        if (const auto other = set_.find(*id); other && seen.insert(*other).second)
          related_.push_back(*other);
    }
    std::sort(related_.begin(), related_.end());
  }

  void count_scanning() { work_.spend(scanner_.work() - std::exchange(scanned_, scanner_.work())); }

  TextSource source_of(const logs::Header& header) const {
    const SourceSet sources = set_.rules()[rule_].sources;
    if (header.kernel && (sources & bit(TextSource::kKernel))) return TextSource::kKernel;
    for (TextSource s : {TextSource::kLog, TextSource::kKernel, TextSource::kFinding, TextSource::kEvent,
                         TextSource::kMetric, TextSource::kFatal})
      if (sources & bit(s)) return s;
    return TextSource::kLog;
  }

  // If the rule names a rule on lines in `with`, a line of its examples may belong to either rule.
  TextSource source_with(TextSource source) const {
    const auto& window = set_.rules()[rule_].window;
    if (!window || window->with.empty()) return source;
    return static_cast<TextSource>(bit(TextSource::kFinding) | bit(TextSource::kLog) |
                                   bit(TextSource::kKernel));
  }

  void add(RuleHit hit) {
    if (run_.add(hit) && hit.rule == rule_) hits_.push_back(std::move(hit));
  }

  void take(size_t begin, size_t end, std::string_view message, const logs::Header& header, TimeNs time) {
    const TextSource source = source_of(header);
    const std::span<const RuleMatch> matches = scanner_.match(begin, end, message, source_with(source));
    count_scanning();
    for (const RuleMatch& m : matches) {
      const Rule& rule = set_.rules()[m.rule];
      if (m.rule == rule_) matched_ = true;
      if (rule.says > set_.rules()[rule_].says) shadow_ = rule.id;
      if (!std::binary_search(related_.begin(), related_.end(), m.rule)) continue;
      if (!work_.spend(kAHit + (rule.window ? run_.entries() * kAnEntry : 0))) break;
      RuleHit hit;
      hit.rule = m.rule;
      hit.time_ns = time;
      hit.source = source;
      hit.text = std::string(message);
      for (std::string_view hole : m.holes) hit.holes.emplace_back(hole);
      hit.host = std::string(header.host);
      if (header.rank != logs::kNoRank) hit.rank = header.rank;
      if (header.local != logs::kNoRank) hit.device = header.local;
      if (rule.window && !rule.window->with.empty())
        waiting_.push_back(std::move(hit));
      else
        add(std::move(hit));
    }
  }

  Ruleset& set_;
  LoadWork& work_;
  uint32_t rule_ = 0;
  Scanner scanner_;
  uint64_t scanned_ = 0;  // part of the scanner's work that is already charged
  RuleRun run_;
  std::vector<uint32_t> related_;
  std::vector<RuleHit> hits_;  // hits at which the rule fired
  std::string shadow_;
  bool matched_ = false;
  std::vector<RuleHit> waiting_;  // hits of rules that depend on other rules
};

// Arguments of a proof, except the rules themselves.
struct Proof {
  std::span<const RuleText> files;
  LoadWork& work;
  ErrorList& errors;
};

std::string of_header(const Rule& rule, std::string_view text) {
  for (std::string_view line : split(text, '\n'))
    if (const std::string begins = hidden_by_header(rule, line); !begins.empty())
      return "; rules see the message alone, and " + begins;
  return "";
}

void prove_one(Prover& prover, const Rule& rule, const Proof& proof) {
  const auto add = [&](std::string_view key, std::string_view code, std::string what) {
    if (!proof.errors.wants(rule.place.file, rule.place.line)) return;
    const std::vector<RuleTrouble>& troubles = prover.troubles();
    const uint32_t line = troubles.empty() ? 0 : troubles[0].line;
    RuleError e = line ? error_on(proof.files, rule, line) : error_at(proof.files, rule, key, false);
    e.code = std::string(code);
    e.what = fmt::format("rule {}: {}", rule.id, what);
    proof.errors.add(std::move(e));
  };
  for (const std::string& text : rule.hit) {
    if (prover.fires(text)) continue;
    const std::string why = !prover.troubles().empty() ? prover.troubles()[0].what
                            : prover.matched()         ? "it matches, but its window or `when` does not hold"
                            : !prover.shadow().empty()
                                ? fmt::format("it gives way to {}, which says more", prover.shadow())
                                : "no wording of it stands in it" + of_header(rule, text);
    add("examples.hit", "example-not-hit",
        fmt::format("the example '{}' has to hit: {}", shorten(text, 120), why));
  }
  for (const std::string& text : rule.miss) {
    if (prover.fires(text))
      add("examples.miss", "example-hit",
          fmt::format("the example '{}' must not hit, and does", shorten(text, 120)));
    else if (!prover.troubles().empty())
      add("examples.miss", "example-failed",
          fmt::format("the example '{}' proves nothing: {}", shorten(text, 120), prover.troubles()[0].what));
  }
}

// A rule that names an invalid rule cannot be tested; the error is reported for the invalid rule.
bool is_whole(const Ruleset& set, const Rule& rule) {
  return std::ranges::all_of(named_by(rule),
                             [&](const std::string* id) { return set.find(*id).has_value(); });
}

}  // namespace

void prove(Ruleset& ruleset, std::span<const RuleText> files, LoadWork& work, ErrorList& errors) {
  std::set<std::string_view> names;
  for (const RuleText& file : files) names.insert(file.file);
  const Proof proof{files, work, errors};
  Prover prover(ruleset, work);
  size_t proven = 0;
  const Rule* dearest = nullptr;
  uint64_t dearest_cost = 0;
  for (uint32_t i = 0; i < ruleset.rules().size(); ++i) {
    const Rule& rule = ruleset.rules()[i];
    if (!rule.enabled || !is_whole(ruleset, rule) || !names.contains(rule.place.file)) continue;
    if (errors.full(rule.place.file)) continue;
    const uint64_t before = work.spent();
    prover.begin(i);
    prove_one(prover, rule, proof);
    const uint64_t cost = work.spent() - before;
    if (cost > dearest_cost) dearest = &rule, dearest_cost = cost;
    if (!work.ended()) {
      ++proven;
      continue;
    }
    RuleError e = error_at(files, rule, "id", true);
    e.code = work.code();
    e.what = fmt::format("rule {}: {}; {} proven before it; the most, {:.0f} %, went into {} ({}:{})",
                         rule.id, work.why(), counted(proven, "rule"),
                         100.0 * static_cast<double>(dearest_cost) / static_cast<double>(work.spent()),
                         dearest->id, dearest->place.file, dearest->place.line);
    return errors.add(std::move(e));
  }
}

}  // namespace culprit::rules
