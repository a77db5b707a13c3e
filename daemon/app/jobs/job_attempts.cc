#include "app/jobs/job_attempts.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/limits.h"
#include "base/text.h"
#include "model/json_text.h"

namespace culprit::app {
namespace {

constexpr uint32_t kAttemptsMost = 100'000;
constexpr size_t kNamesMost = 64, kWhyBytes = 300;
constexpr std::string_view kStates[] = {"begin", "again", "stop", "well"};

std::optional<uint32_t> number_of(const nlohmann::json& value) {
  if (!value.is_number_unsigned() || value.get<uint64_t>() > kAttemptsMost) return std::nullopt;
  return static_cast<uint32_t>(value.get<uint64_t>());
}

// The field with a job's name; null: none.
std::string* member_of(JobAttempts& of, std::string_view field) {
  if (field == "first") return &of.first;
  if (field == "member") return &of.member;
  return field == "successor" ? &of.successor : nullptr;
}

}  // namespace

std::string_view to_string(AttemptState state) { return kStates[static_cast<size_t>(state)]; }

std::optional<JobAttempts> attempts_of(const LoopEvent& event, TimeNs at) {
  if (event.name != kAttemptEvent) return std::nullopt;
  JobAttempts out;
  out.attempt = out.of = 0;
  out.at_ns = at;
  bool has_state = false;
  for (const EventField& field : event.fields) {
    const nlohmann::json value = parse_json(field.json);
    if (field.name == "attempt")
      out.attempt = number_of(value).value_or(0);
    else if (field.name == "of")
      out.of = number_of(value).value_or(0);
    else if (field.name == "why" && value.is_string())
      out.why = shorten(value.get<std::string>(), kWhyBytes);
    else if (field.name == "state" && value.is_string()) {
      const auto word = std::ranges::find(kStates, value.get<std::string>());
      has_state = word != std::end(kStates);
      if (has_state) out.state = static_cast<AttemptState>(word - std::begin(kStates));
    } else if (std::string* job = member_of(out, field.name); job && value.is_string()) {
      *job = value.get<std::string>();
      if (job->size() > limits::kNameBytes) job->clear();
    } else if (field.name == "excluded" && value.is_array()) {
      for (const nlohmann::json& name : value)
        if (name.is_string() && out.excluded.size() < kNamesMost)
          out.excluded.push_back(shorten(name.get<std::string>(), limits::kNameBytes));
    }
  }
  if (out.attempt == 0 || !has_state) return std::nullopt;
  out.of = std::max(out.of, out.attempt);
  return out;
}

std::string runs_again(const JobAttempts& a) {
  if (a.state != AttemptState::kAgain) return "";
  return fmt::format("runs again{} (attempt {} of {})", a.why.empty() ? "" : " " + a.why, a.attempt + 1,
                     std::max(a.of, a.attempt + 1));
}

}  // namespace culprit::app
