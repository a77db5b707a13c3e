// Scans a JSON text without storing it: calls back with each scalar and its keys. Pure; any thread.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace culprit::checkpoint {

struct JsonScalar {
  enum class Kind : uint8_t { kNull, kBool, kNumber, kText, kEmpty };
  Kind kind = Kind::kNull;  // kEmpty: the start of an object or list
  int64_t number = 0;       // value of an integer
  std::string_view text = {};
};

// The keys from the root on; the key of a list member is "".
using JsonPath = std::vector<std::string>;

// False if the text is invalid JSON, or nested deeper than any of these files; `on` has received the part
// before.
bool scan_json(std::string_view text, const std::function<void(const JsonPath&, const JsonScalar&)>& on);

}  // namespace culprit::checkpoint
