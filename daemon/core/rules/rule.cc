#include "core/rules/rule.h"

#include <array>

namespace culprit::rules {

std::string_view to_string(TextSource source) {
  switch (source) {
    case TextSource::kLog:
      return "log";
    case TextSource::kKernel:
      return "kernel";
    case TextSource::kFinding:
      return "finding";
    case TextSource::kEvent:
      return "event";
    case TextSource::kMetric:
      return "metric";
    case TextSource::kFatal:
      return "fatal";
  }
  return "";
}

std::string_view to_string(Says says) {
  constexpr std::array<std::string_view, 5> kNames = {"notice", "origin", "failure", "errno", "cause"};
  return kNames[static_cast<size_t>(says)];
}

std::string_view to_string(Role role) { return role == Role::kRoot ? "root" : "cascade"; }

std::string_view to_string(Scope scope) {
  constexpr std::string_view kWords[] = {"host", "rank", "device", "job"};
  return kWords[static_cast<size_t>(scope)];
}

}  // namespace culprit::rules
