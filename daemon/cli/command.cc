#include "cli/command.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <optional>
#include <sstream>

#include "base/text.h"
#include "cli/help_page.h"

namespace culprit::cli {
namespace {

std::string named_verb(const CLI::App& app) {
  std::string out = app.get_name();
  for (const CLI::App* at = &app; !at->get_subcommands().empty();) {
    at = at->get_subcommands().back();
    out += " " + at->get_name();
  }
  return out;
}

// The innermost parsed verb.
const CLI::App& last_verb(const CLI::App& app) {
  const CLI::App* at = &app;
  while (!at->get_subcommands().empty()) at = at->get_subcommands().back();
  return *at;
}

// An option of a verb in front of the verb: "--retries" belongs behind `culprit run`.
std::string verbs_with(const CLI::App& app, const std::string& option) {
  constexpr size_t kNamed = 3;  // more verbs: the help says which
  std::vector<std::string> verbs;
  if (!app.get_subcommands().empty()) return "";
  for (const CLI::App* verb : app.get_subcommands([](const CLI::App*) { return true; }))
    if (!verb->get_group().empty() && verb->get_option_no_throw(option))
      verbs.push_back(fmt::format("`{} {}`", app.get_name(), verb->get_name()));
  if (verbs.empty() || verbs.size() > kNamed) return "";
  return "; it is an option of " + CLI::detail::join(verbs, ", ");
}

// The error for arguments that no option or argument accepts. An unknown option comes first: its value may be
// left over too, or make a required argument seem missing.
Parsed left_over(const CLI::App& app, Parsed otherwise) {
  const std::vector<std::string> all = app.remaining(true);
  if (all.empty()) return otherwise;
  const auto option = std::find_if(all.begin(), all.end(), [](const std::string& word) {
    return word.size() > 1 && word[0] == '-' && word != "--";
  });
  Parsed out{Parsed::Kind::kWrong, "", named_verb(app)};
  if (option != all.end()) {
    out.unknown = option->substr(0, option->find('='));
    for (const CLI::Option* one : last_verb(app).get_options())
      for (const std::string& name : one->get_lnames()) out.options.push_back("--" + name);
  } else if (otherwise.kind == Parsed::Kind::kMissing) {
    return otherwise;
  }
  out.text = (option != all.end() ? out.unknown : all.front()) + ": no such option or argument";
  if (option != all.end()) out.text += verbs_with(app, out.unknown);
  return out;
}

// "--retries: must be a number, not 'x'".
std::string conversion_text(const std::string& what) {
  constexpr std::string_view kBefore = "Could not convert: ";
  const size_t equals = what.find(" = ");
  if (!what.starts_with(kBefore) || equals == what.npos) return what;
  const std::string name = what.substr(kBefore.size(), equals - kBefore.size());
  const std::string value = what.substr(equals + 3);
  char* end = nullptr;
  const double number = std::strtod(value.c_str(), &end);
  const bool is_number = !value.empty() && *end == '\0';
  const char* wanted = !is_number   ? "a number"
                       : number < 0 ? "a whole number, 0 or more"
                                    : "a whole number in its range";
  return fmt::format("{}: must be {}, not {}", name, wanted, fmt::format("'{}'", shorten(value, 80)));
}

// "--retries: N is missing behind it".
std::string mismatch_text(const std::string& what) {
  constexpr std::string_view kOne = ": 1 required ", kAfter = " missing";
  const size_t at = what.find(kOne);
  if (at == what.npos || !what.ends_with(kAfter)) return what;
  const size_t from = at + kOne.size();
  return fmt::format("{}: needs a value, {}", what.substr(0, at),
                     what.substr(from, what.size() - kAfter.size() - from));
}

// The help's description of an option's value.
struct Value {
  std::string name;   // "text|json", "N"
  std::string range;  // "1 to 8", "one of host, job"; empty: any
};

constexpr size_t kChoicesMost = 24;  // longer lists of words are put into the text

// The parser writes "TEXT:{text,json}", "UINT:UINT in [1 - 8]" and "UINT:SIZE [b, kb(=1000b), ...]".
Value value_of(const CLI::Option& option) {
  Value out;
  const std::string type = option.get_type_name();
  const size_t colon = std::min(type.find(':'), type.size());
  out.name = type.substr(0, colon);
  if (out.name == "UINT" || out.name == "INT" || out.name == "FLOAT") out.name = "N";
  const std::string rest = type.substr(colon);
  if (const size_t at = rest.find('{'); at != rest.npos) {
    std::string words = rest.substr(at + 1, rest.find('}') - at - 1);
    if (words.size() <= kChoicesMost) {
      std::replace(words.begin(), words.end(), ',', '|');
      out.name = words;
    } else {
      out.range = "one of " + CLI::detail::find_and_replace(words, ",", ", ");
    }
  } else if (rest.starts_with(":SIZE")) {
    out.name = "SIZE";
  } else if (const size_t in = rest.find(" in ["); in != rest.npos) {
    out.range = rest.substr(in + 5, rest.find(']', in) - in - 5);
    if (const size_t dash = out.range.find(" - "); dash != out.range.npos) out.range.replace(dash, 3, " to ");
  }
  return out;
}

// "-f, --format".
std::string names_of(const CLI::Option& option) {
  if (option.get_positional()) return option.get_name(true, false);
  std::string out;
  for (const std::string& name : option.get_snames()) out += (out.empty() ? "-" : ", -") + name;
  for (const std::string& name : option.get_lnames()) out += (out.empty() ? "--" : ", --") + name;
  return out;
}

HelpRow row_of(const CLI::Option& option) {
  const bool takes = option.get_type_size() != 0;
  const Value value = takes ? value_of(option) : Value();
  std::vector<std::string> reported;
  if (!value.range.empty()) reported.push_back(value.range);
  if (takes && !option.get_default_str().empty()) reported.push_back("default: " + option.get_default_str());
  if (option.get_required() && !option.get_positional()) reported.emplace_back("required");
  if (!option.get_excludes().empty()) {
    std::vector<std::string> others;
    for (const CLI::Option* other : option.get_excludes()) others.push_back(other->get_name());
    std::sort(others.begin(), others.end());
    reported.push_back("not with " + CLI::detail::join(others, ", "));
  }
  const bool many = option.get_expected_max() == CLI::detail::expected_max_vector_size;
  HelpRow out{names_of(option), option.get_description()};
  if (option.get_positional())
    out.name += many ? "..." : "";
  else if (takes)
    out.name += " " + value.name + (many ? "..." : "");
  if (!reported.empty()) out.text += " [" + CLI::detail::join(reported, "; ") + "]";
  return out;
}

class HelpFormatter : public CLI::Formatter {
 public:
  std::string make_help(const CLI::App* app, std::string name, CLI::AppFormatMode) const override {
    HelpPage page{app->get_description(), usage_of(*app, std::move(name)), {}, app->get_footer()};
    HelpSection arguments{"Arguments", {}}, options{"Options", {}};
    for (const CLI::Option* option : app->get_options())
      if (!option->get_group().empty())
        (option->get_positional() ? arguments : options).rows.push_back(row_of(*option));
    std::vector<HelpSection> verbs;
    for (const CLI::App* verb : app->get_subcommands([](const CLI::App*) { return true; })) {
      if (verb->get_group().empty()) continue;
      if (verbs.empty() || verbs.back().title != verb->get_group()) verbs.push_back({verb->get_group(), {}});
      verbs.back().rows.push_back({verb->get_name(), verb->get_description()});
    }
    if (!arguments.rows.empty()) page.sections.push_back(std::move(arguments));
    for (HelpSection& section : verbs) page.sections.push_back(std::move(section));
    page.sections.push_back(std::move(options));
    return help_text(page, page_width());
  }

