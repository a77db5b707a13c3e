#include "cli/replay.h"

#include <fstream>
#include <iostream>
#include <iterator>

#include "base/text.h"
#include "cli/replay_text.h"
#include "core/replay/host_list.h"
#include "core/replay/results.h"

namespace culprit::cli {
namespace {

constexpr const char* kDualPhaseExamples = R"(
Examples:
  culprit replay plan --hosts 'n[1-64]' --command 'sbatch -w {hosts} -N {nhosts} small.sbatch'
  culprit replay judge results.txt --hosts 'n[1-64]'

Dual-phase replay, for a job that fails for no reason that logs show: it runs again, smaller, on groups of its
hosts, by your own launcher. The host where the failing groups of both phases meet is at fault.
`culprit recover replay` is something else: it gives recorded inputs to a controller.)";
constexpr const char* kReplayPlanExamples = R"(
Host x of the list, from 0, is in group x div M of phase 1 and in group x mod N of phase 2, with M hosts in
each of N groups. Keep tensor and pipeline parallelism as they are; fewer replicas.

Examples:
  culprit replay plan --hosts 'n[1-64]'
  culprit replay plan --hosts 'n[1-64]' --size 8 --command 'sbatch -w {hosts} -N {nhosts} small.sbatch'
  culprit replay plan --hosts 'n[1-64]' --format json | jq -r '.runs[] | [.phase, .group] + .hosts | @tsv')";
constexpr const char* kReplayJudgeExamples = R"(
A line of RESULTS is `PHASE GROUP ok|failed`, or {"phase": 1, "group": 3, "result": "failed"}. A group that ran
again has another line. The runs that it proposes name their hosts: `3 1 failed n1,n5`. # begins a comment.

Examples:
  culprit replay judge results.txt --hosts 'n[1-64]'
  culprit replay judge results.txt --hosts 'n[1-64]' --shows 0.3    # a fault that comes and goes

Exit status: 0 hosts are named, or the job itself; 1 still open, or not reproduced; 2 usage.)";

struct DualPhaseOptions {
  std::string hosts, command, results, format = "text";
  uint32_t size = 0;
  replay::Odds odds;
};

void add_replay_options(Command& verb, DualPhaseOptions& o) {
  verb.add_option("--hosts", o.hosts, "Hosts of the job, as 'n[1-64]' or by commas")->required();
  verb.add_option("--size", o.size, "Hosts that the smaller job needs; default: near the square root")
      ->between(1u, static_cast<unsigned>(replay::kHostsMost));
  verb.add_option("--shows", o.odds.shows, "Probability that one run shows the fault")
      ->between(replay::kShowsLeast, 1.0)
      ->show_default();
  verb.add_option("--command", o.command,
                  "Template of a run; {hosts} (by commas), {nhosts}, {phase} and {group} are replaced");
  verb.add_option("--format,-f", o.format, "text or json")->one_of({"text", "json"})->show_default();
}

Result<ReplayView> replay_view(const DualPhaseOptions& o) {
  auto hosts = replay::expand_hosts(o.hosts, replay::kHostsMost);
  if (!hosts) return fail(hosts.error().code, "--hosts: " + hosts.error().text);
  auto plan = replay::plan_of(std::move(*hosts), o.size);
  if (!plan) return tl::unexpected(plan.error());
  const auto lacks = [&](const char* name) { return o.command.find(name) == std::string::npos; };
  if (!o.command.empty() && lacks("{hosts}") && lacks("{group}"))
    return fail(ErrorCode::kInvalid,
                "--command: has neither {hosts} nor {group}: all runs would be the same");
  return ReplayView{std::move(*plan), o.command, o.odds};
}

int show_replay_plan(const DualPhaseOptions& o) {
  const auto view = replay_view(o);
  if (!view) return report_error("replay plan: " + view.error().text), kUnable;
  return print(o.format == "json" ? plan_json(*view) : plan_text(*view)) ? kDone : kUnable;
}

// At most one byte more than read_results() takes.
std::string result_bytes(std::istream& in) {
  std::string out(replay::kResultBytes + 1, '\0');
  in.read(out.data(), static_cast<std::streamsize>(out.size()));
  out.resize(static_cast<size_t>(in.gcount()));
  return out;
}

Result<std::vector<replay::GroupRun>> replay_results(const std::string& path, const replay::Plan& plan) {
  std::string text;
  if (path == "-") {
    text = result_bytes(std::cin);
  } else {
    std::ifstream file(path, std::ios::binary);
    if (!file || file.peek() == std::ifstream::traits_type::eof())
      return fail(ErrorCode::kNotFound, path + " cannot be read or is empty");
    text = result_bytes(file);
  }
  auto runs = replay::read_results(text, plan);
  if (!runs) return fail(runs.error().code, path + ": " + runs.error().text);
  if (runs->empty()) return fail(ErrorCode::kInvalid, path + ": has no run");
  return runs;
}

int show_judgement(const DualPhaseOptions& o) {
  const auto view = replay_view(o);
  if (!view) return report_error("replay judge: " + view.error().text), kUnable;
  const auto runs = replay_results(o.results, view->plan);
  if (!runs) return report_error("replay judge: " + runs.error().text), kUnable;
  const replay::Judgement judged = replay::judge(view->plan, *runs, view->odds);
  if (!print(o.format == "json" ? judgement_json(*view, *runs, judged)
                                : judgement_text(*view, *runs, judged)))
    return kUnable;
  return judged.verdict == replay::Verdict::kHosts || judged.verdict == replay::Verdict::kJob ? kDone
                                                                                              : kFound;
}

}  // namespace

void add_replay(Command& app, Run& run) {
  Command* replay = app.add_subcommand("replay", "Find the host at fault by smaller runs on groups of hosts");
  replay->require_subcommand();
  replay->footer(kDualPhaseExamples);

  auto planned = std::make_shared<DualPhaseOptions>();
  Command* plan = replay->add_subcommand("plan", "The groups of hosts, and a command line for each");
  plan->footer(kReplayPlanExamples);
  add_replay_options(*plan, *planned);
  plan->callback([planned, &run] { run = [planned] { return show_replay_plan(*planned); }; });

  auto judged = std::make_shared<DualPhaseOptions>();
  Command* judge =
      replay->add_subcommand("judge", "Which hosts remain after these results, and what to run next");
  judge->footer(kReplayJudgeExamples);
  judge->add_option("RESULTS", judged->results, "File of results; -: standard input")->required();
  add_replay_options(*judge, *judged);
  judge->add_option("--stray", judged->odds.stray, "Probability that a run fails without a host at fault")
      ->between(replay::kStrayLeast, replay::kStrayMost)
      ->show_default();
  judge->callback([judged, &run] { run = [judged] { return show_judgement(*judged); }; });
}

}  // namespace culprit::cli
