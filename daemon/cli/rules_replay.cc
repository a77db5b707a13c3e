#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <set>

#include "app/confirm/logs.h"
#include "base/text.h"
#include "cli/kept_by_server.h"
#include "cli/remote.h"
#include "cli/rules.h"
#include "model/json_writer.h"

namespace culprit::cli {
namespace {

constexpr const char* kRulesReplayExamples = R"(
Tries the rules of the files on the logs that the daemon keeps of its jobs, and shows next to it what was said of
each job then. Rules on findings are not tried. Exits with 1 if a rule fires in a job that ended well.

Examples:
  culprit rules replay site.lua
  culprit rules replay /etc/culprit/rules.d --since 30d --jobs 200
  culprit rules replay --format json site.lua | jq -c '.jobs[] | select(.well)')";

constexpr uint64_t kReplayJobs = 100;

struct RulesReplayOptions {
  RemoteOptions remote;
  RuleChoice choice;
  std::string since = "7d";
  uint64_t jobs = kReplayJobs;
};

struct ReplayedRule {
  std::string id;
  uint64_t times = 0;
  std::set<std::string> hosts;
};
struct ReplayedJob {
  std::string id, verdict;
  bool well = false, read = false;
  std::vector<ReplayedRule> rules;
};

Result<TimeNs> duration(const std::string& text) {
  const auto unit = std::string_view("smhd").find(text.empty() ? ' ' : text.back());
  constexpr TimeNs kSeconds[] = {1, 60, 3600, 86'400};
  const std::string digits = text.substr(0, text.size() - (text.empty() ? 0 : 1));
  if (unit == std::string_view::npos || digits.empty() || digits.size() > 6 ||
      digits.find_first_not_of("0123456789") != digits.npos)
    return fail(ErrorCode::kInvalid,
                fmt::format("--since {}: a whole number with s, m, h or d, such as 7d", text));
  return std::stoll(digits) * kSeconds[unit] * kNsPerSecond;
}

// Results of the given rules, and of rules that their windows name.
std::vector<ReplayedRule> fired_in(const app::JobLogs& logs, const std::shared_ptr<rules::Ruleset>& set,
                                   const std::set<std::string_view>& files) {
  std::map<std::string, ReplayedRule> out;
  for (const core::RuleFired& fired : logs.match(set).fired) {
    const rules::Rule& rule = set->rules()[fired.hit.rule];
    if (fired.mentioned || !files.contains(rule.place.file)) continue;
    ReplayedRule& one = out[rule.id];
    one.id = rule.id;
    ++one.times;
    if (!fired.hit.host.empty()) one.hosts.insert(fired.hit.host);
  }
  std::vector<ReplayedRule> rows;
  for (auto& [id, one] : out) rows.push_back(std::move(one));
  return rows;
}

std::string shown_rule(const ReplayedRule& one) {
  std::string out = fmt::format("{} x{}", one.id, one.times);
  if (!one.hosts.empty())
    out += " on " + shown_list(std::vector<std::string>(one.hosts.begin(), one.hosts.end()));
  return out;
}

std::string to_text(const std::vector<ReplayedJob>& jobs) {
  std::vector<std::vector<std::string>> rows{{"job", "state", "said then", "these rules say"}};
  for (const ReplayedJob& job : jobs) {
    std::vector<std::string> printed;
    for (const ReplayedRule& rule : job.rules) printed.push_back(shown_rule(rule));
    const std::string now = !job.read ? "(its logs are not kept)" : printed.empty() ? "-" : "";
    rows.push_back({to_terminal(job.id), job.well ? "well" : "failed",
                    job.verdict.empty() ? "-" : to_terminal(shorten(job.verdict, 60)),
                    to_terminal(now.empty() ? fmt::format("{}", fmt::join(printed, ", ")) : now)});
  }
  return table(rows, wants_color());
}

std::string to_json(const std::vector<ReplayedJob>& jobs) {
  JsonWriter w;
  w.object([&] {
    w.list("jobs", jobs, [&](const ReplayedJob& job) {
      w.object([&] {
        w.field("job", job.id);
        w.field("well", job.well);
        w.field("read", job.read);
        w.text_or_null("verdict", job.verdict);
        w.list("rules", job.rules, [&](const ReplayedRule& rule) {
          w.object([&] {
            w.field("rule", rule.id);
            w.field("times", rule.times);
            w.values("hosts", std::vector<std::string>(rule.hosts.begin(), rule.hosts.end()));
          });
        });
      });
    });
  });
  return w.finish() + "\n";
}

std::vector<ReplayedJob> jobs_since(const std::vector<Json>& items, TimeNs since, size_t most) {
  std::vector<ReplayedJob> out;
  std::set<std::string> seen;
  for (const Json& job : items) {
    const Json last = job.value("last_ns", Json());
    if (last.is_number_integer() && last.get<TimeNs>() < since) continue;
    ReplayedJob one{job.value("id", ""), "", job.value("well", false), false, {}};
    if (one.id.empty() || job.value("state", "") == "running" || !seen.insert(one.id).second) continue;
    if (const Json verdict = job.value("verdict", Json()); verdict.is_string())
      one.verdict = verdict.get<std::string>();
    if (out.size() < most) out.push_back(std::move(one));
  }
  return out;
}

int replay(RulesReplayOptions& o) {
  const auto span = duration(o.since);
  if (!span) return report_error(span.error().text), kUnable;
  app::LoadedRules loaded;
  if (!load_rules(o.choice, loaded) || !loaded.files.errors.empty()) return kUnable;
  std::set<std::string_view> files;
  for (size_t i = loaded.files.given; i < loaded.files.texts.size(); ++i)
    files.insert(loaded.files.texts[i].file);
  auto client = app::Client::make(o.remote.client);
  if (!client) return report_error(client.error().text), kUnable;
  const auto items = get_items(*client, "/v1/jobs");
  if (!items) return report_error(items.error().text), kUnable;
  const TimeNs now = std::chrono::duration_cast<std::chrono::nanoseconds>(
                         std::chrono::system_clock::now().time_since_epoch())
                         .count();
  std::vector<ReplayedJob> jobs = jobs_since(*items, now - *span, o.jobs);
  const app::DiagnoseOptions reading;
  StoredByServer stored(*client);
  bool wrong = false;
  for (ReplayedJob& job : jobs) {
    const auto logs = app::JobLogs::fetch(stored, job.id, reading);
    if (!logs) {
      report_error(fmt::format("{}: {}", job.id, logs.error().text));
      continue;
    }
    job.read = true;
    job.rules = fired_in(**logs, loaded.set, files);
    wrong = wrong || (job.well && !job.rules.empty());
  }
  if (!print(o.choice.format == "json" ? to_json(jobs) : to_text(jobs))) return kUnable;
  return wrong ? kFound : kDone;
}

}  // namespace

void add_rules_replay(Command& rules, Run& run) {
  auto o = std::make_shared<RulesReplayOptions>();
  o->choice.rules.site = false;  // the given files may be copies of the site's
  Command* verb =
      rules.add_subcommand("replay", "Try new or changed rules on the evidence that is kept of jobs");
  verb->footer(kRulesReplayExamples);
  verb->add_option("FILE", o->choice.rules.paths, "Rule files, and folders whose *.lua are read")->required();
  verb->add_option("--since", o->since, "Jobs that ended within this time")->show_default();
  verb->add_option("--jobs", o->jobs, "At most so many of them, the newest")->show_default();
  verb->add_flag("!--no-library", o->choice.rules.library, "Without the shipped rules");
  add_rule_format(*verb, o->choice);
  add_server_options(*verb, o->remote);
  verb->callback([o, &run] { run = [o] { return replay(*o); }; });
}

}  // namespace culprit::cli
