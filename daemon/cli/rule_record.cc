#include "cli/rule_record.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "base/time.h"

namespace culprit::cli {
namespace {

constexpr uint64_t kOverlapLines = 3;  // minimum of common lines of two overlapping rules
constexpr size_t kDateBytes = 10;

std::string text_at(const Json& object, const char* name) {
  const auto at = object.find(name);
  return at != object.end() && at->is_string() ? at->get<std::string>() : "";
}

bool is_of_site(const rules::Rule& rule) { return !rule.place.file.starts_with("library:"); }

void add_noise(const rules::Rule& rule, const RuleRecord& r, std::vector<RuleRemark>& out) {
  using K = RuleRemark::Kind;
  if (!r.healthy_jobs.empty())
    out.push_back({rule.id, K::kNoisy,
                   fmt::format("it fired in {} that ended well, such as {}",
                               counted(r.healthy_jobs.size(), "job"), *r.healthy_jobs.begin())});
  if (r.refuted > 0 && r.refuted >= r.confirmed)
    out.push_back({rule.id, K::kNoisy,
                   fmt::format("people refuted it {} and confirmed it {}", counted(r.refuted, "time"),
                               counted(r.confirmed, "time"))});
}

// Lists a pair once, at the rule of the site or the first id. Cascades share lines with root causes by
// design.
void add_overlaps(const rules::Ruleset& set, const rules::Rule& rule, const RuleRecords& records,
                  std::vector<RuleRemark>& out) {
  const RuleRecord& r = records.at(rule.id);
  for (const auto& [id, lines] : r.others) {
    const auto index = set.find(id);
    const auto other = records.find(id);
    if (!index || other == records.end() || lines < kOverlapLines) continue;
    const bool mine_always = lines == r.lines, others_always = lines == other->second.lines;
    if (!mine_always || set.rules()[*index].role != rule.role) continue;
    if (others_always && id < rule.id && is_of_site(rule) == is_of_site(set.rules()[*index])) continue;
    if (others_always && !is_of_site(rule) && is_of_site(set.rules()[*index])) continue;
    out.push_back({rule.id, RuleRemark::Kind::kOverlapping,
                   fmt::format("{} fires on each of its {} of kept evidence too{}", id,
                               counted(lines, "line"), others_always ? ", and on no other" : "")});
  }
}

}  // namespace

std::string_view to_string(RuleRemark::Kind kind) {
  constexpr std::string_view kNames[] = {"noisy", "overlapping", "stale"};
  return kNames[static_cast<size_t>(kind)];
}

RuleRecords records_of(const std::vector<Json>& diagnoses, const std::vector<Json>& jobs) {
  std::set<std::pair<std::string, uint32_t>> well;
  for (const Json& job : jobs)
    if (job.value("well", false)) well.emplace(text_at(job, "id"), job.value("run", 0u));
  RuleRecords out;
  for (const Json& d : diagnoses) {
    const std::string rule = text_at(d, "rule"), job = text_at(d, "job"), state = text_at(d, "state");
    if (rule.empty()) continue;
    RuleRecord& r = out[rule];
    ++r.fired;
    r.confirmed += state == "confirmed";
    r.refuted += state == "refuted";
    r.jobs.insert(job);
    if (state != "withdrawn" && well.contains({job, d.value("run", 0u)})) r.healthy_jobs.insert(job);
    for (const char* name : {"last_ns", "first_ns"})
      if (d.contains(name) && d[name].is_number_integer())
        r.last_ns = std::max(r.last_ns, d[name].get<TimeNs>());
  }
  return out;
}

void add_line(const std::set<std::string>& rules, RuleRecords& out) {
  for (const std::string& rule : rules) {
    RuleRecord& r = out[rule];
    ++r.lines;
    for (const std::string& other : rules)
      if (other != rule) ++r.others[other];
  }
}

std::vector<RuleRemark> remarks_on(const rules::Ruleset& set, const RuleRecords& records, TimeNs since_ns) {
  std::vector<RuleRemark> out;
  for (const rules::Rule& rule : set.rules()) {
    if (!rule.enabled) continue;
    const auto record = records.find(rule.id);
    const bool serves = rule.severity < Severity::kError;  // used by windows of other rules; makes no
                                                           // diagnosis
    if (record != records.end()) add_noise(rule, record->second, out);
    if (record != records.end()) add_overlaps(set, rule, records, out);
    if (!is_of_site(rule) || serves) continue;
    const TimeNs last = record == records.end() ? kNoTime : record->second.last_ns;
    if (last == kNoTime && (record == records.end() || record->second.lines == 0))
      out.push_back({rule.id, RuleRemark::Kind::kStale, "it never fired"});
    else if (last != kNoTime && last < since_ns)
      out.push_back(
          {rule.id, RuleRemark::Kind::kStale, "it fired last on " + format_time(last).substr(0, kDateBytes)});
  }
  std::ranges::stable_sort(out, {}, &RuleRemark::kind);
  return out;
}

}  // namespace culprit::cli
