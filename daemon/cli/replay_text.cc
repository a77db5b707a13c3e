#include "cli/replay_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "base/text.h"
#include "cli/remote.h"
#include "cli/rules.h"
#include "core/replay/host_list.h"
#include "model/json_writer.h"

namespace culprit::cli {
namespace {

using replay::GroupRun;
using replay::HostSet;
using replay::Judgement;
using replay::Verdict;

constexpr size_t kShownCandidates = 16;
constexpr size_t kShownGroups = 20;  // of a note

std::vector<std::string> host_names(const replay::Plan& plan, const std::vector<uint32_t>& hosts) {
  std::vector<std::string> out;
  for (const uint32_t host : hosts) out.push_back(plan.hosts[host]);
  return out;
}

std::string host_range(const replay::Plan& plan, const std::vector<uint32_t>& hosts) {
  return replay::fold_hosts(host_names(plan, hosts));
}

std::string share_text(double share) {
  if (share > 0.999 && share < 1) return "> 99.9 %";
  if (share > 0 && share < 0.001) return "< 0.1 %";
  return fmt::format("{:.{}f} %", 100 * share, share < 0.1 || share > 0.99 ? 1 : 0);
}

std::string joined_and(const std::vector<std::string>& names) {
  return fmt::format("{}", fmt::join(names, " and "));
}

// ---- groups and their commands

std::vector<GroupRun> runs_of(const std::vector<HostSet>& groups, uint32_t phase) {
  std::vector<GroupRun> out;
  for (const HostSet& group : groups)
    out.push_back({phase, static_cast<uint32_t>(out.size() + 1), false, group});
  return out;
}

std::string groups_text(const ReplayView& view, const std::vector<GroupRun>& runs) {
  std::string out;
  std::vector<std::vector<std::string>> rows{{"PHASE", "GROUP", "HOSTS"}};
  for (const GroupRun& run : runs) {
    const std::string hosts = host_range(view.plan, run.hosts);
    rows.push_back({std::to_string(run.phase), std::to_string(run.group), hosts});
    if (!view.command.empty())
      out += fmt::format("phase {}, group {}: {}\n  {}\n", run.phase, run.group, hosts,
                         to_terminal(replay_command(view, run)));
  }
  return view.command.empty() ? table(rows, wants_color()) : out;
}

void write_run(JsonWriter& w, const ReplayView& view, const GroupRun& run) {
  w.object([&] {
    w.field("phase", run.phase);
    w.field("group", run.group);
    w.values("hosts", host_names(view.plan, run.hosts));
    w.text_or_null("command", view.command.empty() ? "" : replay_command(view, run));
  });
}

void write_head(JsonWriter& w, const char* schema, const ReplayView& view) {
  w.field("schema", schema);
  w.field("hosts", view.plan.hosts.size());
  w.field("size", view.plan.size);
  w.field("groups", view.plan.groups());
  w.field("shows", view.odds.shows);
  w.field("repeats", replay::repeats_for(view.odds.shows, replay::kSure));
}

std::vector<std::string> plan_notes(const ReplayView& view) {
  const replay::Plan& plan = view.plan;
  std::vector<std::string> out;
  std::set<size_t> sizes;
  for (const uint32_t phase : {1u, 2u})
    for (const HostSet& group : groups_of(plan, phase)) sizes.insert(group.size());
  if (sizes.size() > 1)
    out.push_back(
        fmt::format("groups have {} to {} hosts; the job must run on each of them (a size that divides {} "
                    "makes them equal)",
                    *sizes.begin(), *sizes.rbegin(), plan.hosts.size()));
  if (plan.meet() > 1)
    out.push_back(fmt::format(
        "a group of phase 1 and one of phase 2 have up to {} in common, so further runs "
        "follow; groups of at most {:.0f} avoid that",
        counted(plan.meet(), "host"), std::floor(std::sqrt(static_cast<double>(plan.hosts.size())))));
  const uint32_t repeats = replay::repeats_for(view.odds.shows, replay::kSure);
  if (repeats > 1)
    out.push_back(fmt::format("a fault that shows in {} of the runs needs {} of a group to be seen with 95 %",
                              share_text(view.odds.shows), counted(repeats, "run")));
  return out;
}

std::string notes_text(const std::vector<std::string>& notes) {
  std::string out;
  for (const std::string& note : notes) out += "note: " + note + "\n";
  return out;
}

// ---- the judgement

std::string verdict_text(const ReplayView& view, const Judgement& j) {
  const std::vector<std::string> names = host_names(view.plan, j.named);
  switch (j.verdict) {
    case Verdict::kHosts:
      return fmt::format("{} {} at fault: {}", joined_and(names), names.size() > 1 ? "are" : "is",
                         share_text(j.summary.top.front().probability));
    case Verdict::kJob:
      return fmt::format(
          "no host is at fault: groups fail whatever their hosts are ({}). The cause is the program, "
          "its data, or what all groups share",
          share_text(j.summary.job));
    case Verdict::kNotReproduced:
      return fmt::format("not reproduced: no group failed in {}", counted(j.runs, "run"));
    case Verdict::kUndecided:
      break;
  }
  std::vector<std::string> sure;
  for (const uint32_t host : j.candidates)
    if (j.summary.of_host[host] >= replay::kSure) sure.push_back(view.plan.hosts[host]);
  if (!sure.empty())
    return fmt::format("{} {} at fault; whether another host is, is open", joined_and(sure),
                       sure.size() > 1 ? "are" : "is");
  return fmt::format("undecided: {} of {} remain", j.candidates.size(),
                     counted(view.plan.hosts.size(), "host"));
}

// Groups of a phase that has results, without one of their own.
std::string missing_groups(const ReplayView& view, const std::vector<GroupRun>& runs, uint32_t phase) {
  std::set<uint32_t> seen;
  for (const GroupRun& run : runs)
    if (run.phase == phase) seen.insert(run.group);
  std::vector<std::string> missing;
  for (uint32_t group = 1; group <= view.plan.groups() && !seen.empty(); ++group)
    if (!seen.contains(group)) missing.push_back(std::to_string(group));
  if (missing.empty()) return "";
  const size_t all = missing.size();
  missing.resize(std::min(all, kShownGroups));
  return fmt::format("phase {} lacks results of {}: {}{}", phase, counted(all, "group"),
                     fmt::join(missing, ", "), all > missing.size() ? ", …" : "");
}

// What a search without a failure may have missed.
std::string missed_text(const ReplayView& view, const Judgement& j) {
  const double missed = std::pow(1 - view.odds.shows, j.runs_least);
  const uint32_t needed = replay::repeats_for(view.odds.shows, replay::kSure);
  std::string out =
      fmt::format("each host ran at least {}; a fault that shows in {} of the runs is missed so with {}",
                  counted(j.runs_least, "time"), share_text(view.odds.shows), share_text(missed));
  if (needed > j.runs_least)
    return out + fmt::format("; {} of each host make that less than 5 %",
                             counted(needed - j.runs_least, "more run"));
  return out + fmt::format("; a fault that shows in less than {} of the runs (--shows) is still possible",
                           share_text(1 - std::pow(0.05, 1.0 / j.runs_least)));
}

std::vector<std::string> judge_notes(const ReplayView& view, const std::vector<GroupRun>& runs,
                                     const Judgement& j) {
  std::vector<std::string> out;
  for (const uint32_t phase : {1u, 2u})
    if (std::string missing = missing_groups(view, runs, phase); !missing.empty())
      out.push_back(std::move(missing));
  if (j.verdict == Verdict::kNotReproduced && j.runs_least > 0) out.push_back(missed_text(view, j));
  if (!j.mixed.empty()) {
    const replay::MixedGroup& m = j.mixed.front();
    out.push_back(
        fmt::format("group {} of phase {} failed in {} of {} runs{}: the fault comes and goes, or a failure "
                    "was a chance one",
                    m.group, m.phase, m.failed, m.runs,
                    j.mixed.size() > 1 ? fmt::format(" (and {} more)", j.mixed.size() - 1) : ""));
  }
  if (j.too_many)
    out.push_back(
        fmt::format("{} in groups without a suspect: more than two hosts may be at fault; take out those "
                    "named, and run both phases again with the others",
                    counted(j.unexplained, "failure")));
  if (j.better_shows > 0)
    out.push_back(
        fmt::format("the results fit a fault that shows in {} of the runs at least ten times better than "
                    "{}: judge with --shows {}",
                    share_text(j.better_shows), share_text(view.odds.shows), j.better_shows));
  if (!j.returned.empty())
    out.push_back(fmt::format("innocent, though failing groups meet in {}: {}",
                              j.returned.size() > 1 ? "them" : "it", host_range(view.plan, j.returned)));
  return out;
}

std::string candidates_text(const ReplayView& view, const Judgement& j) {
  if (j.failed == 0) return "";
  std::vector<std::vector<std::string>> rows{{"HOST", "AT FAULT"}};
  for (const uint32_t host : j.candidates) {
    if (rows.size() > kShownCandidates) break;
    rows.push_back({view.plan.hosts[host], share_text(j.summary.of_host[host])});
  }
  std::string out = table(rows, wants_color());
  if (j.candidates.size() >= rows.size())
    out += fmt::format("and {} more\n", j.candidates.size() + 1 - rows.size());
  return out;
}

std::string next_text(const ReplayView& view, const Judgement& j) {
  const std::vector<GroupRun> next = runs_of(j.next.groups, j.next_phase);
  if (next.empty()) return "";
  std::string out = fmt::format("\nnext, {} at once{}:\n", counted(next.size(), "group"),
                                j.next_phase > 2 ? fmt::format(" (tells {:.1f} bits)", j.next.bits) : "");
  out += groups_text(view, next) + "then add to the results:\n";
  for (const GroupRun& run : next)
    out += fmt::format("  {} {} ok|failed{}\n", run.phase, run.group,
                       j.next_phase > 2 ? " " + host_range(view.plan, run.hosts) : "");
  return out;
}

}  // namespace

std::string replay_command(const ReplayView& view, const GroupRun& run) {
  const std::vector<std::string> names = host_names(view.plan, run.hosts);
  const std::pair<std::string_view, std::string> values[] = {
      {"{hosts}", fmt::format("{}", fmt::join(names, ","))},
      {"{nhosts}", std::to_string(names.size())},
      {"{phase}", std::to_string(run.phase)},
      {"{group}", std::to_string(run.group)}};
  std::string out;
  for (size_t at = 0; at < view.command.size();) {
    const auto* value = std::ranges::find_if(
        values, [&](const auto& one) { return view.command.compare(at, one.first.size(), one.first) == 0; });
    if (value == std::end(values)) {
      out += view.command[at++];
      continue;
    }
    out += value->second;
    at += value->first.size();
  }
  return out;
}

std::string plan_text(const ReplayView& view) {
  std::string out = fmt::format("{} in {} of {}: two phases; run the groups of a phase at once\n",
                                counted(view.plan.hosts.size(), "host"), counted(view.plan.groups(), "group"),
                                view.plan.size);
  out += notes_text(plan_notes(view)) + "\n";
  for (const uint32_t phase : {1u, 2u})
    out += groups_text(view, runs_of(groups_of(view.plan, phase), phase)) + (phase == 1 ? "\n" : "");
  return out +
         "\nThen write a line for each run, `PHASE GROUP ok` or `PHASE GROUP failed`, and ask "
         "`culprit replay judge`.\n";
}

std::string plan_json(const ReplayView& view) {
  JsonWriter w;
  w.object([&] {
    write_head(w, "culprit.replay.plan/1", view);
    std::vector<GroupRun> runs;
    for (const uint32_t phase : {1u, 2u})
      for (GroupRun& run : runs_of(groups_of(view.plan, phase), phase)) runs.push_back(std::move(run));
    w.list("runs", runs, [&](const GroupRun& run) { write_run(w, view, run); });
    w.values("notes", plan_notes(view));
  });
  return w.finish() + "\n";
}

std::string judgement_text(const ReplayView& view, const std::vector<GroupRun>& runs, const Judgement& j) {
  std::string out = verdict_text(view, j) + "\n";
  if (j.failed > 0) out += fmt::format("{} of {} failed\n", j.failed, counted(j.runs, "run"));
  out +=
      fmt::format("one host: {}; two hosts: {}; the job itself: {}; no host: {}\n", share_text(j.summary.one),
                  share_text(j.summary.two), share_text(j.summary.job), share_text(j.summary.no_host));
  out += notes_text(judge_notes(view, runs, j));
  if (j.verdict == Verdict::kUndecided) out += "\n" + candidates_text(view, j);
  return out + next_text(view, j);
}

std::string judgement_json(const ReplayView& view, const std::vector<GroupRun>& runs, const Judgement& j) {
  JsonWriter w;
  w.object([&] {
    write_head(w, "culprit.replay.judgement/1", view);
    w.field("verdict", to_string(j.verdict));
    w.values("named", host_names(view.plan, j.named));
    w.member("probability", [&] {
      w.object([&] {
        w.field("one_host", j.summary.one);
        w.field("two_hosts", j.summary.two);
        w.field("job", j.summary.job);
        w.field("no_host", j.summary.no_host);
      });
    });
    w.list("candidates", j.candidates, [&](uint32_t host) {
      w.object([&] {
        w.field("host", view.plan.hosts[host]);
        w.field("probability", j.summary.of_host[host]);
      });
    });
    w.values("returned", host_names(view.plan, j.returned));
    w.field("runs", j.runs);
    w.field("failed", j.failed);
    w.field("unexplained", j.unexplained);
    w.field("better_shows", j.better_shows > 0 ? std::optional<double>(j.better_shows) : std::nullopt);
    w.values("notes", judge_notes(view, runs, j));
    w.list("next", runs_of(j.next.groups, j.next_phase),
           [&](const GroupRun& run) { write_run(w, view, run); });
  });
  return w.finish() + "\n";
}

}  // namespace culprit::cli
