// The one way from a JSON text of others (files, requests, answers, messages of an assistant) to values.
// Values are walked, copied and written recursively, so nesting is bounded before anything is parsed. Pure;
// any thread.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string_view>

namespace culprit {

// Discarded (is_discarded()): no JSON in UTF-8, or nested deeper than limits::kNesting.
nlohmann::json parse_json(std::string_view text);
// The same, with the keys of objects in the order of the text.
nlohmann::ordered_json parse_ordered_json(std::string_view text);

}  // namespace culprit
