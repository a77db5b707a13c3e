#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/text.h"
#include "cli/jobs_table.h"
#include "cli/narrative.h"
#include "cli/reading.h"
#include "cli/remote.h"
#include "cli/rules.h"
#include "cli/run_facts.h"
#include "cli/verbs.h"
#include "model/json_writer.h"

namespace culprit::cli {
namespace {

constexpr const char* kDiffExamples = R"(
Examples:
  culprit diff runs/monday runs/tuesday
  culprit diff llama-70b-0412@0 llama-70b-0412@1      # two runs of a job under culpritd
  culprit diff --format json runs/monday runs/tuesday | jq .speed)";

struct DiffOptions {
  ReadingOptions reading;
  RemoteOptions remote;
  std::string before, after, format = "text";
  size_t top = 8;
  bool exit_code = false;
};

using Values = std::map<std::string, std::set<std::string>>;

struct Difference {
  std::optional<SpeedChange> speed;
  std::optional<ChangePoint> since;  // point in the later run
  Pace before, after;
  std::vector<std::string> hosts_in, hosts_out;
  std::vector<MessageCount> fresh, removed;  // the most frequent first
};

std::vector<std::string> only_in(const std::set<std::string>& a, const std::set<std::string>& b) {
  std::vector<std::string> out;
  std::ranges::set_difference(a, b, std::back_inserter(out));
  std::ranges::sort(out, [](const auto& x, const auto& y) { return natural_less(x, y); });
  return out;
}

Difference difference(const TwoRuns& runs) {
  Difference out;
  out.before = pace_of(runs.before.progress);
  out.after = pace_of(runs.after.progress);
  out.speed = compare(out.before, out.after);
  out.since = change_point(out.after);
  if (runs.before.knows_hosts && runs.after.knows_hosts) {
    out.hosts_in = only_in(runs.after.hosts, runs.before.hosts);
    out.hosts_out = only_in(runs.before.hosts, runs.after.hosts);
  }
  for (const MessageCount& m : runs.messages) {
    if (m.before == 0 && m.after > 0) out.fresh.push_back(m);
    if (m.after == 0 && m.before > 0) out.removed.push_back(m);
  }
  std::ranges::stable_sort(out.fresh, std::greater(), &MessageCount::after);
  std::ranges::stable_sort(out.removed, std::greater(), &MessageCount::before);
  return out;
}

std::string verdict_of(const RunFacts& run) {
  const Diagnosis* d = leading(run.report);
  return state_of(run.report) + (d ? ": " + title_of(*d) : "");
}

std::string joined(const std::set<std::string>* values) {
  return values && !values->empty() ? fmt::format("{}", fmt::join(*values, ", ")) : "not stated";
}

// Names whose values differ: (name, before, after).
std::vector<std::array<std::string, 3>> changed(const Values& before, const Values& after) {
  std::vector<std::array<std::string, 3>> out;
  std::set<std::string> names;
  for (const auto* values : {&before, &after})
    for (const auto& [name, unused] : *values) names.insert(name);
  for (const std::string& name : names) {
    const auto a = before.find(name), b = after.find(name);
    const auto* of_a = a == before.end() ? nullptr : &a->second;
    const auto* of_b = b == after.end() ? nullptr : &b->second;
    if (!of_a || !of_b || *of_a != *of_b) out.push_back({name, joined(of_a), joined(of_b)});
  }
  return out;
}

std::string speed_sentence(const Difference& d) {
  if (!d.speed) return "not compared: too few progress lines with times";
  const std::string medians =
      fmt::format("{:.1f} ms a step before, {:.1f} ms after", d.before.median_ms, d.after.median_ms);
  if (!d.speed->different)
    return fmt::format("no difference beyond the noise of ±{:.1f} % ({})", 100 * d.speed->bound, medians);
  const double percent = 100 * (d.speed->ratio - 1);
  return fmt::format("{:.1f} % {} ({}; noise ±{:.1f} %, {:.0f} % of stretches agree)", std::abs(percent),
                     percent > 0 ? "slower" : "faster", medians, 100 * d.speed->bound,
                     100 * (percent > 0 ? d.speed->effect : 1 - d.speed->effect));
}

std::string since_sentence(const ChangePoint& at, const Zone& zone) {
  const double percent = 100 * (at.change.ratio - 1);
  return fmt::format("the later run became {:.1f} % {} at iteration {}, {}", std::abs(percent),
                     percent > 0 ? "slower" : "faster", at.iteration,
                     format_time(at.at_ns, zone).substr(0, 19));
}

void add_messages(std::string& out, const char* title, const std::vector<MessageCount>& messages,
                  size_t top) {
  if (messages.empty()) return;
  out += fmt::format("\n{}\n", title);
  for (size_t i = 0; i < std::min(top, messages.size()); ++i)
    out += fmt::format("  {:>8}  {}\n", grouped(messages[i].before + messages[i].after),
                       to_terminal(shorten(messages[i].text, 160)));
  if (messages.size() > top) out += fmt::format("  and {} more\n", messages.size() - top);
}

std::string to_text(const TwoRuns& runs, const Difference& d, const DiffOptions& o) {
  std::string out = fmt::format("before: {}  {}\nafter:  {}  {}\n", to_terminal(runs.before.name),
                                to_terminal(verdict_of(runs.before)), to_terminal(runs.after.name),
                                to_terminal(verdict_of(runs.after)));
  out += "\nSpeed\n  " + speed_sentence(d) + "\n";
  if (d.since) out += "  " + since_sentence(*d.since, o.reading.diagnose.parse.zone) + "\n";
  out += fmt::format("\nHosts\n  {} before, {} after", runs.before.report.job.hosts,
                     runs.after.report.job.hosts);
  for (const auto& [word, hosts] : {std::pair("new", &d.hosts_in), std::pair("gone", &d.hosts_out)}) {
    if (hosts->empty()) continue;
    const std::span<const std::string> shown(hosts->data(), std::min(hosts->size(), o.top));
    out += fmt::format("\n  {}: {}", word, to_terminal(fmt::format("{}", fmt::join(shown, ", "))));
    if (hosts->size() > o.top) out += fmt::format(" and {} more", hosts->size() - o.top);
  }
  out += "\n";
  for (const auto& [title, rows] :
       {std::pair("Versions", changed(runs.before.versions, runs.after.versions)),
        std::pair("Settings", changed(runs.before.settings, runs.after.settings))}) {
    if (rows.empty()) continue;
    out += fmt::format("\n{}\n", title);
    for (const auto& [name, before, after] : rows)
      out += to_terminal(fmt::format("  {}: {} -> {}", name, before, after)) + "\n";
  }
  add_messages(out, "New messages", d.fresh, o.top);
  add_messages(out, "Vanished messages", d.removed, o.top);
  if (!runs.before.has_logs || !runs.after.has_logs)
    out += "\nMessages, versions and settings are compared where both runs are folders or files of logs.\n";
  return out;
}

std::string to_json(const TwoRuns& runs, const Difference& d, const DiffOptions& o) {
  JsonWriter w;
  const auto run = [&](const char* name, const RunFacts& facts, const Pace& pace) {
    w.member(name, [&] {
      w.object([&] {
        w.field("name", facts.name);
        w.field("state", state_of(facts.report));
        if (const Diagnosis* best = leading(facts.report))
          w.field("verdict", title_of(*best));
        else
          w.null("verdict");
        w.field("hosts", facts.report.job.hosts);
        if (pace.step_ms.empty())
          w.null("step_ms");
        else
          w.field("step_ms", pace.median_ms);
      });
    });
  };
  const auto change = [&](const SpeedChange& c) {
    w.field("ratio", c.ratio);
    w.field("noise", c.bound);
    w.field("effect", c.effect);
    w.field("different", c.different);
  };
  const auto values = [&](const char* name, const Values& before, const Values& after) {
    w.list(name, changed(before, after), [&](const auto& row) {
      w.object([&] {
        w.field("name", row[0]);
        w.field("before", row[1]);
        w.field("after", row[2]);
      });
    });
  };
  const auto messages = [&](const char* name, const std::vector<MessageCount>& list) {
    const std::span<const MessageCount> shown(list.data(), std::min(list.size(), o.top));
    w.list(name, shown, [&](const MessageCount& m) {
      w.object([&] {
        w.field("template", m.text);
        w.field("count", m.before + m.after);
      });
    });
  };
  w.object([&] {
    w.field("schema", "culprit.diff/1");
    run("before", runs.before, d.before);
    run("after", runs.after, d.after);
    if (d.speed)
      w.member("speed", [&] { w.object([&] { change(*d.speed); }); });
    else
      w.null("speed");
    if (d.since)
      w.member("since", [&] {
        w.object([&] {
          w.field("time_ns", d.since->at_ns);
          w.field("iteration", d.since->iteration);
          change(d.since->change);
        });
      });
    else
      w.null("since");
    w.values("hosts_in", d.hosts_in);
    w.values("hosts_out", d.hosts_out);
    values("versions", runs.before.versions, runs.after.versions);
    values("settings", runs.before.settings, runs.after.settings);
    messages("new", d.fresh);
    messages("vanished", d.removed);
  });
  return w.finish() + "\n";
}

int diff(DiffOptions& o) {
  if (Status status = resolve(o.reading); !status) return report_error(status.error().text), kUnable;
  const auto runs = read_two_runs(o.before, o.after, o.reading.diagnose, o.remote.client);
  if (!runs) return report_error(runs.error().text), kUnable;
  for (const Error& error : runs->errors) report_error(error.text);
  const Difference d = difference(*runs);
  if (!print(o.format == "json" ? to_json(*runs, d, o) : to_text(*runs, d, o))) return kUnable;
  const bool slower = (d.speed && d.speed->different) || d.since;
  const bool differs = slower || verdict_of(runs->before) != verdict_of(runs->after);
  return o.exit_code && differs ? kFound : kDone;
}

}  // namespace

void add_diff(Command& app, Run& run) {
  auto o = std::make_shared<DiffOptions>();
  Command* verb =
      app.add_subcommand("diff", "What changed between two runs: speed, hosts, versions, messages");
  verb->footer(kDiffExamples);
  verb->add_option("BEFORE", o->before, "A folder or file, a report NAME.json, or a daemon's JOB or JOB@RUN")
      ->required();
  verb->add_option("AFTER", o->after, "The same of the later run")->required();
  add_server_options(*verb, o->remote);
  verb->add_option("--format,-f", o->format, "text or json")->one_of({"text", "json"})->show_default();
  verb->add_option("--timezone", o->reading.timezone, "Zone of times without one, and of those shown")
      ->show_default();
  verb->add_option("--top", o->top, "Rows of each list")->between(1u, 1'000'000u)->show_default();
  verb->add_flag("--exit-code", o->exit_code, "Exit with 1 when speed or verdict differ");
  verb->callback([o, &run] { run = [o] { return diff(*o); }; });
}

}  // namespace culprit::cli
