#include "plughost/description.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstddef>

#include "base/limits.h"
#include "base/text.h"

namespace culprit::plughost {
namespace {

constexpr size_t kNameMax = 64;
constexpr uint64_t kTickLeastMs = 100;
constexpr uint64_t kTickMostMs = 24ull * 3600 * 1000;

// Sizes in version 1.0 of the interface: a plugin's structs may be larger, never smaller.
#define CULPRIT_SIZE_UP_TO(type, member) (offsetof(type, member) + sizeof(type::member))
constexpr size_t kPluginSize = CULPRIT_SIZE_UP_TO(culprit_plugin, create);
constexpr size_t kDescriptionSize = CULPRIT_SIZE_UP_TO(culprit_description, option_count);
constexpr size_t kOptionSize = CULPRIT_SIZE_UP_TO(culprit_option, reserved);

std::string copy_text(const char* text) {
  return text ? to_utf8(shorten({text, strnlen(text, limits::kMessageBytes)}, limits::kEvidenceText)) : "";
}

template <class T>
bool to_number(const std::string& text, T& out) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  return error == std::errc() && end == text.data() + text.size();
}

// Why the value is invalid for the option; empty: it is valid.
std::string value_fault(const OptionSpec& option, const std::string& value) {
  double number = 0;
  switch (option.type) {
    case CULPRIT_OPTION_BOOLEAN:
      return value == "true" || value == "false" ? "" : fmt::format("'{}' is neither true nor false", value);
    case CULPRIT_OPTION_INTEGER: {
      int64_t integer = 0;
      if (!to_number(value, integer)) return fmt::format("'{}' is no integer", value);
      number = static_cast<double>(integer);
      break;
    }
    case CULPRIT_OPTION_NUMBER:
      if (!to_number(value, number) || !std::isfinite(number)) return fmt::format("'{}' is no number", value);
      break;
    default:
      return value.find('\0') == std::string::npos ? "" : "the text has a NUL";
  }
  if (option.minimum == option.maximum || (number >= option.minimum && number <= option.maximum)) return "";
  return fmt::format("{} is not between {} and {}", value, option.minimum, option.maximum);
}

Status check_option(const OptionSpec& option) {
  if (!is_plain_name(option.name))
    return fail(ErrorCode::kInvalid,
                fmt::format("the option's name '{}' is not 1 to 64 of [a-z0-9_]", option.name));
  if (option.type > CULPRIT_OPTION_BOOLEAN)
    return fail(ErrorCode::kInvalid, fmt::format("option {}: type {} is unknown", option.name, option.type));
  if (!(option.minimum <= option.maximum))  // also with NaN
    return fail(ErrorCode::kInvalid, fmt::format("option {}: its minimum is above its maximum", option.name));
  if (const std::string fault = value_fault(option, option.default_value); !fault.empty())
    return fail(ErrorCode::kInvalid, fmt::format("option {}: the default {}", option.name, fault));
  return {};
}

}  // namespace

bool is_plain_name(std::string_view name) {
  return !name.empty() && name.size() <= kNameMax && std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
  });
}

Result<Description> read_description(const culprit_plugin* plugin, std::string_view name) {
  if (!plugin) return fail(ErrorCode::kInvalid, "culprit_plugin_entry_v1 returns NULL");
  if (plugin->size < kPluginSize || !plugin->describe || !plugin->create)
    return fail(ErrorCode::kInvalid, "culprit_plugin lacks describe or create");
  const culprit_description* from = plugin->describe();
  if (!from) return fail(ErrorCode::kInvalid, "describe returns NULL");
  if (from->size < kDescriptionSize)
    return fail(ErrorCode::kInvalid, fmt::format("culprit_description has {} bytes, version 1.0 has {}",
                                                 from->size, kDescriptionSize));
  if (from->option_count > limits::kPluginOptions)
    return fail(ErrorCode::kInvalid, fmt::format("it has {} options, at most {} are allowed",
                                                 from->option_count, limits::kPluginOptions));
  if (from->option_count > 0 && !from->options) return fail(ErrorCode::kInvalid, "its options are NULL");
  Description out{copy_text(from->name),
                  copy_text(from->version),
                  copy_text(from->vendor),
                  copy_text(from->about),
                  from->abi_major,
                  from->abi_minor,
                  from->events,
                  from->tick_ms,
                  {}};
  for (uint64_t i = 0; i < from->option_count; ++i) {
    const culprit_option* option = from->options[i];
    if (!option || option->size < kOptionSize)
      return fail(ErrorCode::kInvalid, fmt::format("culprit_option {} is NULL or too small", i));
    out.options.push_back({copy_text(option->name), copy_text(option->default_value),
                           copy_text(option->about), option->minimum, option->maximum, option->type});
  }
  if (const Status sound = check_description(out, name); !sound) return tl::unexpected(sound.error());
  return out;
}

Status check_description(const Description& of, std::string_view name) {
  if (of.abi_major != CULPRIT_ABI_MAJOR)
    return fail(ErrorCode::kInvalid, fmt::format("it is built for version {}.{} of the interface, not {}.x",
                                                 of.abi_major, of.abi_minor, CULPRIT_ABI_MAJOR));
  if (!is_plain_name(of.name))
    return fail(ErrorCode::kInvalid, fmt::format("the name '{}' is not 1 to 64 of [a-z0-9_]", of.name));
  if (of.name != name)
    return fail(ErrorCode::kInvalid,
                fmt::format("its name is {}, so the file must be {}.so", of.name, of.name));
  for (const std::string* text : {&of.version, &of.vendor, &of.about})
    if (text->size() > limits::kEvidenceText)
      return fail(ErrorCode::kInvalid, "its version, vendor or about is too long");
  if (of.tick_ms != 0 && (of.tick_ms < kTickLeastMs || of.tick_ms > kTickMostMs))
    return fail(ErrorCode::kInvalid,
                fmt::format("tick_ms is {}, neither 0 nor {} to {}", of.tick_ms, kTickLeastMs, kTickMostMs));
  if (of.tick_ms == 0 && of.events == 0)
    return fail(ErrorCode::kInvalid, "it wants neither events nor ticks, so it would never be called");
  for (size_t i = 0; i < of.options.size(); ++i) {
    if (const Status sound = check_option(of.options[i]); !sound) return sound;
    for (size_t j = 0; j < i; ++j)
      if (of.options[j].name == of.options[i].name)
        return fail(ErrorCode::kInvalid, fmt::format("option {} is there twice", of.options[i].name));
  }
  return {};
}

Result<OptionValues> resolve_options(const Description& description, const OptionValues& configured) {
  OptionValues out;
  for (const OptionSpec& option : description.options) out.emplace_back(option.name, option.default_value);
  for (const auto& [name, value] : configured) {
    const auto at = std::find_if(description.options.begin(), description.options.end(),
                                 [&, &wanted = name](const OptionSpec& o) { return o.name == wanted; });
    if (at == description.options.end()) {
      std::string known;
      for (const OptionSpec& option : description.options) known += (known.empty() ? "" : ", ") + option.name;
      return fail(ErrorCode::kInvalid,
                  fmt::format("there is no option '{}'; it has {}", name, known.empty() ? "none" : known));
    }
    if (const std::string fault = value_fault(*at, value); !fault.empty())
      return fail(ErrorCode::kInvalid, fmt::format("option {}: {}", name, fault));
    out[static_cast<size_t>(at - description.options.begin())].second = value;
  }
  return out;
}

}  // namespace culprit::plughost
