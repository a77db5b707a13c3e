// The table of options: key, type with its range, default (the value in a fresh Config), help, and whether a
// reload may change the option. All access to options by name uses this table. Constant; any thread. Private
// to the configuration's files.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "app/config/config.h"

namespace culprit::app {

// Returns why a text is invalid, to follow "'key' "; empty: it is valid.
using Check = std::string (*)(std::string_view text);

// Types of values. `of` returns the field in a Config; for listed tables, the field of the last table.
struct TextType {
  std::string& (*of)(Config&);
  Check check;
  const char* name;  // for the reference: "absolute path"
};
struct TextsType {
  std::vector<std::string>& (*of)(Config&);
  Check check;  // check of each element
  const char* name;
  bool or_one = false;  // a string alone is a list of it
};
struct FlagType {
  bool& (*of)(Config&);
};
struct IntegerType {
  int64_t& (*of)(Config&);
  int64_t least, most;
};
struct DurationType {
  TimeNs& (*of)(Config&);
  TimeNs least, most;
};
struct SizeType {
  uint64_t& (*of)(Config&);
  uint64_t least, most;
};
struct WordType {
  void (*set)(Config&, size_t);
  size_t (*get)(const Config&);
  std::span<const std::string_view> words;
};
// A table with arbitrary keys; values are texts, numbers, true or false, stored as text.
struct PairsType {
  std::vector<std::pair<std::string, std::string>>& (*of)(Config&);
};
using OptionType =
    std::variant<TextType, TextsType, FlagType, IntegerType, DurationType, SizeType, WordType, PairsType>;

struct Option {
  std::string_view key;  // "collector.retention.max_size"
  OptionType type;
  bool reloads;
  const char* example;  // in TOML, if the default is empty; else null
  const char* help;     // sentences
  std::string_view table() const { return key.substr(0, key.find('.') == key.npos ? 0 : key.find('.')); }
};
std::span<const Option> config_options();
const Option* find_option(std::string_view key);

// A table of the file, in the order of the documentation; "" is the top level.
struct OptionTable {
  std::string_view name;
  const char* help;
};
std::span<const OptionTable> option_tables();

// Tables that may appear several times.
constexpr std::string_view kLogTable = "log", kDumpTable = "dump", kPluginTable = "plugin",
                           kAlertTable = "alert";
constexpr bool is_listed(std::string_view table) {
  return table == kLogTable || table == kDumpTable || table == kPluginTable || table == kAlertTable;
}
// A Config in which each listed table has one entry, so that all options have a field.
Config config_with_tables();

// The value of an option in TOML.
std::string value_text(const Option& option, Config& config);
bool is_empty(const Option& option, Config& config);
// Example: "duration, 1s to 7d".
std::string type_text(const Option& option);

std::optional<TimeNs> parse_duration(std::string_view text);  // "90s", "1h30m", "500ms"
std::string duration_text(TimeNs ns);                         // the text parses to the same value
std::optional<uint64_t> parse_size(std::string_view text);    // "64MiB", "200GB", "4096B"
std::string size_text(uint64_t bytes);

// Whether "HOST:PORT" is reachable from this machine only.
bool is_loopback(std::string_view address);
// Whether a request to the address leaves the host without TLS and would expose its secrets.
bool goes_in_clear(std::string_view url);

}  // namespace culprit::app
