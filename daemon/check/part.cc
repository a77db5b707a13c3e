#include "check/part.h"

#include <fmt/format.h>
#include <simdjson.h>

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "model/json_writer.h"

namespace culprit::check {
namespace {

constexpr std::string_view kAnswers[] = {"passed", "failed", "no answer"};
constexpr size_t kNameBytes = 64, kUnitBytes = 16;

std::string text_of(simdjson::dom::object object, const char* key, size_t most) {
  std::string_view out;
  if (object.at_key(key).get(out) != simdjson::SUCCESS) return {};
  return shorten(to_terminal(out), most);
}

double number_of(simdjson::dom::object object, const char* key) {
  double out = 0;
  return object.at_key(key).get(out) == simdjson::SUCCESS && std::isfinite(out) ? out : 0;
}

}  // namespace

std::string_view to_string(Answer answer) { return kAnswers[static_cast<size_t>(answer)]; }

std::string to_line(const Part& part) {
  JsonWriter w;
  w.object([&] {
    w.field("part", shorten(part.name, kNameBytes));
    w.field("answer", to_string(part.answer));
    w.field("text", shorten(part.text, kPartTextBytes));
    if (!part.unit.empty()) {
      w.field("figure", part.figure);
      w.field("unit", part.unit);
    }
    w.field("took_s", static_cast<double>(part.took_ns) / kNsPerSecond);
  });
  return w.finish();
}

Result<Part> parse_part(std::string_view line) {
  simdjson::dom::parser parser;
  simdjson::dom::object object;
  if (parser.parse(simdjson::padded_string(line)).get(object) != simdjson::SUCCESS)
    return fail(ErrorCode::kInvalid, "a part of a check is no JSON object");
  Part out;
  out.name = text_of(object, "part", kNameBytes);
  out.text = text_of(object, "text", kPartTextBytes);
  out.unit = text_of(object, "unit", kUnitBytes);
  out.figure = number_of(object, "figure");
  out.took_ns = static_cast<TimeNs>(std::clamp(number_of(object, "took_s"), 0.0, 1e6) * kNsPerSecond);
  const std::string answer = text_of(object, "answer", kNameBytes);
  const auto at = std::ranges::find(kAnswers, answer);
  if (out.name.empty() || at == std::end(kAnswers))
    return fail(ErrorCode::kInvalid, "a part of a check has a name and an answer");
  out.answer = static_cast<Answer>(at - std::begin(kAnswers));
  return out;
}

Outcome outcome_of(std::span<const Part> parts) {
  for (const Answer worst : {Answer::kFailed, Answer::kNoAnswer}) {
    const auto is_worst = [&](const Part& part) { return part.answer == worst; };
    const auto first = std::ranges::find_if(parts, is_worst);
    if (first == parts.end()) continue;
    const auto more = std::ranges::count_if(parts, is_worst) - 1;
    return {worst, fmt::format("{}: {}{}", first->name, first->text,
                               more > 0 ? fmt::format(", and {} more", more) : "")};
  }
  if (parts.empty()) return {Answer::kNoAnswer, "nothing is configured to be checked"};
  std::string names;
  for (const Part& part : parts) names += (names.empty() ? "" : ", ") + part.name;
  return {Answer::kPassed, "passed: " + names};
}

}  // namespace culprit::check
