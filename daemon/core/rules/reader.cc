#include "core/rules/reader.h"

#include <fmt/format.h>
#include <re2/re2.h>

#include <algorithm>
#include <cmath>

#include "base/hash.h"
#include "base/text.h"
#include "base/time.h"
#include "core/logs/placement.h"
#include "core/rules/matcher.h"
#include "core/rules/observed_holes.h"
#include "core/rules/pattern.h"
#include "core/rules/source_text.h"
#include "model/restart.h"

namespace culprit::rules {
namespace {

constexpr size_t kTextBytes = 4000;     // limit of one text
constexpr size_t kTexts = 256;          // limit of one list
constexpr size_t kHoles = 16;           // limit of one rule
constexpr size_t kReads = 32;           // likewise
constexpr uint32_t kAtLeastMax = 1000;  // capacity of a window
constexpr TimeNs kSpanMax = 7 * 24 * 3600 * kNsPerSecond;

const Value* at_path(const Value& table, std::string_view path) {
  const Value* value = &table;
  for (std::string_view part : split(path, '.')) {
    value = value->find(part);
    if (!value) return nullptr;
  }
  return value;
}

std::string_view kind_name(const Value& v) {
  constexpr std::string_view kNames[] = {"nil",     "true or false", "a number",  "a text",
                                         "a table", "a function",    "a userdata"};
  return kNames[static_cast<size_t>(v.kind)];
}

bool is_text_list(const Value& v) {
  return v.kind == Value::Kind::kTable && v.fields.empty() && !v.list.empty() &&
         std::all_of(v.list.begin(), v.list.end(),
                     [](const Value& e) { return e.kind == Value::Kind::kString; });
}

std::optional<TimeNs> duration_of(std::string_view text) {
  const size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
  if (digits == 0 || digits > 9) return std::nullopt;
  TimeNs n = 0;
  for (char c : text.substr(0, digits)) n = n * 10 + (c - '0');
  const std::string_view unit = text.substr(digits);
  const TimeNs scale = unit == "ms"  ? kNsPerSecond / 1000
                       : unit == "s" ? kNsPerSecond
                       : unit == "m" ? 60 * kNsPerSecond
                       : unit == "h" ? 3600 * kNsPerSecond
                       : unit == "d" ? 24 * 3600 * kNsPerSecond
                                     : 0;
  if (scale == 0 || n == 0 || n > kSpanMax / scale) return std::nullopt;
  return n * scale;
}

template <class Enum>
Enum word_or(const std::string& text, Enum fallback) {
  return from_word<Enum>(text).value_or(fallback);
}

std::string suggested(const std::vector<std::string>& holes, std::string_view name) {
  const std::vector<std::string_view> names(holes.begin(), holes.end());
  const std::string_view best = nearest(name, names);
  return best.empty() ? "" : fmt::format("; did you mean '{}'?", best);
}

bool is_id(std::string_view id) {
  if (id.empty() || id.size() > 100 || id.find('.') == id.npos) return false;
  for (std::string_view part : split(id, '.')) {
    if (part.empty()) return false;
    for (char c : part)
      if (!((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '-')) return false;
  }
  return true;
}

}  // namespace

void Reader::error(std::string_view path, bool value, std::string_view code, std::string what) {
  if (!errors_.wants(file_.file, line_)) return;
  RuleError e;
  e.file = file_.file;
  e.code = std::string(code);
  e.what = std::move(what);
  const auto place = path.empty() ? std::nullopt : find_field(file_.text, line_, path, value);
  e.line = place ? place->line : line_;
  e.column = place ? place->column : 1;
  e.width = place ? place->width : 0;
  e.source = line_at(file_.text, e.line);
  errors_.add(std::move(e));
}

void Reader::unknown(std::span<const Key> keys, std::string_view prefix, std::string_view name) {
  std::vector<std::string_view> near;
  for (const Key& k : keys)
    if (k.path.starts_with(prefix) && k.path.find('.', prefix.size()) == k.path.npos)
      near.push_back(k.path.substr(prefix.size()));
  const std::string_view best = nearest(name, near);
  error(fmt::format("{}{}", prefix, name), false, "unknown-key",
        fmt::format("'{}{}' is no key of a rule{}", prefix, shorten(name, 60),
                    best.empty() ? "" : fmt::format("; did you mean '{}{}'?", prefix, best)));
}

bool Reader::is_word_of(const Key& key, const Value& value, std::string_view path) {
  const std::vector<std::string_view> words = split(key.words, ' ');
  if (std::find(words.begin(), words.end(), value.string) != words.end()) return true;
  const std::string_view best = nearest(value.string, words);
  error(path, true, "bad-value",
        fmt::format("{} '{}' is none of: {}{}", key.path, shorten(value.string, 60), key.words,
                    best.empty() ? "" : fmt::format("; did you mean '{}'?", best)));
  return false;
}

bool Reader::has_type(const Key& key, const Value& value, std::string_view path) {
  using K = Value::Kind;
  bool fits = false;
  switch (key.type) {
    case KeyType::kText:
    case KeyType::kWord:
    case KeyType::kDuration:
      fits = value.kind == K::kString;
      break;
    case KeyType::kTexts:
    case KeyType::kWords:
      fits = value.kind == K::kString || is_text_list(value);
      break;
    case KeyType::kCount:
      fits = value.kind == K::kNumber && value.integer && value.number >= 1 && value.number <= 1e9;
      break;
    case KeyType::kFlag:
      fits = value.kind == K::kBoolean;
      break;
    case KeyType::kFunction:
      fits = value.kind == K::kFunction;
      break;
    case KeyType::kTable:
      fits = value.kind == K::kTable && value.list.empty();
      break;
  }
  if (!fits) {
    error(path, true, "wrong-type",
          fmt::format("{} has to be {}, not {}", path, type_name(key.type), kind_name(value)));
    return false;
  }
  if (value.list.size() > kTexts) {
    error(path, true, "bad-value", fmt::format("{} has more than {} texts", path, kTexts));
    return false;
  }
  std::vector<Value> single;
  if (value.kind == K::kString) single.push_back(value);
  bool good = true;
  for (const Value& v : value.kind == K::kString ? single : value.list) {
    if (v.kind != K::kString) continue;
    if (v.string.empty() || v.string.size() > kTextBytes) {
      error(path, true, "bad-value", fmt::format("{} has to be 1 to {} bytes long", path, kTextBytes));
      good = false;
    } else if (!key.words.empty()) {
      good = is_word_of(key, v, path) && good;
    }
  }
  if (key.type == KeyType::kDuration && good && !duration_of(value.string)) {
    error(path, true, "bad-value",
          fmt::format("{} '{}' is no duration: a whole number with ms, s, m, h or d, at most 7d", path,
                      shorten(value.string, 60)));
    good = false;
  }
  return good;
}

void Reader::check(std::span<const Key> keys, const Value& table, std::string_view prefix) {
  if (!table.list.empty())
    error({}, false, "unknown-key",
          fmt::format("{} holds a value without a key",
                      prefix.empty() ? "the rule" : std::string(prefix.substr(0, prefix.size() - 1))));
  for (const auto& [name, value] : table.fields) {
    const std::string path = fmt::format("{}{}", prefix, name);
    const Key* key = find_key(keys, path);
    if (!key) {
      unknown(keys, prefix, name);
    } else if (has_type(*key, value, path) && key->type == KeyType::kTable) {
      check(keys, value, path + ".");
    }
  }
  for (const Key& key : keys) {
    if (!key.required || !key.path.starts_with(prefix)) continue;
    const std::string_view name = key.path.substr(prefix.size());
    if (name.find('.') != name.npos || table.find(name)) continue;
    const std::string_view parent = prefix.empty() ? prefix : prefix.substr(0, prefix.size() - 1);
    error(parent, false, "missing-key",
          fmt::format("{} is missing: {}", key.path, key.doc.substr(0, key.doc.find(';'))));
  }
}

std::string Reader::text(const Value& table, std::string_view path) const {
  const Value* v = at_path(table, path);
  return v && v->kind == Value::Kind::kString ? v->string : std::string();
}

std::vector<std::string> Reader::texts(const Value& table, std::string_view path) const {
  const Value* v = at_path(table, path);
  std::vector<std::string> out;
  if (v && v->kind == Value::Kind::kString) out.push_back(v->string);
  if (v && is_text_list(*v))
    for (const Value& e : v->list) out.push_back(e.string);
  return out;
}

void Reader::check_id(const Rule& rule) {
  if (!rule.id.empty() && !is_id(rule.id))
    error("id", true, "bad-value",
          fmt::format("id '{}' is no name of the form area.subject: lower-case words, digits, '_' and '-' "
                      "joined by dots",
                      shorten(rule.id, 60)));
}

void Reader::add_pattern(const std::string& pattern, std::string_view path, Rule& out) {
  Pattern p;
  p.text = pattern;
  p.is_template = path == "match.template";
  if (p.is_template) {
    auto regex = template_to_regex(pattern);
    if (!regex)
      return error(path, true, "bad-pattern",
                   fmt::format("template '{}': {}", shorten(pattern, 80), regex.error().text));
    p.regex = std::move(*regex);
  } else {
    p.regex = logs::with_named_groups(pattern);
  }
  if (work_.ended()) return;
  auto wording = analyse(p.regex, work_);
  if (!wording)
    return error(path, true, "bad-pattern",
                 fmt::format("{} '{}': {}", path, shorten(pattern, 80), wording.error().text));
  if (path == "match.except") {
    out.except.push_back(std::move(p));
    return;
  }
  for (const std::string& name : wording->holes)
    if (std::find(out.holes.begin(), out.holes.end(), name) == out.holes.end()) out.holes.push_back(name);
  p.literals = std::move(wording->literals);
  p.also = std::move(wording->also);
  if (p.literals.empty() && !out.scan_all)
    error(
        path, true, "no-literal",
        fmt::format(
            "'{}' has no {} fixed characters in a row that every match holds, so every line would be tried; "
            "add some, or say scan = \"all\"",
            shorten(pattern, 80), kLiteralMin));
  if (out.scan_all) p.literals.clear(), p.also.clear();
  out.any.push_back(std::move(p));
}

void Reader::read_match(const Value& table, Rule& out) {
  out.scan_all = text(table, "scan") == "all";
  for (std::string_view path : {"match.template", "match.regex", "match.except"})
    for (const std::string& p : texts(table, path)) add_pattern(p, path, out);
  const Value* match = table.find("match");
  if (match && match->kind == Value::Kind::kTable && !match->find("template") && !match->find("regex"))
    error("match", false, "missing-key", "match has neither a template nor a regex");
  if (out.holes.size() > kHoles)
    error("match", false, "bad-pattern", fmt::format("a rule has at most {} named holes", kHoles));
}

void Reader::add_reading(const std::string& pattern, Rule& out) {
  if (work_.ended()) return;
  Pattern p;
  p.text = pattern;
  p.regex = logs::with_named_groups(pattern);
  const auto wording = analyse(p.regex, work_);
  const std::string shown = shorten(pattern, 80);
  if (!wording)
    return error("reads", true, "bad-pattern", fmt::format("reads '{}': {}", shown, wording.error().text));
  if (wording->holes.empty())
    return error("reads", true, "bad-pattern", fmt::format("reads '{}': names no hole", shown));
  for (const std::string& name : wording->holes) {
    if (observed_hole(name)) continue;
    std::vector<std::string> known;
    for (const HoleKey& key : observed_holes()) known.emplace_back(key.name);
    error("reads", true, "unknown-hole",
          fmt::format("reads '{}': '{}' is no hole that is read{}", shown, name, suggested(known, name)));
  }
  out.reads.push_back(std::move(p));
}

void Reader::read_observes(const Value& table, Rule& out) {
  out.observes = word_or(text(table, "observes"), Observes::kNothing);
  const std::vector<std::string> reads = texts(table, "reads");
  if (reads.empty()) return;
  if (out.observes == Observes::kNothing)
    return error("reads", false, "bad-value", "reads is only for rules with `observes`");
  if (reads.size() > kReads)
    return error("reads", true, "bad-value", fmt::format("reads has at most {} regexes", kReads));
  for (const std::string& pattern : reads) add_reading(pattern, out);
}

std::optional<Restarts> Reader::restarts(const Value& table) {
  const std::vector<std::string> words = texts(table, "restart");
  if (words.empty()) return std::nullopt;
  if (words.size() > 2)
    error("restart", true, "bad-value",
          "restart is one word, or two: before the job's first step, and after it");
  const Restart first = word_or(words.front(), Restart::kUnknown);
  return Restarts{first, words.size() < 2 ? first : word_or(words[1], Restart::kUnknown)};
}

// "<name>" in a title is a hole of the match, or <text> for the line: reports other names as misspelt.
void Reader::check_title(const Rule& rule) {
  const auto is_name = [](std::string_view text) {
    return !text.empty() && !std::isdigit(static_cast<unsigned char>(text[0])) &&
           std::ranges::all_of(text, [](unsigned char c) { return std::isalnum(c) || c == '_'; });
  };
  for (size_t at = rule.title.find('<'); at != rule.title.npos; at = rule.title.find('<', at + 1)) {
    const size_t end = rule.title.find('>', at);
    if (end == rule.title.npos) return;
    const std::string_view name = std::string_view(rule.title).substr(at + 1, end - at - 1);
    std::vector<std::string> holes = rule.holes;
    holes.emplace_back("text");
    if (!is_name(name) || std::find(holes.begin(), holes.end(), name) != holes.end()) continue;
    error("title", true, "unknown-hole",
          fmt::format("<{}> in the title is no hole of the rule's match{}", shorten(name, 60),
                      suggested(holes, name)));
  }
}

void Reader::read_window(const Value& table, Rule& out) {
  const Value* window = table.find("window");
  if (!window || window->kind != Value::Kind::kTable) return;
  Window w;
  const std::string by = text(table, "window.by");
  for (Scope s : {Scope::kRank, Scope::kDevice, Scope::kJob})
    if (by == to_string(s)) w.by = s;
  w.span_ns = duration_of(text(table, "window.span")).value_or(kNsPerSecond);
  w.same = text(table, "window.same");
  w.distinct = text(table, "window.distinct");
  w.after = text(table, "window.after");
  w.unless = text(table, "window.unless");
  w.with = text(table, "window.with");
  if (!w.with.empty() && out.sources != bit(TextSource::kFinding))
    error("window.with", false, "bad-value", "window.with is only for rules whose source is \"finding\"");
  if (const Value* n = window->find("at_least"); n && n->kind == Value::Kind::kNumber) {
    if (n->number > kAtLeastMax)
      error("window.at_least", true, "bad-value", fmt::format("window.at_least is at most {}", kAtLeastMax));
    w.at_least = static_cast<uint32_t>(std::clamp(n->number, 1.0, double{kAtLeastMax}));
  }
  check_hole("window.same", w.same, out);
  check_hole("window.distinct", w.distinct, out);
  out.window = std::move(w);
}

void Reader::read_recovery(const Value& table, Rule& out) {
  const Value* recovery = table.find("recovery");
  if (!recovery || recovery->kind != Value::Kind::kTable) return;
  Recovery r;
  r.rule = text(table, "recovery.rule");
  r.same = text(table, "recovery.same");
  r.within_ns = duration_of(text(table, "recovery.within")).value_or(-1);
  check_hole("recovery.same", r.same, out);
  out.recovery = std::move(r);
}

void Reader::check_hole(std::string_view path, const std::string& hole, const Rule& rule) {
  if (hole.empty() || std::ranges::find(rule.holes, hole) != rule.holes.end()) return;
  error(path, true, "bad-value",
        fmt::format("'{}' is no hole of the rule's match{}", hole, suggested(rule.holes, hole)));
}

Rule Reader::rule(const Value& table, uint32_t line) {
  line_ = line;
  check(rule_keys(), table, "");
  Rule out;
  out.place = {file_.file, line};
  out.id = text(table, "id");
  out.title = text(table, "title");
  out.remedy = text(table, "remedy");
  check_id(out);
  if (const Value* engine = table.find("engine"); engine && engine->integer && engine->number != 1)
    error("engine", true, "bad-value",
          fmt::format("engine {} is not known: this program takes 1", engine->number));
  out.category = word_or(text(table, "category"), Category::kUnknown);
  out.component = word_or(text(table, "component"), Component::kUnknown);
  out.severity = word_or(text(table, "severity"), Severity::kError);
  out.symptom = word_or(text(table, "symptom"), Symptom::kCrash);
  out.action = word_or(text(table, "action"), ActionKind::kNone);
  const std::optional<Restarts> stated = restarts(table);
  out.restart_stated = stated.has_value();
  out.restart = stated ? stated->first : default_restart(out.category, out.action);
  out.restart_after_steps = stated ? stated->after_steps : out.restart;
  out.role = text(table, "role") == "cascade" ? Role::kCascade : Role::kRoot;
  out.ends = word_or(text(table, "ends"), ProcessEnd::kUnknown);
  read_observes(table, out);
  const std::string blames = text(table, "blames");
  // A fault of the program occurs on every host. What the program requires of a host (memory, libraries, a
  // suitable network) may be missing on one host.
  const bool program = out.component == Component::kUserCode || out.component == Component::kUserConfig ||
                       out.component == Component::kUserData || out.component == Component::kNumeric ||
                       out.component == Component::kPlatform || out.component == Component::kFramework ||
                       (out.category == Category::kUser && out.component == Component::kGpuMemory);
  out.blame = blames == "host" || (blames.empty() && out.category == Category::kHardware) ? Blame::kHost
              : blames == "few"                                                           ? Blame::kFew
              : blames == "job" || (blames.empty() && program)                            ? Blame::kJob
                                                                                          : Blame::kFew;
  if (const auto sources = texts(table, "source"); !sources.empty()) {
    out.sources = 0;
    for (TextSource s : {TextSource::kLog, TextSource::kKernel, TextSource::kFinding, TextSource::kEvent,
                         TextSource::kMetric, TextSource::kFatal})
      if (std::find(sources.begin(), sources.end(), to_string(s)) != sources.end()) out.sources |= bit(s);
  }
  if (const Value* general = table.find("general"); general && general->boolean) out.says = Says::kFailure;
  if (const std::string says = text(table, "says"); !says.empty())
    for (Says one : {Says::kNotice, Says::kFailure, Says::kOrigin, Says::kErrno, Says::kCause})
      if (says == to_string(one)) out.says = one;
  read_match(table, out);
  check_title(out);
  read_window(table, out);
  read_recovery(table, out);
  if (const Value* when = table.find("when")) out.when = when->function;
  out.hit = texts(table, "examples.hit");
  out.miss = texts(table, "examples.miss");
  return out;
}

Override Reader::override_of(const Value& table, uint32_t line) {
  line_ = line;
  check(override_keys(), table, "");
  Override out;
  out.place = {file_.file, line};
  out.id = text(table, "id");
  out.severity = from_word<Severity>(text(table, "severity"));
  out.action = from_word<ActionKind>(text(table, "action"));
  out.restart = restarts(table);
  if (const Value* enabled = table.find("enabled")) out.enabled = enabled->boolean;
  return out;
}

}  // namespace culprit::rules
