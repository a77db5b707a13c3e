// Parses untrusted JSON (files, requests, answers, messages of an assistant); all code must parse it here.
// Nesting is bounded before parsing, because values are walked, copied and written recursively. Pure; any
// thread.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string_view>

namespace culprit {

// Returns a discarded value (is_discarded()) for text that is no UTF-8 JSON or is nested deeper than
// limits::kNesting.
nlohmann::json parse_json(std::string_view text);
// The same, with the keys of objects in the order of the text.
nlohmann::ordered_json parse_ordered_json(std::string_view text);

}  // namespace culprit
