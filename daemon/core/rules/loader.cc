#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/hash.h"
#include "base/text.h"
#include "core/rules/library.h"
#include "core/rules/reader.h"
#include "core/rules/ruleset.h"
#include "core/rules/source_text.h"

namespace culprit::rules {
namespace {

constexpr size_t kFileBytes = 4 << 20;
constexpr size_t kRules = 20'000;
// Units of LoadWork, measured: see tests/unit/core/rules/work_test.cc.
constexpr uint64_t kParseAByte = 20;    // per byte of a file
constexpr uint64_t kARule = 20'000;     // per rule: reading its table
constexpr uint64_t kALiteral = 50'000;  // per literal: compiling its search
constexpr uint64_t kAnOverride = 2'000;

// These words must never change: hosts with different releases identify a rule by its hash. "false" and
// "true" are the values of the former flag `general`.
std::string_view in_hash(Says says) {
  if (says == Says::kCause) return "false";
  return says == Says::kFailure ? "true" : to_string(says);
}

// Hashes everything that decides when a rule fires. `text_hash`: hash of the file's text.
uint64_t hash_of(const Rule& rule, uint64_t text_hash) {
  std::string all = fmt::format("{}\n{}\n{}\n{}\n{}\n", rule.id, rule.sources, to_string(rule.role),
                                in_hash(rule.says), rule.scan_all);
  for (const auto* patterns : {&rule.any, &rule.except})
    for (const Pattern& p : *patterns) all += fmt::format("{} {}\n", p.regex.size(), p.regex);
  all += "end\n";
  if (rule.window) {
    const Window& w = *rule.window;
    all += fmt::format("{} {} {} {} {} {} {}\n", to_string(w.by), w.span_ns, w.at_least, w.distinct, w.after,
                       w.unless, w.same);
    if (!w.with.empty()) all += fmt::format("with {}\n", w.with);
  }
  if (const auto& r = rule.recovery) all += fmt::format("over {} {} {}\n", r->rule, r->same, r->within_ns);
  if (rule.when) all += fmt::format("{:016x}", text_hash);  // a function's text is part of its file
  return hash64(all);
}

}  // namespace

class Loader {
 public:
  Loader(std::span<const RuleText> files, LoadOptions options)
      : files_(files),
        proven_(std::min(options.proven_files, files.size())),
        work_(options.work, std::move(options.stop)),
        errors_(files, work_),
        set_(new Ruleset) {}

  tl::expected<std::shared_ptr<Ruleset>, std::vector<RuleError>> load() {
    for (const RuleText& file : files_)
      if (!work_.ended()) read(file);
    set_->files_ = files_.size();
    if (!work_.ended()) connect();
    if (!work_.ended() && compile()) prove(*set_, files_.subspan(proven_), work_, errors_);
    if (errors_.size() == 0 && switch_off_open()) compile();
    for (const auto& sandbox : set_->sandboxes_) sandbox->count_into(nullptr);
    if (errors_.size() == 0) return set_;
    return tl::unexpected(errors_.take());
  }

 private:
  // The origin of a rule.
  struct Origin {
    const RuleText& file;
    uint64_t text_hash;
    uint32_t sandbox;
  };

  void connect() {
    check_duplicates();
    std::sort(set_->rules_.begin(), set_->rules_.end(),
              [](const Rule& a, const Rule& b) { return a.id < b.id; });
    check_references();
    apply_overrides();
    if (work_.ended()) add_end(files_.back(), 0);
  }

  bool compile() {
    for (const Rule& rule : set_->rules_)
      for (const Pattern& p : rule.any)
        if (!work_.spend(p.literals.size() * kALiteral))
          return add_end(text_of(rule.place), rule.place.line), false;
    auto matcher = Matcher::create(set_->rules_);
    if (matcher)
      set_->matcher_ = *matcher;
    else
      errors_.add({files_.empty() ? "" : files_[0].file, 0, 0, 0, "bad-pattern", matcher.error().text, ""});
    return matcher.has_value();
  }

  void add_error(const RuleText& file, uint32_t line, std::string_view code, std::string what) {
    if (errors_.wants(file.file, line)) push_error(file, line, code, std::move(what));
  }

  // The only error of a load that ended early.
  void add_end(const RuleText& file, uint32_t line) {
    push_error(file, line, work_.code(), std::string(work_.why()));
  }

  void push_error(const RuleText& file, uint32_t line, std::string_view code, std::string what) {
    errors_.add({file.file, line, line ? 1u : 0u, 0, std::string(code), std::move(what),
                 line ? line_at(file.text, line) : std::string()});
  }

