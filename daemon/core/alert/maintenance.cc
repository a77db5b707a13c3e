#include "core/alert/maintenance.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "model/json_text.h"

namespace culprit::alert {

// Backtracks only to the last star, so the cost is linear in the text per star.
bool matches_glob(std::string_view pattern, std::string_view text) {
  size_t p = 0, t = 0, star = pattern.npos, from = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      from = t;
    } else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == text[t])) {
      ++p, ++t;
    } else if (star != pattern.npos) {
      p = star + 1;
      t = ++from;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

bool Window::covers(const Fault& fault) const {
  if (!jobs.empty() && !matches_glob(jobs, fault.job)) return false;
  if (hosts.empty()) return !jobs.empty();
  return !fault.hosts.empty() &&
         std::ranges::all_of(fault.hosts, [&](const std::string& host) { return matches_glob(hosts, host); });
}

std::string to_json(const Window& w) {
  return nlohmann::json{{"id", w.id},           {"hosts", w.hosts},       {"jobs", w.jobs},
                        {"from_ns", w.from_ns}, {"until_ns", w.until_ns}, {"reason", w.reason},
                        {"by", w.by},           {"ended", w.ended},       {"held", w.held}}
      .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

Result<Window> window_from_json(std::string_view text) {
  const auto object = parse_json(text);
  if (!object.is_object()) return fail(ErrorCode::kInvalid, "a maintenance window is no JSON object");
  Window out;
  const std::pair<const char*, std::string*> texts[] = {
      {"hosts", &out.hosts}, {"jobs", &out.jobs}, {"reason", &out.reason}, {"by", &out.by}};
  for (const auto& [name, to] : texts)
    if (const auto at = object.find(name); at != object.end() && !at->is_null()) {
      if (!at->is_string()) return fail(ErrorCode::kInvalid, std::string("'") + name + "' is no string");
      *to = at->get<std::string>();
    }
  const std::pair<const char*, int64_t*> numbers[] = {
      {"id", &out.id}, {"from_ns", &out.from_ns}, {"until_ns", &out.until_ns}};
  for (const auto& [name, to] : numbers)
    if (const auto at = object.find(name); at != object.end() && !at->is_null()) {
      if (!at->is_number_integer())
        return fail(ErrorCode::kInvalid, std::string("'") + name + "' is no whole number");
      *to = at->get<int64_t>();
    }
  if (const auto at = object.find("held"); at != object.end() && at->is_number_unsigned())
    out.held = at->get<uint64_t>();
  if (const auto at = object.find("ended"); at != object.end() && at->is_boolean())
    out.ended = at->get<bool>();
  return out;
}

std::string trouble_of(const Window& w, TimeNs now) {
  if (w.hosts.empty() && w.jobs.empty()) return "a maintenance window needs hosts or jobs";
  if (w.hosts.size() > kPatternBytes || w.jobs.size() > kPatternBytes) return "a pattern is too long";
  if (w.reason.empty()) return "a maintenance window needs a reason";
  if (w.reason.size() > kReasonBytes) return "the reason is too long";
  if (w.until_ns == kNoTime) return "a maintenance window needs an end";
  if (w.from_ns < 0) return "the begin is no time";
  if (w.until_ns <= w.from_ns) return "the window ends before it begins";
  if (w.until_ns <= now) return "the window is over already";
  if (w.until_ns - w.from_ns > kWindowLongest) return "the window is longer than a year";
  return "";
}

}  // namespace culprit::alert
