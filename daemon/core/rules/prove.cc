// Runs a rule's examples through the same matcher and windows as a job's lines, in virtual time.
#include <fmt/format.h>

#include <set>

#include "base/text.h"
#include "core/logs/header.h"
#include "core/rules/ruleset.h"
#include "core/rules/run.h"

namespace culprit::rules {
namespace {

// Whether the text's lines make the rule fire, and otherwise what came nearest.
class Prover {
 public:
  explicit Prover(Ruleset& set) : set_(set), scanner_(set.matcher()), run_(borrow(set)) {}

  void begin(uint32_t rule) {
    rule_ = rule;
    related_.clear();
    add_related(set_.rules()[rule].id);
  }

  bool fires(std::string_view text) {
    run_.clear();
    shadow_.clear();
    matched_ = false;
    logs::HeaderParser headers({});
    bool fired = false;
    scanner_.begin(text);
    TimeNs time = 0;
    for (size_t begin = 0; begin < text.size();) {
      const size_t end = std::min(text.find('\n', begin), text.size());
      const std::string_view line = text.substr(begin, end - begin);
      const logs::Header header = headers.parse(line);
      if (header.time_ns != kNoTime) time = header.time_ns;
      fired = take(begin, end, line.substr(header.message), header, time) || fired;
      begin = end + 1;
    }
    return fired;
  }

  bool matched() const { return matched_; }
  const std::string& shadow() const { return shadow_; }
  const std::vector<RuleTrouble>& troubles() const { return run_.troubles(); }

 private:
  static std::shared_ptr<Ruleset> borrow(Ruleset& set) { return {std::shared_ptr<void>(), &set}; }

  void add_related(const std::string& id) {
    if (id.empty() || !related_.insert(id).second) return;
    const auto index = set_.find(id);
    if (!index || !set_.rules()[*index].window) return;
    add_related(set_.rules()[*index].window->after);
    add_related(set_.rules()[*index].window->unless);
  }

  Source source_of(const logs::Header& header) const {
    const SourceSet sources = set_.rules()[rule_].sources;
    if (header.kernel && (sources & bit(Source::kKernel))) return Source::kKernel;
    for (Source s : {Source::kLog, Source::kKernel, Source::kFinding, Source::kEvent, Source::kMetric})
      if (sources & bit(s)) return s;
    return Source::kLog;
  }

  bool take(size_t begin, size_t end, std::string_view message, const logs::Header& header, TimeNs time) {
    bool fired = false;
    const Source source = source_of(header);
    for (const RuleMatch& m : scanner_.match(begin, end, message, source)) {
      const Rule& rule = set_.rules()[m.rule];
      if (m.rule == rule_) matched_ = true;
      if (m.rule != rule_ && !rule.general) shadow_ = rule.id;
      if (!related_.contains(rule.id)) continue;
      RuleHit hit;
      hit.rule = m.rule;
      hit.time_ns = time;
      hit.source = source;
      hit.text = std::string(message);
      for (std::string_view hole : m.holes) hit.holes.emplace_back(hole);
      hit.host = std::string(header.host);
      if (header.rank != logs::kNoRank) hit.rank = header.rank;
      if (header.local != logs::kNoRank) hit.device = header.local;
      if (run_.add(hit) && m.rule == rule_) fired = true;
    }
    return fired;
  }

  Ruleset& set_;
  uint32_t rule_ = 0;
  Scanner scanner_;
  RuleRun run_;
  std::set<std::string, std::less<>> related_;
  std::string shadow_;
  bool matched_ = false;
};

void prove_one(Prover& prover, const Rule& rule, std::span<const RuleText> files,
               std::vector<RuleError>& errors) {
  const auto add = [&](std::string_view key, std::string_view code, std::string what) {
    RuleError e = error_at(files, rule, key, false);
    e.code = std::string(code);
    e.what = fmt::format("rule {}: {}", rule.id, what);
    errors.push_back(std::move(e));
  };
  for (const std::string& text : rule.hit) {
    if (prover.fires(text)) continue;
    const std::string why = !prover.troubles().empty() ? prover.troubles()[0].what
                            : prover.matched()         ? "it matches, but its window or `when` does not hold"
                            : rule.general && !prover.shadow().empty()
                                ? fmt::format("being general, it gives way to {}", prover.shadow())
                                : "no wording of it stands in it";
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

// A rule that asks for another one that has errors itself cannot be proven, and that is told of the other.
bool is_whole(const Ruleset& set, const Rule& rule) {
  if (!rule.window) return true;
  const auto known = [&](const std::string& id) { return id.empty() || set.find(id); };
  return known(rule.window->after) && known(rule.window->unless);
}

}  // namespace

void prove(Ruleset& ruleset, std::span<const RuleText> files, std::vector<RuleError>& errors) {
  std::set<std::string_view> names;
  for (const RuleText& file : files) names.insert(file.file);
  Prover prover(ruleset);
  for (uint32_t i = 0; i < ruleset.rules().size(); ++i) {
    const Rule& rule = ruleset.rules()[i];
    if (!rule.enabled || !is_whole(ruleset, rule) || !names.contains(rule.place.file)) continue;
    prover.begin(i);
    prove_one(prover, rule, files, errors);
  }
}

}  // namespace culprit::rules