 private:
  static std::string usage_of(const CLI::App& app, std::string name) {
    for (const CLI::App* at = app.get_parent(); at && name.empty(); at = at->get_parent())
      name = at->get_name() + " " + app.get_name();
    if (name.empty()) name = app.get_name();
    std::string arguments;
    for (const CLI::Option* option : app.get_options()) {
      if (!option->get_positional() || option->get_group().empty()) continue;
      std::string one = option->get_name(true, false);
      if (option->get_expected_max() == CLI::detail::expected_max_vector_size) one += "...";
      arguments += option->get_required() ? " " + one : " [" + one + "]";
    }
    const bool verbs = !app.get_subcommands([](const CLI::App*) { return true; }).empty();
    return name + (verbs ? " VERB" : " [OPTIONS]") + arguments;
  }
};

}  // namespace

size_t page_width() {
  const char* columns = std::getenv("COLUMNS");  // shells set it but do not export it
  size_t width = columns ? std::strtoul(columns, nullptr, 10) : 0;
  struct winsize window = {};
  if (width == 0 && ioctl(STDOUT_FILENO, TIOCGWINSZ, &window) == 0) width = window.ws_col;
  return width > 0 && width <= 500 ? width : 100;
}

Option* Option::required() {
  option_->required();
  return this;
}
Option* Option::one_of(const std::vector<std::string>& words) {
  option_->check(CLI::IsMember(words));
  return this;
}
Option* Option::between(unsigned low, unsigned high) {
  option_->check(CLI::Range(low, high));
  return this;
}
Option* Option::between(uint64_t low, uint64_t high) {
  option_->check(CLI::Range(low, high));
  return this;
}
Option* Option::between(double low, double high) {
  option_->check(CLI::Range(low, high));
  // NaN is neither below nor above.
  option_->check([](const std::string& text) {
    return std::isnan(std::strtod(text.c_str(), nullptr)) ? text + " is no number" : std::string();
  });
  return this;
}
Option* Option::as_size() {
  option_->transform(CLI::AsSizeValue(true));
  return this;
}
Option* Option::show_default() {
  option_->capture_default_str();
  return this;
}
Option* Option::type_name(const std::string& name) {
  option_->type_name(name);
  return this;
}
Option* Option::one_value() {
  option_->allow_extra_args(false);
  return this;
}
Option* Option::excludes(const Option* other) {
  option_->excludes(other->option_);
  return this;
}

Command::Command(const std::string& about, const std::string& name)
    : owned_(std::make_unique<CLI::App>(about, name)), app_(owned_.get()) {
  app_->set_help_flag("--help,-h", "Print this help and exit");
  app_->formatter(std::make_shared<HelpFormatter>());
}
Command::Command(CLI::App* verb) : app_(verb) {}
Command::~Command() = default;

Command* Command::add_subcommand(const std::string& name, const std::string& about) {
  CLI::App* verb = app_->add_subcommand(name, about);
  if (!hidden()) verb->group(title_);  // verbs below a hidden verb are hidden too
  return &verbs_.emplace_back(verb);
}

template <class Value>
Option* Command::add_option(const std::string& names, Value& value, const std::string& about) {
  return &options_.emplace_back(app_->add_option(names, value, about));
}
template Option* Command::add_option(const std::string&, std::string&, const std::string&);
template Option* Command::add_option(const std::string&, std::vector<std::string>&, const std::string&);
template Option* Command::add_option(const std::string&, std::optional<std::string>&, const std::string&);
template Option* Command::add_option(const std::string&, std::optional<uint32_t>&, const std::string&);
template Option* Command::add_option(const std::string&, std::optional<uint64_t>&, const std::string&);
template Option* Command::add_option(const std::string&, int&, const std::string&);
template Option* Command::add_option(const std::string&, uint32_t&, const std::string&);
template Option* Command::add_option(const std::string&, uint64_t&, const std::string&);
template Option* Command::add_option(const std::string&, int64_t&, const std::string&);
template Option* Command::add_option(const std::string&, double&, const std::string&);
template Option* Command::add_option(const std::string&, std::optional<double>&, const std::string&);

Option* Command::add_flag(const std::string& names, bool& value, const std::string& about) {
  return &options_.emplace_back(app_->add_flag(names, value, about));
}
void Command::footer(const std::string& text) { app_->footer(text); }
void Command::begin_verbs(const std::string& title) { title_ = title; }
void Command::callback(std::function<void()> run) { app_->callback(std::move(run)); }
void Command::require_subcommand() { app_->require_subcommand(1); }
void Command::hide() { app_->group(""); }
void Command::set_version(const std::string& text) {
  app_->set_version_flag("--version,-V", text, "Print the version and exit");
}
std::string Command::name() const { return app_->get_name(); }
bool Command::hidden() const { return app_->get_group().empty(); }
bool Command::takes_value(const std::string& option) const {
  const CLI::Option* found = app_->get_option_no_throw(option);
  return found && found->get_items_expected_max() > 0;
}
std::string Command::footer_text() const { return app_->get_footer(); }

Parsed Command::parse(int argc, char** argv) {
  return parse(std::vector<std::string>(argv + std::min(argc, 1), argv + argc));
}

Parsed Command::parse(const std::vector<std::string>& words) {
  try {
    // the parser takes words from the back
    app_->parse(std::vector<std::string>(words.rbegin(), words.rend()));
  } catch (const CLI::Success& done) {  // help or version was requested
    std::ostringstream text;
    app_->exit(done, text, text);
    return {Parsed::Kind::kHelp, text.str(), ""};
  } catch (const CLI::RequiredError& error) {
    return left_over(*app_, {Parsed::Kind::kMissing, error.what(), named_verb(*app_)});
  } catch (const CLI::ExtrasError& error) {
    return left_over(*app_, {Parsed::Kind::kWrong, error.what(), named_verb(*app_)});
  } catch (const CLI::ConversionError& error) {
    return {Parsed::Kind::kWrong, conversion_text(error.what()), named_verb(*app_)};
  } catch (const CLI::ArgumentMismatch& error) {
    return {Parsed::Kind::kWrong, mismatch_text(error.what()), named_verb(*app_)};
  } catch (const CLI::Error& error) {
    return {Parsed::Kind::kWrong, error.what(), named_verb(*app_)};
  }
  return {};
}

}  // namespace culprit::cli
