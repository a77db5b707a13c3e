// A plugin's description (culprit_description) as a value of our own, and the plugin's effective options:
// description plus its table of culpritd.toml. Values; any thread. Error texts are reasons without a
// subject.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"
#include "culprit/plugin.h"

namespace culprit::plughost {

struct OptionSpec {
  std::string name, default_value, about;
  double minimum = 0, maximum = 0;  // equal: no range
  uint32_t type = CULPRIT_OPTION_TEXT;
  bool operator==(const OptionSpec&) const = default;
};

struct Description {
  std::string name, version, vendor, about;
  uint32_t abi_major = 0, abi_minor = 0;
  uint64_t events = 0;   // CULPRIT_BIT of each wanted kind
  uint64_t tick_ms = 0;  // 0: no ticks
  std::vector<OptionSpec> options;
  bool operator==(const Description&) const = default;
};

using OptionValues = std::vector<std::pair<std::string, std::string>>;

// Whether a name is valid for a plugin or an option: 1 to 64 of [a-z0-9_].
bool is_plain_name(std::string_view name);

// Copies and checks. `name`: that of the file.
Result<Description> read_description(const culprit_plugin* plugin, std::string_view name);
// Of one that came over the channel.
Status check_description(const Description& description, std::string_view name);

// All options with their values: the configured ones, else the defaults. An error names the option.
Result<OptionValues> resolve_options(const Description& description, const OptionValues& configured);

}  // namespace culprit::plughost
