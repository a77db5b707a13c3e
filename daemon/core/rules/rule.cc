#include "core/rules/rule.h"

namespace culprit::rules {

std::string_view word(Source source) {
  switch (source) {
    case Source::kLog:
      return "log";
    case Source::kKernel:
      return "kernel";
    case Source::kFinding:
      return "finding";
    case Source::kEvent:
      return "event";
    case Source::kMetric:
      return "metric";
  }
  return "";
}

std::string_view word(Role role) { return role == Role::kRoot ? "root" : "cascade"; }

std::string_view word(Scope scope) {
  constexpr std::string_view kWords[] = {"host", "rank", "device", "job"};
  return kWords[static_cast<size_t>(scope)];
}

}  // namespace culprit::rules
