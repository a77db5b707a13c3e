#include "core/alert/identity.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <tuple>

#include "base/hash.h"

namespace culprit::alert {
namespace {

// As in /v1/events: smaller changes of confidence are no news.
constexpr double kConfidenceNews = 0.1;

}  // namespace

std::string issue_key(const Fault& f) {
  // Numbers of decisions may come again after a restart.
  if (!f.decision.empty()) return hex64(hash64(fmt::format("question\n{}\n{}", f.decision, f.answer_by_ns)));
  return hex64(hash64(
      fmt::format("{}\n{}\n{}\n{}\n{}", f.job, f.run, f.component, f.source, fmt::join(f.hosts, "\n"))));
}

bool is_grave(const Fault& f) { return f.action == "isolate" || f.vouched; }

bool graver(const Fault& a, const Fault& b) {
  const auto order = [](const Fault& f) {
    return std::tuple(f.action == "isolate", f.vouched, f.confidence);
  };
  return order(b) < order(a);
}

bool differs(const Fault& a, const Fault& b) {
  return a.title != b.title || a.symptom != b.symptom || a.category != b.category || a.action != b.action ||
         a.place != b.place || a.hosts != b.hosts || a.source != b.source ||
         std::abs(a.confidence - b.confidence) >= kConfidenceNews;
}

Brief brief_of(const Fault& f) { return {f.title, where_of(f), f.action, f.confidence, f.again}; }

std::string change_of(const Brief& before, const Fault& now) {
  const Brief after = brief_of(now);
  std::string out;
  const auto add = [&](std::string_view what, const std::string& from, const std::string& to) {
    if (from == to) return;
    out += fmt::format("{}{} {} -> {}", out.empty() ? "" : "; ", what, from.empty() ? "none" : from,
                       to.empty() ? "none" : to);
  };
  add("title", before.title, after.title);
  add("where", before.where, after.where);
  add("action", before.action, after.action);
  if (std::abs(before.confidence - after.confidence) >= kConfidenceNews)
    add("confidence", fmt::format("{:.0f} %", 100 * before.confidence),
        fmt::format("{:.0f} %", 100 * after.confidence));
  if (before.again != after.again) out += (out.empty() ? "" : "; ") + after.again;
  return out;
}

}  // namespace culprit::alert
