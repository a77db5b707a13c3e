#include "simulate/cluster_report.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "model/json_writer.h"

namespace culprit::cli {
namespace {

using sim::ClusterOutcome;
using sim::Phase;

double hours(TimeNs ns) { return static_cast<double>(ns) / (3600.0 * kNsPerSecond); }
double share_of(TimeNs ns, const ClusterOutcome& o) {
  return o.wall_ns == 0 ? 0 : 100.0 * static_cast<double>(ns) / static_cast<double>(o.wall_ns);
}
double innocent_per_faulty(const ClusterOutcome& o) {
  return o.isolated_faulty == 0
             ? 0
             : static_cast<double>(o.isolated_innocent) / static_cast<double>(o.isolated_faulty);
}

const char* cause_name(size_t cause) { return cause == 0 ? "saves" : sim::incident_kinds()[cause - 1].name; }

std::string value_of(double value) {
  return value == static_cast<double>(static_cast<int64_t>(value)) ? fmt::format("{:.0f}", value)
                                                                   : fmt::format("{:g}", value);
}

std::string head_of(const sim::ClusterStudy& s) {
  const sim::ClusterParams& p = s.params;
  return fmt::format("{} with {} each ({} GPUs), {}, {}, {}, {} a day, {} from {}\n",
                     counted(p.hosts, "host"), counted(p.gpus_per_host, "GPU"), p.hosts * p.gpus_per_host,
                     counted(p.spares < 0 ? sim::spares_for(p) : p.spares, "spare"), counted(p.jobs, "job"),
                     counted(p.days, "day"), counted(p.incidents_per_day, "incident"), counted(s.runs, "run"),
                     fmt::format("seed {}", s.seed));
}

std::string three(const char* name, const std::string& waiting, const std::string& controlled,
                  const std::string& oracle) {
  return fmt::format("{:<44}{:>18}{:>12}{:>12}\n", name, waiting, controlled, oracle);
}

// The controller's lost time, by cause and phase. The parts add up to all that is not useful.
std::string lost_table(const ClusterOutcome& c) {
  std::string out = fmt::format("{:<20}", "hours lost, culprit");
  for (size_t i = 1; i < sim::kPhases; ++i) out += fmt::format("{:>12}", to_string(static_cast<Phase>(i)));
  out += fmt::format("{:>8}{:>7}\n", "all", "%");
  for (size_t cause = 0; cause < c.time.causes(); ++cause) {
    const TimeNs all = c.time.of_cause(cause);
    if (all == 0) continue;
    out += fmt::format("  {:<18}", cause_name(cause));
    for (size_t i = 1; i < sim::kPhases; ++i) {
      const TimeNs ns = c.time.of(cause, static_cast<Phase>(i));
      out += ns == 0 ? fmt::format("{:>12}", "-") : fmt::format("{:>12.1f}", hours(ns));
    }
    out += fmt::format("{:>8.1f}{:>7.2f}\n", hours(all), share_of(all, c));
  }
  return out;
}

std::string base_table(const sim::StudyResult& r) {
  const ClusterOutcome &w = r.base.waiting, &c = r.base.controlled, &o = r.base.oracle;
  const auto count = [&](const char* name, uint64_t ClusterOutcome::*field) {
    return three(name, fmt::format("{}", w.*field), fmt::format("{}", c.*field), fmt::format("{}", o.*field));
  };
  const auto number = [&](const std::string& name, auto value, const char* form) {
    const auto shown = [&](const ClusterOutcome& one) { return fmt::format(fmt::runtime(form), value(one)); };
    return three(name.c_str(), shown(w), shown(c), shown(o));
  };
  std::string out = three("", "requeue and wait", "culprit", "oracle");
  out += number(
      "ETTR, %", [](const ClusterOutcome& one) { return 100 * one.ettr(); }, "{:.2f}");
  out += count("incidents", &ClusterOutcome::incidents);
  out += count("failures of attempts", &ClusterOutcome::failures);
  out += count("attempts", &ClusterOutcome::attempts);
  out += count("hosts isolated, faulty", &ClusterOutcome::isolated_faulty);
  out += count("hosts isolated, innocent", &ClusterOutcome::isolated_innocent);
  out += count("  as one of a group", &ClusterOutcome::over_isolated);
  out += number("  per faulty one (ByteRobust: 6 to 7)", innocent_per_faulty, "{:.2f}");
  out += number(
      "  out of service, host hours", [](const auto& one) { return hours(one.innocent_ns); }, "{:.0f}");
  out += count("hosts isolated by what a user can write", &ClusterOutcome::isolated_by_user);
  out += count("hosts drained by people", &ClusterOutcome::drained_by_person);
  out += count("waits for a person", &ClusterOutcome::holds);
  out += "\n" + three("% of the time by phase", "", "", "");
  for (size_t i = 0; i < sim::kPhases; ++i) {
    const auto phase = static_cast<Phase>(i);
    out += number(
        fmt::format("  {}", to_string(phase)),
        [&](const auto& one) { return share_of(one.time.of(phase), one); }, "{:.2f}");
  }
  out += "\n" + three("hours lost by cause", "", "", "");
  for (size_t cause = 0; cause < w.time.causes(); ++cause) {
    if (w.time.of_cause(cause) == 0 && c.time.of_cause(cause) == 0) continue;
    out += number(
        fmt::format("  {}", cause_name(cause)),
        [&](const auto& one) { return hours(one.time.of_cause(cause)); }, "{:.1f}");
  }
  return out + "\n" + lost_table(c);
}

std::string controlled_row(const std::string& name, const ClusterOutcome& c, double base) {
  return fmt::format("{:<40}{:>8.2f}{:>8.2f}{:>9}{:>8}{:>9}{:>10.0f}{:>6}{:>8}\n", name, 100 * c.ettr(),
                     100 * (c.ettr() - base), c.attempts, c.isolated_faulty, c.isolated_innocent,
                     hours(c.innocent_ns), c.isolated_by_user, c.holds);
}

std::string controlled_head(const char* name) {
  return fmt::format("\n{:<40}{:>8}{:>8}{:>9}{:>8}{:>9}{:>10}{:>6}{:>8}\n", name, "ETTR, %", "change",
                     "attempts", "faulty", "innocent", "innocent h", "user", "person");
}

std::string parameter_table(const sim::StudyResult& r) {
  std::string out = fmt::format("\n{:<40}{:>16}{:>10}{:>8}{:>10}{:>9}\n", "parameter changed to",
                                "requeue and wait", "culprit", "change", "innocent", "user");
  for (const sim::StudyRow& row : r.parameters)
    out += fmt::format("{:<40}{:>16.2f}{:>10.2f}{:>8.2f}{:>10}{:>9}\n",
                       fmt::format("{} = {}", row.name, value_of(row.value)), 100 * row.waiting.ettr(),
                       100 * row.controlled.ettr(), 100 * (row.controlled.ettr() - r.base.controlled.ettr()),
                       row.controlled.isolated_innocent, row.controlled.isolated_by_user);
  return out;
}

void write_outcome(JsonWriter& w, const ClusterOutcome& o) {
  w.object([&] {
    w.field("ettr", o.ettr());
    w.field("wall_ns", o.wall_ns);
    w.field("incidents", o.incidents);
    w.field("without_effect", o.without_effect);
    w.field("failures", o.failures);
    w.field("attempts", o.attempts);
    w.field("isolated_faulty", o.isolated_faulty);
    w.field("isolated_innocent", o.isolated_innocent);
    w.field("over_isolated", o.over_isolated);
    w.field("isolated_by_user", o.isolated_by_user);
    w.field("innocent_ns", o.innocent_ns);
    w.field("drained_by_person", o.drained_by_person);
    w.field("waits_for_person", o.holds);
    w.member("time_ns", [&] {
      w.object([&] {
        for (size_t i = 0; i < sim::kPhases; ++i)
          w.field(to_string(static_cast<Phase>(i)), o.time.of(static_cast<Phase>(i)));
      });
    });
    w.member("lost_ns", [&] {
      w.object([&] {
        for (size_t cause = 0; cause < o.time.causes(); ++cause)
          w.field(cause_name(cause), o.time.of_cause(cause));
      });
    });
    w.member("lost_by_phase_ns", [&] {
      w.object([&] {
        for (size_t cause = 0; cause < o.time.causes(); ++cause)
          w.member(cause_name(cause), [&] {
            w.object([&] {
              for (size_t i = 1; i < sim::kPhases; ++i)
                w.field(to_string(static_cast<Phase>(i)), o.time.of(cause, static_cast<Phase>(i)));
            });
          });
      });
    });
  });
}

void write_rows(JsonWriter& w, const char* name, const std::vector<sim::StudyRow>& rows, bool value,
                bool waiting) {
  w.list(name, rows, [&](const sim::StudyRow& row) {
    w.object([&] {
      w.field("name", row.name);
      if (value) w.field("value", row.value);
      if (waiting) w.member("requeue_and_wait", [&] { write_outcome(w, row.waiting); });
      w.member("culprit", [&] { write_outcome(w, row.controlled); });
    });
  });
}

}  // namespace

std::string text_of(const sim::ClusterStudy& study, const sim::StudyResult& r) {
  std::string out = head_of(study) + "\n" + base_table(r);
  const double base = r.base.controlled.ettr();
  if (!r.ablation.empty()) {
    out += controlled_head("left out") + controlled_row("nothing", r.base.controlled, base);
    for (const sim::StudyRow& row : r.ablation) out += controlled_row(row.name, row.controlled, base);
  }
  if (!r.parameters.empty()) out += parameter_table(r);
  if (!r.thresholds.empty()) {
    out += controlled_head("threshold changed to");
    for (const sim::StudyRow& row : r.thresholds)
      out += controlled_row(fmt::format("{} = {}", row.name, value_of(row.value)), row.controlled, base);
  }
  return out;
}

std::string json_of(const sim::ClusterStudy& study, const sim::StudyResult& r) {
  JsonWriter w;
  w.object([&] {
    w.field("schema", "culprit.simulate.cluster/1");
    w.field("seed", study.seed);
    w.field("runs", study.runs);
    w.member("parameters", [&] {
      w.object([&] {
        for (const sim::ClusterParam& one : sim::cluster_params()) w.field(one.name, study.params.*one.value);
        for (const sim::Threshold& one : sim::cluster_thresholds()) w.field(one.name, one.get(study.control));
      });
    });
    w.member("requeue_and_wait", [&] { write_outcome(w, r.base.waiting); });
    w.member("culprit", [&] { write_outcome(w, r.base.controlled); });
    w.member("oracle", [&] { write_outcome(w, r.base.oracle); });
    write_rows(w, "left_out", r.ablation, false, false);
    write_rows(w, "changed_parameters", r.parameters, true, true);
    write_rows(w, "changed_thresholds", r.thresholds, true, false);
  });
  return w.finish() + "\n";
}

std::string list_of(const sim::ClusterStudy& study) {
  std::string out = "parameters\n";
  for (const sim::ClusterParam& one : sim::cluster_params())
    out += fmt::format("  {:<20}{:>8}  {}\n{:32}{}\n", one.name, study.params.*one.value, one.about, "",
                       one.source);
  out += "incidents, per million\n";
  for (const sim::IncidentKind& kind : sim::incident_kinds())
    out += fmt::format("  {:<20}{:>8}  {}\n", kind.name, kind.share_ppm, kind.source);
  out += "rules that --ablation leaves out\n";
  for (const sim::Ablation& one : sim::cluster_ablations())
    out += fmt::format("  {:<20}{}\n", one.name, one.about);
  out += "thresholds of the controller\n";
  for (const sim::Threshold& one : sim::cluster_thresholds())
    out += fmt::format("  {:<30}{:>10}  {}\n", one.name, value_of(one.get(study.control)),
                       one.chosen ? "chosen" : "with a source");
  return out;
}

}  // namespace culprit::cli
