#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "cli/jobs_table.h"
#include "cli/near.h"
#include "cli/recovery_text.h"
#include "cli/remote.h"
#include "cli/rules.h"
#include "cli/shared_jobs.h"
#include "cli/verbs.h"

namespace culprit::cli {
namespace {

constexpr const char* kJobsExamples = R"(
Examples:
  culprit jobs                                    # of an earlier run: culprit report JOB --run N
  culprit jobs --cost                             # what failures cost each job, and all of them
  culprit jobs --format json | jq -r '.items[] | select(.state == "failed") | .id')";

// Whether the collectors that answer share their jobs.
bool are_shared(const Json& json) {
  const auto items = json.find("items");
  return items != json.end() && std::ranges::any_of(*items, [](const Json& job) {
           return job.is_object() && !as_of_field(job, {}).empty();
         });
}

int jobs(RemoteOptions& o) {
  return print_answer(
      o, "/v1/jobs",
      [&](const Json& json) {
        std::vector<std::vector<std::string>> rows{
            {"JOB", "RUN", "STATE", "BEGAN", "LAST SEEN", "HOSTS", "LINES", "FOUND"}};
        const bool several = json.contains("servers");
        const bool shared = are_shared(json);
        if (shared) rows[0].insert(rows[0].end() - 1, "AS OF");
        if (several) rows[0].insert(rows[0].begin() + 2, "COLLECTOR");
        std::string notes;
        if (const auto items = json.find("items"); items != json.end())
          for (const Json& job : *items)
            if (job.is_object()) {
              if (const std::string note = text_field(job, "note"); !note.empty() && note != "-")
                notes +=
                    "\njob " + text_field(job, "id") + ", run " + text_field(job, "run") + ": " + note + "\n";
              rows.push_back({text_field(job, "id"), text_field(job, "run"), state_of_job(job),
                              time_field(job, "first_ns", o.zone), time_field(job, "last_ns", o.zone),
                              text_field(job, "hosts"), text_field(job, "lines"), found_in_job(job)});
              if (shared) rows.back().insert(rows.back().end() - 1, as_of_field(job, o.zone));
              if (several) rows.back().insert(rows.back().begin() + 2, text_field(job, "server"));
            }
        if (json.contains("database_away_since_ns"))
          notes += fmt::format(
              "\nthe cluster's database does not answer since {}: jobs of other members are "
              "as of then\n",
              time_field(json, "database_away_since_ns", o.zone));
        return rows.size() > 1 ? table(rows, wants_color()) + notes : std::string("no job was seen yet\n");
      },
      stored_runs_hint());
}

int costs(RemoteOptions& o) {
  o.asks_members = false;  // sums of several do not add up
  return print_answer(o, "/v1/recovery/cost?jobs=1000",
                      [&](const Json& json) { return job_costs_text(json, o.zone); });
}

}  // namespace

void add_jobs(Command& app, Run& run) {
  auto o = std::make_shared<RemoteOptions>();
  auto of_costs = std::make_shared<bool>(false);
  Command* verb = app.add_subcommand(
      "jobs", "Jobs that the daemon follows or followed, each run of them, the newest first");
  verb->footer(kJobsExamples);
  add_server_options(*verb, *o);
  add_members(*verb, *o);
  add_format(*verb, *o, {"text", "json"});
  add_timezone(*verb, *o);
  verb->add_flag(
      "--cost", *of_costs,
      "Instead: effective training time of the scheduler's jobs over their attempts, the time lost "
      "and its cause; needs the controller (act.scheduler)");
  verb->callback([o, of_costs, &run] { run = [o, of_costs] { return *of_costs ? costs(*o) : jobs(*o); }; });
}

}  // namespace culprit::cli
