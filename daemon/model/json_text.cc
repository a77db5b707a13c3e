#include "model/json_text.h"

#include <nlohmann/json.hpp>

#include "base/limits.h"

namespace culprit {
namespace {

bool nested_too_deeply(std::string_view text) {
  size_t depth = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '"') {
      for (++i; i < text.size() && text[i] != '"'; ++i)
        if (text[i] == '\\') ++i;
    } else if (c == '{' || c == '[') {
      if (++depth > limits::kNesting) return true;
    } else if ((c == '}' || c == ']') && depth > 0) {
      --depth;
    }
  }
  return false;
}

template <class Json>
Json parse_bounded(std::string_view text) {
  if (nested_too_deeply(text)) return Json(Json::value_t::discarded);
  return Json::parse(text, nullptr, false);
}

}  // namespace

nlohmann::json parse_json(std::string_view text) { return parse_bounded<nlohmann::json>(text); }
nlohmann::ordered_json parse_ordered_json(std::string_view text) {
  return parse_bounded<nlohmann::ordered_json>(text);
}

}  // namespace culprit
