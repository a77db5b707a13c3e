// The command line of a program: verbs, options, help. Only one translation unit includes CLI11, since its
// header takes seconds to compile. A Command owns its verbs and options; pointers to them are valid as long
// as the program's Command. One thread.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace culprit::cli {

// Width in columns: from the environment, else from the terminal, else a default that suits a ticket.
size_t page_width();

class Option {
 public:
  explicit Option(CLI::Option* option) : option_(option) {}
  Option* required();
  Option* one_of(const std::vector<std::string>& words);
  Option* between(unsigned low, unsigned high);
  Option* between(uint64_t low, uint64_t high);
  Option* between(double low, double high);
  // A size with a unit: 1GB, 64MiB.
  Option* as_size();
  Option* show_default();
  // Name of the value in the help.
  Option* type_name(const std::string& name);
  // Each use of the option takes exactly one value.
  Option* one_value();
  Option* excludes(const Option* other);

 private:
  CLI::Option* option_;
};

// Result of parsing the arguments.
struct Parsed {
  enum class Kind : unsigned char { kRun, kHelp, kMissing, kWrong };
  Kind kind = Kind::kRun;
  std::string text;                       // help or version to print; else the error
  std::string verb;                       // program and verb that were parsed, whose help to suggest
  std::string unknown = {};               // the first option unknown to the verb: "--formt"
  std::vector<std::string> options = {};  // the verb's long options
};

class Command {
 public:
  Command(const std::string& about, const std::string& name);
  explicit Command(CLI::App* verb);
  ~Command();
  Command(const Command&) = delete;
  Command& operator=(const Command&) = delete;

  Command* add_subcommand(const std::string& name, const std::string& about);
  // Parses into `value`, which outlives the parsing: a text, a list of texts, a number, or an optional.
  template <class Value>
  Option* add_option(const std::string& names, Value& value, const std::string& about);
  Option* add_flag(const std::string& names, bool& value, const std::string& about);
  void footer(const std::string& text);
  // Title in the help for the verbs added after this call.
  void begin_verbs(const std::string& title);
  void callback(std::function<void()> run);
  void require_subcommand();
  // Omits the option from the help.
  void hide();
  void set_version(const std::string& text);

  std::string name() const;
  bool hidden() const;
  std::string footer_text() const;
  // Whether the option, as "--name" or "-n", takes a value; false for an unknown option.
  bool takes_value(const std::string& option) const;
  const std::deque<Command>& subcommands() const { return verbs_; }
  Parsed parse(int argc, char** argv);
  // Parses words without the program's name.
  Parsed parse(const std::vector<std::string>& words);

 private:
  std::unique_ptr<CLI::App> owned_;
  CLI::App* app_;
  std::deque<Command> verbs_;
  std::deque<Option> options_;
  std::string title_ = "Verbs";
};

}  // namespace culprit::cli
