#include "app/config/rule_json.h"

#include <algorithm>

#include "model/json_writer.h"

namespace culprit::app {

std::string to_json(const rules::Rule& rule) {
  JsonWriter w;
  w.object([&] {
    w.field("id", rule.id);
    w.field("title", rule.title);
    w.field("severity", to_string(rule.severity));
    w.field("category", to_string(rule.category));
    w.field("component", to_string(rule.component));
    w.field("symptom", to_string(rule.symptom));
    w.field("role", rules::to_string(rule.role));
    w.field("action", to_string(rule.action));
    w.field("restart", restart_of(rule));
    w.field("general", rule.general());
    w.field("says", rules::to_string(rule.says));
    w.text_or_null("ends", to_string(rule.ends));
    w.text_or_null("observes", to_string(rule.observes));
    w.field("enabled", rule.enabled);
    w.field("file", rule.place.file);
    w.field("line", rule.place.line);
  });
  return w.finish();
}

std::string restart_of(const rules::Rule& rule) {
  std::string out(to_string(rule.restart));
  if (rule.restart_after_steps != rule.restart)
    out += ", after steps " + std::string(to_string(rule.restart_after_steps));
  return out;
}

std::string_view blame_of(const rules::Rule& rule) {
  switch (rule.blame) {
    case rules::Blame::kHost:
      return "host";
    case rules::Blame::kJob:
      return "job";
    case rules::Blame::kFew:
      return "the host, where few hosts tell of it";
  }
  return "";
}

std::vector<std::string> sources_of(const rules::Rule& rule) {
  using S = rules::TextSource;
  std::vector<std::string> out;
  for (S s : {S::kLog, S::kKernel, S::kFinding, S::kEvent, S::kMetric, S::kFatal})
    if (rule.sources & rules::bit(s)) out.emplace_back(rules::to_string(s));
  return out;
}

std::vector<std::string> literals_of(const rules::Rule& rule) {
  std::vector<std::string> out;
  for (const rules::Pattern& p : rule.any) out.insert(out.end(), p.literals.begin(), p.literals.end());
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

namespace {

void write_window(JsonWriter& w, const rules::Window& window) {
  w.object([&] {
    w.field("by", rules::to_string(window.by));
    w.field("span_ns", window.span_ns);
    w.field("at_least", window.at_least);
    w.text_or_null("same", window.same);
    w.text_or_null("distinct", window.distinct);
    w.text_or_null("after", window.after);
    w.text_or_null("unless", window.unless);
    w.text_or_null("with", window.with);
  });
}

void write_match(JsonWriter& w, const rules::Rule& rule) {
  std::vector<std::string_view> templates, regexes, except;
  for (const rules::Pattern& p : rule.any) (p.is_template ? templates : regexes).push_back(p.text);
  for (const rules::Pattern& p : rule.except) except.push_back(p.text);
  w.object([&] {
    w.values("template", templates);
    w.values("regex", regexes);
    w.values("except", except);
  });
}

void write_overridden(JsonWriter& w, const rules::Overridden& o) {
  w.object([&] {
    w.field("file", o.place.file);
    w.field("line", o.place.line);
    w.field("severity_before", to_string(o.severity));
    w.field("action_before", to_string(o.action));
    w.field("restart_before", to_string(o.restart));
    w.field("enabled_before", o.enabled);
  });
}

void write_examples(JsonWriter& w, const rules::Rule& rule) {
  w.object([&] {
    w.values("hit", rule.hit);
    w.values("miss", rule.miss);
  });
}

}  // namespace

std::string explained_json(const rules::Rule& rule) {
  JsonWriter w;
  w.object([&] {
    w.field("id", rule.id);
    w.field("title", rule.title);
    w.field("file", rule.place.file);
    w.field("line", rule.place.line);
    w.field("enabled", rule.enabled);
    w.field("category", to_string(rule.category));
    w.field("component", to_string(rule.component));
    w.field("severity", to_string(rule.severity));
    w.field("symptom", to_string(rule.symptom));
    w.values("source", sources_of(rule));
    w.member("match", [&] { write_match(w, rule); });
    w.values("holes", rule.holes);
    w.values("literals", literals_of(rule));
    w.field("scan_all", rule.scan_all);
    w.field("role", rules::to_string(rule.role));
    w.field("general", rule.general());
    w.field("says", rules::to_string(rule.says));
    w.text_or_null("ends", to_string(rule.ends));
    w.text_or_null("observes", to_string(rule.observes));
    std::vector<std::string_view> reads;
    for (const rules::Pattern& p : rule.reads) reads.push_back(p.text);
    w.values("reads", reads);
    w.field("blames", blame_of(rule));
    if (rule.window)
      w.member("window", [&] { write_window(w, *rule.window); });
    else
      w.null("window");
    if (const auto& recovery = rule.recovery)
      w.member("recovery", [&] {
        w.object([&] {
          w.field("rule", recovery->rule);
          w.text_or_null("same", recovery->same);
          if (recovery->within_ns >= 0) w.field("within_ns", recovery->within_ns);
        });
      });
    else
      w.null("recovery");
    w.field("when", rule.when != 0);
    w.field("remedy", rule.remedy);
    w.field("action", to_string(rule.action));
    w.field("restart", restart_of(rule));
    w.member("examples", [&] { write_examples(w, rule); });
    w.list("overridden", rule.overridden, [&](const rules::Overridden& o) { write_overridden(w, o); });
  });
  return w.finish();
}

}  // namespace culprit::app
