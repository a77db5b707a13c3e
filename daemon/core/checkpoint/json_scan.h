// Walks a JSON text without keeping it: each scalar with the keys above it. Pure; any thread.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace culprit::checkpoint {

struct JsonScalar {
  enum class Kind : uint8_t { kNull, kBool, kNumber, kText, kEmpty };
  Kind kind = Kind::kNull;  // kEmpty: an object or list, at its beginning
  int64_t number = 0;       // of a whole number
  std::string_view text = {};
};

// The keys from the root on; a member of a list has the key "".
using JsonPath = std::vector<std::string>;

// False if the text is no JSON, or is nested deeper than any of these files; `on` has seen what comes before.
bool scan_json(std::string_view text, const std::function<void(const JsonPath&, const JsonScalar&)>& on);

}  // namespace culprit::checkpoint
