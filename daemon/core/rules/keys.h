// The keys of a rule's table, in one place: the loader checks with it, and rules/README.md's reference is
// printed from it (culprit rules keys).
#pragma once

#include <span>
#include <string_view>

namespace culprit::rules {

enum class KeyType : uint8_t { kText, kTexts, kWord, kWords, kCount, kDuration, kFlag, kFunction, kTable };

struct Key {
  std::string_view path;  // "window.span"
  KeyType type;
  bool required;
  std::string_view words;     // of kWord and kWords, separated by spaces
  std::string_view fallback;  // what holds where it is absent, for the reference
  std::string_view doc;
};

std::span<const Key> rule_keys();
std::span<const Key> override_keys();
const Key* find_key(std::span<const Key> keys, std::string_view path);
std::string_view type_name(KeyType type);

// The name of the table nearest to a misspelt one, empty where none is near (edit distance of at most a third
// of it, rounded up).
std::string_view nearest(std::string_view name, std::span<const std::string_view> candidates);

}  // namespace culprit::rules
