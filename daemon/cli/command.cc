#include "cli/command.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <optional>
#include <sstream>

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

// The verb that was parsed last.
const CLI::App& last_verb(const CLI::App& app) {
  const CLI::App* at = &app;
  while (!at->get_subcommands().empty()) at = at->get_subcommands().back();
  return *at;
}

// What was given that no option and no argument takes; an unknown option comes first, since its value may
// be left over too, or a required argument may seem to be missing for it.
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
  return out;
}

}  // namespace

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
}
Command::Command(CLI::App* verb) : app_(verb) {}
Command::~Command() = default;

Command* Command::add_subcommand(const std::string& name, const std::string& about) {
  return &verbs_.emplace_back(app_->add_subcommand(name, about));
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

Option* Command::add_flag(const std::string& names, bool& value, const std::string& about) {
  return &options_.emplace_back(app_->add_flag(names, value, about));
}
void Command::footer(const std::string& text) { app_->footer(text); }
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
    app_->parse(std::vector<std::string>(words.rbegin(), words.rend()));  // the parser takes from the back
  } catch (const CLI::Success& done) {                                    // help or version was requested
    std::ostringstream text;
    app_->exit(done, text, text);
    return {Parsed::Kind::kHelp, text.str(), ""};
  } catch (const CLI::RequiredError& error) {
    return left_over(*app_, {Parsed::Kind::kMissing, error.what(), named_verb(*app_)});
  } catch (const CLI::ExtrasError& error) {
    return left_over(*app_, {Parsed::Kind::kWrong, error.what(), named_verb(*app_)});
  } catch (const CLI::Error& error) {
    return {Parsed::Kind::kWrong, error.what(), named_verb(*app_)};
  }
  return {};
}

}  // namespace culprit::cli