  void read(const RuleText& file) {
    if (file.text.size() > kFileBytes)
      return add_error(file, 0, "limit", fmt::format("a rule file has at most {}", format_bytes(kFileBytes)));
    auto sandbox = std::make_unique<Sandbox>();
    sandbox->count_into(&work_);
    const Origin from{file, hash64(file.text), static_cast<uint32_t>(set_->sandboxes_.size())};
    size_t reported = 0;
    bool full = false;
    const auto declare = [&](std::string_view verb, Value table, uint32_t line) -> std::string {
      ++reported;
      full = true;
      if (errors_.full(file.file)) return "more errors than are reported";
      if (set_->rules_.size() >= kRules) return fmt::format("more than {} rules", kRules);
      full = false;
      if (verb == "override" && work_.spend(kAnOverride))
        overrides_.push_back(Reader(file, work_, errors_).override_of(table, line));
      else if (verb == "rule" && work_.spend(kARule))
        take(from, table, line);
      return work_.ended() ? std::string(work_.why()) : "";
    };
    work_.spend(file.text.size() * kParseAByte);
    const auto done = sandbox->run(without_mark(file.text), declare);
    if (work_.ended()) return add_end(file, done ? 0 : done.error().line);
    if (errors_.full(file.file)) return;
    if (!done) {
      const ScriptError& e = done.error();
      add_error(file, e.line,
                full                          ? "limit"
                : e.overrun != Overrun::kNone ? "over-budget"
                : e.syntax                    ? "syntax"
                                              : "script",
                e.text);
    } else if (reported == 0) {
      add_error(file, 0, "no-rule", "holds no rule");
    }
    // Only files with functions keep their state.
    if (sandbox->has_functions()) set_->sandboxes_.push_back(std::move(sandbox));
  }

  void take(const Origin& from, const Value& table, uint32_t line) {
    const size_t before = errors_.size();
    Rule rule = Reader(from.file, work_, errors_).rule(table, line);
    rule.sandbox = from.sandbox;
    if (!rule.id.empty()) places_[rule.id].push_back(rule.place);
    if (errors_.size() > before) return;
    rule.text_hash = hash_of(rule, from.text_hash);
    set_->rules_.push_back(std::move(rule));
  }

  const RuleText& text_of(const RulePlace& place) const {
    return *std::find_if(files_.begin(), files_.end(),
                         [&](const RuleText& f) { return f.file == place.file; });
  }

  void check_duplicates() {
    for (const auto& [id, places] : places_)
      for (size_t i = 1; i < places.size(); ++i)
        add_error(text_of(places[i]), places[i].line, "duplicate-id",
                  fmt::format("id '{}' stands already at {}:{}", id, places[0].file, places[0].line));
    std::erase_if(set_->rules_, [&](const Rule& r) { return places_[r.id].size() > 1; });
  }

  void check_references() {
    for (const Rule& rule : set_->rules_) {
      if (rule.window) {
        check_reference(rule, "window.after", rule.window->after);
        check_reference(rule, "window.unless", rule.window->unless);
        check_reference(rule, "window.with", rule.window->with);
      }
      if (rule.recovery) check_reference(rule, "recovery.rule", rule.recovery->rule);
    }
  }
  void check_reference(const Rule& rule, std::string_view key, const std::string& other) {
    if (other.empty() || places_.contains(other) || !errors_.wants(rule.place.file, rule.place.line)) return;
    RuleError e = error_at(files_, rule, key, true);
    e.code = "unknown-rule";
    e.what = fmt::format("{} names '{}', which is no rule", key, other);
    errors_.add(std::move(e));
  }

  void apply_overrides() {
    for (const Override& o : overrides_) {
      const auto index = set_->find(o.id);
      if (!index) {
        if (!o.id.empty() && !places_.contains(o.id))
          add_error(text_of(o.place), o.place.line, "unknown-rule",
                    fmt::format("override names '{}', which is no rule", o.id));
        continue;
      }
      Rule& rule = set_->rules_[*index];
      rule.overridden.push_back(
          {o.place, rule.severity, rule.action, rule.restart, rule.restart_after_steps, rule.enabled});
      rule.severity = o.severity.value_or(rule.severity);
      rule.action = o.action.value_or(rule.action);
      if (o.restart) rule.restart = o.restart->first, rule.restart_after_steps = o.restart->after_steps;
      rule.enabled = rule.enabled && o.enabled;
    }
  }

  // Call after the proof, so that the examples of drafts are tested too. Returns whether a rule has a text to
  // fill in.
  bool switch_off_open() {
    std::set<std::string_view> names;
    for (const RuleText& file : files_.subspan(proven_)) names.insert(file.file);
    for (Rule& rule : set_->rules_) {
      if (!names.contains(rule.place.file)) continue;
      const size_t before = set_->left_open_.size();
      look_at(rule, "title", rule.title);
      look_at(rule, "remedy", rule.remedy);
      for (const std::string& text : rule.hit) look_at(rule, "examples.hit", text);
      for (const std::string& text : rule.miss) look_at(rule, "examples.miss", text);
      if (set_->left_open_.size() > before) rule.enabled = false;
    }
    return !set_->left_open_.empty();
  }

