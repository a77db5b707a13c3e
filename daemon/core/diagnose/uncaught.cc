#include "core/diagnose/uncaught.h"

#include <fmt/format.h>

#include "base/text.h"
#include "core/logs/shape.h"
#include "core/logs/tracebacks.h"

namespace culprit::diagnose {
namespace {

constexpr size_t kUncaughtTitle = 160;  // bytes

}  // namespace

std::string_view exception_kind(std::string_view text) {
  return logs::names_exception(text) ? text.substr(0, text.find(':')) : std::string_view();
}

bool is_planned_exit(std::string_view text) { return text == "SystemExit" || text == "SystemExit: 0"; }

void describe_uncaught(std::string_view text, Finding& f) {
  f.detector = DetectorKind::kTraceback;
  f.title = shorten(fmt::format("Program ended with an exception: {}", text), kUncaughtTitle);
  if (!logs::traceback_head(logs::without_colours(text))) return;
  f.title = "Program ended in a traceback whose exception is cut off";
  f.category = Category::kUnknown;
  f.component = Component::kUnknown;
}

const rules::Rule& rule_of_uncaught() {
  static const rules::Rule kRule = [] {
    rules::Rule rule;
    rule.title = "Program ended with an exception";
    rule.remedy = "Read the traceback: its last lines name the place in the program.";
    rule.category = Category::kUser;
    rule.component = Component::kUserCode;
    rule.action = ActionKind::kCheck;
    rule.says = rules::Says::kFailure;
    return rule;
  }();
  return kRule;
}

}  // namespace culprit::diagnose
