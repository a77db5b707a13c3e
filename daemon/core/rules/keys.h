// The keys of a rule's table. The loader checks rules against them, and `culprit rules keys` prints the
// reference of rules/README.md from them.
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
  std::string_view fallback;  // the value of an absent key, for the reference
  std::string_view doc;
};

std::span<const Key> rule_keys();
std::span<const Key> override_keys();
const Key* find_key(std::span<const Key> keys, std::string_view path);
std::string_view type_name(KeyType type);

// The known name nearest to a misspelt one; empty if none is near (edit distance of at most a third of its
// length, rounded up).
std::string_view nearest(std::string_view name, std::span<const std::string_view> candidates);

}  // namespace culprit::rules
