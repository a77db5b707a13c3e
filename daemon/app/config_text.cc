#include <fmt/format.h>

#include <algorithm>

#include "app/config_options.h"
#include "base/text.h"

namespace culprit::app {
namespace {

constexpr size_t kColumns = 100;

std::string comment(std::string_view text) {
  std::string out, line = "#";
  for (std::string_view word : split(text, ' ')) {
    if (line.size() + 1 + word.size() > kColumns) {
      out += line + "\n";
      line = "#";
    }
    line += fmt::format(" {}", word);
  }
  return out + line + "\n";
}

constexpr std::string_view kPreface =
    "/etc/culprit/culpritd.toml: the configuration of culpritd, with every key. What stands here is what "
    "holds "
    "without it; a key behind a # has no default, and shows an example. conf.d/*.toml beside this file are "
    "read "
    "after it, in order of name: of a key that stands in several files the last one counts, [[log]] and "
    "[[dump]] tables add up. `culpritd --check` tells what is wrong, `systemctl reload culpritd` takes what "
    "changed.";

}  // namespace

std::string config_defaults() {
  Config config;
  config.logs.emplace_back();  // places for their options to look at
  config.dumps.emplace_back();
  std::string out = comment(kPreface);
  for (const OptionTable& table : option_tables()) {
    const bool many = is_listed(table.name);
    out += "\n";
    if (*table.help) out += comment(table.help);
    if (!table.name.empty())
      out += many ? fmt::format("#[[{}]]\n", table.name) : fmt::format("[{}]\n", table.name);
    for (const Option& option : config_options()) {
      if (option.table() != table.name) continue;
      const std::string_view key = option.key.substr(table.name.empty() ? 0 : table.name.size() + 1);
      out += comment(fmt::format("{} ({}{})", option.help, type_text(option),
                                 option.reloads ? "" : "; a change needs a restart"));
      if (is_empty(option, config))
        out += fmt::format("#{} = {}\n", key, option.example);
      else
        out += fmt::format("{} = {}\n", key, value_text(option, config));
    }
  }
  return out;
}

std::string config_reference() {
  Config config;
  config.logs.emplace_back();
  config.dumps.emplace_back();
  std::string out =
      "# Keys of culpritd.toml\n\n"
      "Made from the table of options (`daemon/app/config_options.cc`); a test compares. `culpritd "
      "--print-defaults`\nprints the same as a file.\n\n"
      "| key | value | default | reload | what it is |\n| --- | --- | --- | --- | --- |\n";
  for (const Option& option : config_options()) {
    const bool none = is_empty(option, config);
    std::string help;
    for (char c : std::string_view(option.help)) help += c == '|' ? "\\|" : std::string(1, c);
    out += fmt::format("| `{}` | {} | {} | {} | {} |\n", option.key, type_text(option),
                       none ? "" : "`" + value_text(option, config) + "`", option.reloads ? "yes" : "restart",
                       help);
  }
  return out;
}

}  // namespace culprit::app
