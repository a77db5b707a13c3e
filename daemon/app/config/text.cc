#include <fmt/format.h>

#include <algorithm>

#include "app/config/options.h"
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
    "/etc/culprit/culpritd.toml: the configuration of culpritd, with every key. The values are the defaults; "
    "a key after a # has no default and shows an example. The files conf.d/*.toml in the same folder are "
    "read after this one, in order of name. If several files set a key, the last one counts; [[log]], "
    "[[dump]], [[plugin]] and [[alert]] tables add up. `culpritd --check` reports errors; `systemctl reload "
    "culpritd` "
    "applies changes.";

}  // namespace

std::string config_defaults() {
  Config config = config_with_tables();
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
        out += fmt::format("{}{} = {}\n", many ? "#" : "", key, value_text(option, config));
    }
  }
  return out;
}

std::string config_reference() {
  Config config = config_with_tables();
  std::string out =
      "# Keys of culpritd.toml\n\n"
      "Made from the table of options (`daemon/app/config/options.cc`); a test compares. `culpritd "
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
