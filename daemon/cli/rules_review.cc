#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <set>

#include "app/confirm/logs.h"
#include "base/clock.h"
#include "base/text.h"
#include "cli/kept_by_server.h"
#include "cli/remote.h"
#include "cli/rule_record.h"
#include "cli/rules.h"
#include "model/json_writer.h"

namespace culprit::cli {
namespace {

constexpr const char* kRulesReviewExamples = R"(
Reads the daemon's history and the evidence that it keeps, and lists the rules that need a look: `noisy` ones
fired in jobs that ended well, or were refuted as often as confirmed; of `overlapping` ones another rule fires on
each of their lines; `stale` ones of the site did not fire in --days. Exits with 1 if it lists any.

Examples:
  culprit rules review
  culprit rules review --days 365 --jobs 0          # from the history alone
  culprit rules review --format json | jq -r '.rules[] | select(.refuted > 0) | .id')";

constexpr uint64_t kDays = 90, kReviewJobs = 20;

struct RulesReviewOptions {
  RemoteOptions remote;
  RuleChoice choice;
  uint64_t days = kDays, jobs = kReviewJobs;
};

// Reads lines of the newest jobs with stored evidence.
size_t read_evidence(app::Client& client, const std::vector<Json>& jobs, size_t most,
                     const std::shared_ptr<rules::Ruleset>& set, RuleRecords& records) {
  size_t read = 0;
  std::set<std::string> seen;
  const app::DiagnoseOptions reading;
  StoredByServer stored(client);
  for (const Json& job : jobs) {
    const std::string id = job.value("id", "");
    if (read >= most) break;
    if (id.empty() || !seen.insert(id).second) continue;
    const auto logs = app::JobLogs::fetch(stored, id, reading);
    if (!logs) continue;  // the evidence is gone
    ++read;
    std::map<std::pair<size_t, uint64_t>, std::set<std::string>> lines;
    for (const core::RuleFired& fired : (*logs)->match(set).fired)
      lines[{fired.place.source, fired.place.line}].insert(set->rules()[fired.hit.rule].id);
    for (const auto& [place, rules] : lines) add_line(rules, records);
  }
  return read;
}

void write_record(JsonWriter& w, const rules::Rule& rule, const RuleRecord& r) {
  w.object([&] {
    w.field("id", rule.id);
    w.field("file", rule.place.file);
    w.field("fired", r.fired);
    w.field("confirmed", r.confirmed);
    w.field("refuted", r.refuted);
    w.time("last_ns", r.last_ns);
    w.field("jobs", r.jobs.size());
    w.field("healthy_jobs", r.healthy_jobs.size());
    w.field("lines", r.lines);
  });
}

std::string to_json(const rules::Ruleset& set, const RuleRecords& records,
                    const std::vector<RuleRemark>& remarks, size_t jobs) {
  std::vector<const rules::Rule*> known;
  for (const rules::Rule& rule : set.rules())
    if (records.contains(rule.id) || !rule.place.file.starts_with("library:")) known.push_back(&rule);
  JsonWriter w;
  w.object([&] {
    w.field("evidence_jobs", jobs);
    w.list("remarks", remarks, [&](const RuleRemark& one) {
      w.object([&] {
        w.field("rule", one.rule);
        w.field("kind", to_string(one.kind));
        w.field("sentence", one.sentence);
      });
    });
    w.list("rules", known, [&](const rules::Rule* rule) {
      const auto record = records.find(rule->id);
      write_record(w, *rule, record == records.end() ? RuleRecord() : record->second);
    });
  });
  return w.finish() + "\n";
}

std::string to_text(const RuleRecords& records, const std::vector<RuleRemark>& remarks) {
  if (remarks.empty()) return "no rule is stale, noisy or overlapping\n";
  std::vector<std::vector<std::string>> rows{{"rule", "", "fired", "right", "wrong", "why"}};
  for (const RuleRemark& one : remarks) {
    const auto record = records.find(one.rule);
    const RuleRecord r = record == records.end() ? RuleRecord() : record->second;
    rows.push_back({to_terminal(one.rule), std::string(to_string(one.kind)), std::to_string(r.fired),
                    std::to_string(r.confirmed), std::to_string(r.refuted), to_terminal(one.sentence)});
  }
  return table(rows, wants_color());
}

int review(RulesReviewOptions& o) {
  app::LoadedRules loaded;
  if (!load_rules(o.choice, loaded)) return kUnable;
  auto client = app::Client::make(o.remote.client);
  if (!client) return report_error(client.error().text), kUnable;
  const auto diagnoses = get_items(*client, "/v1/diagnoses");
  if (!diagnoses) return report_error(diagnoses.error().text), kUnable;
  const auto jobs = get_items(*client, "/v1/jobs");
  if (!jobs) return report_error(jobs.error().text), kUnable;
  RuleRecords records = records_of(*diagnoses, *jobs);
  const size_t read = read_evidence(*client, *jobs, o.jobs, loaded.set, records);
  const TimeNs since = wall_now() - static_cast<TimeNs>(o.days) * 86'400 * kNsPerSecond;
  const std::vector<RuleRemark> remarks = remarks_on(*loaded.set, records, since);
  const bool json = o.choice.format == "json";
  if (!print(json ? to_json(*loaded.set, records, remarks, read) : to_text(records, remarks))) return kUnable;
  return remarks.empty() ? kDone : kFound;
}

}  // namespace

void add_rules_review(Command& rules, Run& run) {
  auto o = std::make_shared<RulesReviewOptions>();
  Command* verb = rules.add_subcommand("review", "List stale, noisy and overlapping rules with their record");
  verb->footer(kRulesReviewExamples);
  verb->add_option("--days", o->days, "A rule of the site that did not fire for so long is stale")
      ->show_default();
  verb->add_option("--jobs", o->jobs, "Newest jobs whose kept evidence is read")->show_default();
  add_rule_options(*verb, o->choice.rules);
  add_rule_format(*verb, o->choice);
  add_server_options(*verb, o->remote);
  verb->callback([o, &run] { run = [o] { return review(*o); }; });
}

}  // namespace culprit::cli