  void look_at(const Rule& rule, std::string_view key, const std::string& text) {
    const size_t at = text.find(kFillIn);
    if (at == text.npos) return;
    RuleError error = error_at(files_, rule, key, true);
    error.code = "left-open";
    const std::string_view wanted = trim(std::string_view(text).substr(at + kFillIn.size()));
    error.what = fmt::format("rule {}: its {} is left open: write {} in place of the text from {} on",
                             rule.id, key, shorten(wanted.substr(0, wanted.find_first_of(".")), 80), kFillIn);
    set_->left_open_.push_back({rule.id, std::string(key), std::move(error)});
  }

  std::span<const RuleText> files_;
  size_t proven_;  // files at the front
  LoadWork work_;
  ErrorList errors_;
  std::shared_ptr<Ruleset> set_;
  std::vector<Override> overrides_;
  std::map<std::string, std::vector<RulePlace>> places_;
};

tl::expected<std::shared_ptr<Ruleset>, std::vector<RuleError>> Ruleset::load(std::span<const RuleText> files,
                                                                             LoadOptions options) {
  return Loader(files, std::move(options)).load();
}

std::shared_ptr<Ruleset> Ruleset::shipped() {
  std::vector<RuleText> files;
  for (const LibraryFile& f : library())
    files.push_back({fmt::format("library:{}", f.name), std::string(f.text)});
  auto set = load(files, {files.size()});
  return set ? std::move(*set) : nullptr;
}

std::optional<uint32_t> Ruleset::find(std::string_view id) const {
  const auto it = std::lower_bound(rules_.begin(), rules_.end(), id,
                                   [](const Rule& rule, std::string_view name) { return rule.id < name; });
  if (it == rules_.end() || it->id != id) return std::nullopt;
  return static_cast<uint32_t>(it - rules_.begin());
}

std::vector<RuleError> unstated(const Ruleset& ruleset, std::span<const RuleText> files) {
  std::set<std::string_view> names;
  for (const RuleText& file : files) names.insert(file.file);
  std::vector<RuleError> out;
  for (const Rule& rule : ruleset.rules()) {
    if (rule.restart_stated || !names.contains(rule.place.file)) continue;
    RuleError& e = out.emplace_back(error_at(files, rule, "id", false));
    e.code = "no-restart";
    e.what = fmt::format(
        "rule {} is one of the library and does not say what must differ for the next attempt: "
        "restart is missing",
        rule.id);
  }
  return out;
}

RuleError error_at(std::span<const RuleText> files, const Rule& rule, std::string_view path, bool value) {
  RuleError e;
  e.file = rule.place.file;
  e.line = rule.place.line;
  e.column = 1;
  for (const RuleText& file : files) {
    if (file.file != rule.place.file) continue;
    if (const auto place = find_field(file.text, rule.place.line, path, value))
      e.line = place->line, e.column = place->column, e.width = place->width;
    e.source = line_at(file.text, e.line);
  }
  return e;
}

RuleError error_on(std::span<const RuleText> files, const Rule& rule, uint32_t line) {
  RuleError e;
  e.file = rule.place.file;
  e.line = line;
  e.column = 1;
  for (const RuleText& file : files)
    if (file.file == e.file) e.source = line_at(file.text, line);
  return e;
}

std::string format_error(const RuleError& error) {
  std::string out = error.file;
  if (error.line) out += fmt::format(":{}:{}", error.line, std::max(error.column, 1u));
  out += fmt::format(": error[{}]: {}\n", error.code, to_terminal(error.what));
  if (error.line == 0 || error.source.empty()) return out;
  // One column per character, so that the caret is below the right one.
  std::string source, blank;
  size_t width = 0;
  for (size_t i = 0; i < error.source.size(); ++i) {
    const auto c = static_cast<unsigned char>(error.source[i]);
    source += c == '\t' || (c >= ' ' && c != 0x7f) ? error.source[i] : ' ';
    if ((c & 0xc0) == 0x80) continue;  // continuation byte of a character
    // Keeps tabs before the caret, so that it is aligned at any tab width.
    if (i + 1 < error.column)
      blank += c == '\t' ? '\t' : ' ';
    else if (i + 1 < error.column + error.width)
      ++width;
  }
  out += fmt::format("{:>6} | {}\n", error.line, to_terminal(source));
  return width == 0 ? out : out + fmt::format("       | {}^{}\n", blank, std::string(width - 1, '~'));
}

}  // namespace culprit::rules
