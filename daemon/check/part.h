// The parts of a check of this host, and what they find. A part passes, fails, or has no answer: it could not
// be done, or did not end in time. No answer never counts as a failure.
//
// Plain values and pure functions; any thread.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "base/time.h"

namespace culprit::check {

enum class Answer : uint8_t { kPassed, kFailed, kNoAnswer };
std::string_view to_string(Answer answer);  // "passed", "failed", "no answer"

struct Part {
  std::string name;  // "memory", "disk", "pcie", or the name of a command
  Answer answer = Answer::kNoAnswer;
  std::string text;  // one sentence without a full stop
  double figure = 0;
  std::string unit;  // of the figure: "GB/s"; empty: there is none
  TimeNs took_ns = 0;
  bool operator==(const Part&) const = default;
};

// One line of JSON. Texts beyond their limit are cut.
std::string to_line(const Part& part);
Result<Part> parse_part(std::string_view line);

constexpr size_t kPartsMost = 64;
constexpr size_t kPartTextBytes = 400;

// The whole check: failed if a part failed, passed if all passed.
struct Outcome {
  Answer answer = Answer::kNoAnswer;
  std::string why;  // one sentence without a full stop
  bool operator==(const Outcome&) const = default;
};
Outcome outcome_of(std::span<const Part> parts);

}  // namespace culprit::check
