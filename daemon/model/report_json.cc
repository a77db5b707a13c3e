#include "model/report_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <concepts>
#include <iterator>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "base/limits.h"
#include "model/json_writer.h"
#include "model/restart.h"

namespace culprit {
namespace {

// Adds the value forms that only reports have: bounded scores and curve points.
class Writer : public JsonWriter {
 public:
  // Writes points of a curve with this many digits. Null: not reported; infinities as in formats.md.
  template <class Range>
  void points(const char* name, const Range& range, int digits) {
    list(name, range, [&](double value) {
      if (std::isinf(value))
        write(value > 0 ? "Infinity" : "-Infinity");
      else if (std::isnan(value))
        write_null();
      else
        write_digits(value, digits);
    });
  }

  void score(const char* name, double value) { field(name, value > 0 ? std::min(value, 1.0) : 0.0); }
};

// Maximum of hosts with an activity row: more rows do not help on a page.
constexpr size_t kActivityHosts = 4096;

// Digits of a point of a curve, and of a shade.
constexpr int kCurveDigits = 7, kShadeDigits = 3;

double value_at(const auto& values, size_t i) {
  return i < values.size() ? static_cast<double>(values[i]) : std::numeric_limits<double>::quiet_NaN();
}

// Thins the steps: each point shows its slowest step.
std::vector<size_t> shown_steps(const CommSteps& comm) {
  const size_t n = std::min(comm.steps.size(), limits::kNumericPoints);
  std::vector<size_t> out(n);
  for (size_t point = 0; point < n; ++point) {
    size_t& slowest = out[point] = point * comm.steps.size() / n;
    for (size_t i = slowest + 1; i < (point + 1) * comm.steps.size() / n; ++i)
      if (value_at(comm.step_ms, i) > value_at(comm.step_ms, slowest)) slowest = i;
  }
  return out;
}

class ReportWriter {
 public:
  explicit ReportWriter(const Report& report) : report_(report) {}

  static std::string one(const Diagnosis& d) {
    const Report none;
    ReportWriter writer(none);
    writer.diagnosis(d);
    return writer.w_.finish();
  }

  std::string run(Charts charts) {
    w_.object([&] {
      w_.field("schema", "culprit.report/1");
      job(report_.job);
      w_.field("state", to_string(report_.conclusion));
      w_.field("headline", report_.headline);
      if (report_.settled) w_.field("settled", *report_.settled);
      if (report_.verdict && *report_.verdict < report_.diagnoses.size()) {
        w_.member("verdict", [&] { diagnosis(report_.diagnoses[*report_.verdict]); });
      } else {
        w_.null("verdict");
      }
      if (report_.restart) restart(*report_.restart);
      w_.values("missing", report_.missing);
      if (!report_.notes.empty()) w_.values("notes", report_.notes);
      w_.list("diagnoses", report_.diagnoses, [&](const Diagnosis& d) { diagnosis(d); });
      places("suspects", report_.suspects, false);
      w_.list("indicating", report_.indicating, [&](const Indicating& x) { indicating(x); });
      w_.list("iterations", report_.iterations, [&](const IterationScore& x) { iteration(x); });
      w_.list("irregularities", report_.irregularities, [&](const Irregularity& x) { irregularity(x); });
      w_.list("numerics", report_.numerics, [&](const NumericFault& x) { numeric(x); });
      if (!report_.findings.empty())
        w_.list("findings", report_.findings, [&](const SeenFinding& x) { seen(x); });
      hang();
      if (report_.stacks) stacks(*report_.stacks);
      w_.list("problems", report_.problems, [&](const Problem& x) { problem(x); });
      w_.member("cut", [&] {
        w_.object([&] {
          for (const auto& [list, left_out] : report_.cut) w_.field(list.c_str(), left_out);
        });
      });
      if (charts == Charts::kLeftOut) return;
      w_.member("charts", [&] {
        w_.object([&] {
          numeric_chart(report_.curves);
          comm_chart(report_.comm);
          activity_chart(report_.activity);
        });
      });
    });
    return w_.finish();
  }

 private:
  void job(const JobSummary& x) {
    w_.member("job", [&] {
      w_.object([&] {
        w_.field("id", x.id);
        if (x.run) w_.field("run", *x.run);
        w_.field("hosts", x.hosts);
        w_.field("ranks", x.ranks);
        w_.field("bytes", x.bytes);
        w_.field("lines", x.lines);
        w_.field("unplaced_lines", x.unplaced_lines);
        w_.field("templates", x.templates);
        w_.time("first_ns", x.first_ns);
        w_.time("last_ns", x.last_ns);
        if (x.iteration) w_.field("iteration", *x.iteration);
      });
    });
  }

  void seen(const SeenFinding& x) {
    w_.object([&] {
      w_.field("text", x.text);
      w_.field("host", x.host);
      w_.field("rank", x.rank);
      w_.field("device", x.device);
      w_.time("first_ns", x.first_ns);
      w_.time("last_ns", x.last_ns);
    });
  }

  void diagnosis(const Diagnosis& d) {
    w_.object([&] {
      w_.field("id", d.id);
      w_.field("rule", d.rule);
      w_.field("detector", d.detector);
      w_.values("found_by", d.found_by);
      w_.field("about", to_string(d.about));
      w_.field("title", d.title);
      if (!d.headline.empty()) w_.field("headline", d.headline);
      if (d.code) code(*d.code);
      w_.field("category", to_string(d.category));
      w_.field("component", to_string(d.component));
      w_.field("symptom", to_string(d.symptom));
      d.stage ? w_.field("stage", to_string(*d.stage)) : w_.null("stage");
      w_.field("iteration", d.iteration);
      w_.time("time_ns", d.time_ns);
      w_.score("confidence", d.confidence);
      if (d.step_share > 0) w_.score("step_share", d.step_share);
      places("hosts", d.hosts, false);
      links(d.links);
      w_.values("why", d.why);
      w_.list("evidence", d.evidence, [&](const Evidence& e) { evidence(e); });
      confirmed(d.confirmed, d.state.has_value());
      w_.field("remedy", d.remedy);
      w_.member("action", [&] {
        w_.object([&] {
          w_.field("kind", to_string(d.action.kind));
          w_.values("targets", d.action.targets);
        });
      });
      if (!d.restart.why.empty()) restart(d.restart);
      if (d.said_by) said_by(*d.said_by);
      if (d.state) w_.field("state", to_string(*d.state));
    });
  }

  void restart(const RestartAdvice& x) {
    w_.member("restart", [&] {
      w_.object([&] {
        w_.field("kind", to_string(x.kind));
        w_.field("sure", x.sure);
        w_.field("sentence", sentence(x));
        w_.field("why", x.why);
        w_.values("hosts", x.hosts);
        w_.values("devices", x.devices);
      });
    });
  }

  void code(const CodePlace& at) {
    w_.member("code", [&] {
      w_.object([&] {
        w_.field("file", at.file);
        w_.field("line", at.line);
        w_.field("function", at.function);
      });
    });
  }

  void said_by(const SaidBy& reported) {
    w_.member("said_by", [&] {
      w_.object([&] {
        std::vector<uint32_t> uids;
        std::vector<std::string> pods;
        for (const Principal& who : reported.uids)
          if (const auto uid = who.uid())
            uids.push_back(*uid);
          else
            pods.push_back(who.pod_id());
        w_.values("uids", uids);
        if (!pods.empty()) w_.values("pods", pods);
        w_.values("hosts", reported.hosts);
      });
    });
  }

  void confirmed(const std::optional<Confirmation>& c, bool of_daemon) {
    if (!c) return w_.null("confirmed");
    w_.member("confirmed", [&] {
      w_.object([&] {
        w_.field("by", c->by);
        w_.field("hits", c->hits);
        w_.field("right", c->right);
        if (!of_daemon) return;
        w_.text_or_null("first_by", c->first_by);
        w_.time("first_ns", c->first_ns);
        w_.field("this", c->right_here);
      });
    });
  }

  void evidence(const Evidence& e) {
    w_.object([&] {
      w_.field("host", e.host);
      w_.field("file", e.file);
      w_.field("line", e.line);
      w_.field("offset", e.offset);
      w_.field("text", e.text);
      if (e.uid && e.uid->is_pod()) w_.field("pod", e.uid->pod_id());
      if (e.uid && !e.uid->is_pod()) w_.field("uid", e.uid->uid());
      if (e.time_ns != kNoTime) w_.field("time_ns", e.time_ns);
      if (e.rank) w_.field("rank", *e.rank);
    });
  }

  // `single`: one entry per rank, with its rank and device.
  void places(const char* name, const std::vector<Suspect>& list, bool single) {
    w_.list(name, list, [&](const Suspect& s) {
      w_.object([&] {
        w_.field("host", s.host);
        w_.score("score", s.score);
        w_.values("ranks", s.ranks);
        w_.values("devices", s.devices);
        w_.values("why", s.why);
        if (!single) return;
        w_.field("rank", s.rank);
        w_.field("device", s.device);
      });
    });
  }

  void links(const std::vector<Link>& list) {
    w_.list("links", list, [&](const Link& l) {
      w_.object([&] {
        w_.field("a", l.a);
        w_.field("b", l.b);
        w_.score("score", l.score);
      });
    });
  }

  void indicating(const Indicating& x) {
    w_.object([&] {
      w_.field("template", x.template_text);
      w_.score("score", x.score);
      w_.field("count", x.count);
      w_.values("why", x.why);
      const std::span<const LinePlace> where(x.where.data(), std::min(x.where.size(), limits::kPlaces));
      w_.list("where", where, [&](const LinePlace& p) {
        w_.object([&] {
          w_.field("host", p.host);
          w_.field("file", p.file);
          w_.field("line", p.line);
        });
      });
    });
  }

  void iteration(const IterationScore& x) {
    w_.object([&] {
      w_.field("iteration", x.iteration);
      w_.score("score", x.score);
      w_.values("hosts", x.hosts);
    });
  }

  void irregularity(const Irregularity& x) {
    w_.object([&] {
      w_.values("steps", std::array{x.first_step, x.last_step});
      w_.field("slowdown", x.slowdown);
      w_.field("cost_ms", x.cost_ms);
      w_.field("kind", to_string(x.kind));
      places("suspects", x.suspects, true);
      links(x.links);
      w_.field("comm", x.comm);
      chain(x.chain);
      if (!x.sentence.empty()) w_.field("sentence", x.sentence);
    });
  }

  void numeric(const NumericFault& x) {
    w_.object([&] {
      w_.field("step", x.step);
      w_.field("detected_at", x.detected_at);
      w_.field("class", to_string(x.kind));
      w_.values("ranks", x.ranks);
      w_.values("metrics", x.metrics);
      w_.score("confidence", x.confidence);
      w_.field("mitigation", x.mitigation);
    });
  }

  void hang() {
    if (!report_.hang) return w_.null("hang");
    const Hang& hang = *report_.hang;
    w_.member("hang", [&] {
      w_.object([&] {
        w_.time("since_ns", hang.since_ns);
        clusters(hang.clusters);
        places("suspects", hang.suspects, true);
        w_.field("answer", to_string(hang.answer));
        w_.field("sentence", hang.sentence);
        w_.field("op", hang.op);
        w_.field("group", hang.group);
        number("seq", hang.seq);
        w_.values("waiting", hang.waiting);
        w_.values("waited_for", hang.waited_for);
        w_.list("scene", hang.hang_state, [&](const HangStateRow& row) { hang_state_row(row); });
      });
    });
  }
  void clusters(const std::vector<StackCluster>& all) {
    w_.list("clusters", all, [&](const StackCluster& c) {
      w_.object([&] {
        w_.values("frames", c.frames);
        w_.values("ranks", c.ranks);
        w_.field("healthy", c.healthy);
      });
    });
  }
  void stacks(const StackPicture& x) {
    w_.member("stacks", [&] {
      w_.object([&] {
        w_.field("sample", x.sample);
        w_.field("processes", x.processes);
        w_.field("rounds", x.rounds);
        w_.time("first_ns", x.first_ns);
        w_.time("last_ns", x.last_ns);
        clusters(x.clusters);
        w_.values("why", x.why);
      });
    });
  }
  void hang_state_row(const HangStateRow& row) {
    w_.object([&] {
      w_.field("group", row.group);
      w_.field("op", row.op);
      number("seq", row.seq);
      w_.field("place", to_string(row.place));
      w_.field("doing", row.doing);
      w_.values("ranks", row.ranks);
    });
  }
  // Writes an operation's number; null if unknown.
  void number(const char* name, int64_t seq) { seq < 0 ? w_.null(name) : w_.field(name, seq); }

  void problem(const Problem& x) {
    w_.object([&] {
      w_.field("file", x.file);
      w_.field("offset", x.offset);
      w_.field("what", x.what);
      if (x.about != About::kJob) w_.field("about", to_string(x.about));
    });
  }

  void numeric_chart(const NumericCurves& c) {
    if (c.steps.empty()) return w_.null("numerics");
    w_.member("numerics", [&] {
      w_.object([&] {
        w_.values("steps", c.steps);
        w_.list("curves", c.curves, [&](const NumericCurves::Curve& curve) {
          w_.object([&] {
            w_.field("metric", curve.metric);
            w_.points("median", curve.median, kCurveDigits);
            w_.points("worst", curve.worst, kCurveDigits);
            w_.values("not_finite", curve.not_finite);
          });
        });
        w_.list("rows", c.rows, [&](const NumericCurves::Row& row) {
          w_.object([&] {
            w_.field("rank", row.rank);
            w_.field("host", row.host);
            w_.points("odd", row.odd, kShadeDigits);
          });
        });
        w_.field("ranks", c.ranks);
      });
    });
  }

  void comm_chart(const CommSteps& c) {
    if (c.steps.empty()) return w_.null("comm");
    const std::vector<size_t> shown = shown_steps(c);
    const auto points = [&](const char* name, const auto& values, int digits) {
      std::vector<double> out;
      for (const size_t i : shown) out.push_back(value_at(values, i));
      w_.points(name, out, digits);
    };
    w_.member("comm", [&] {
      w_.object([&] {
        w_.list("steps", shown, [&](size_t i) { w_.write(c.steps[i]); });
        points("step_ms", c.step_ms, kCurveDigits);
        points("without_ms", c.without_ms, kCurveDigits);
        w_.list("rows", c.rows, [&](const CommSteps::Row& row) {
          w_.object([&] {
            w_.field("rank", row.rank);
            w_.field("host", row.host);
            w_.field("device", row.device);
            points("excess_ms", row.excess_ms, kShadeDigits);
          });
        });
        w_.field("ranks", c.ranks);
        if (!c.pictures.empty()) w_.list("pictures", c.pictures, [&](const StepPicture& x) { picture(x); });
      });
    });
  }

  void picture(const StepPicture& x) {
    w_.object([&] {
      w_.field("step", x.step);
      w_.field("step_ms", x.step_ms);
      w_.field("unit_ms", x.unit_ms);
      w_.values("ops", x.ops);
      w_.list("rows", x.rows, [&](const StepPicture::Row& row) { picture_row(row); });
      w_.field("ranks", x.ranks);
      chain(x.chain);
    });
  }

  // Writes `parts` as five numbers per part.
  void picture_row(const StepPicture::Row& row) {
    w_.object([&] {
      w_.field("rank", row.rank);
      w_.field("host", row.host);
      w_.field("device", row.device);
      if (row.of > 1) w_.field("of", row.of);
      w_.field("begin", row.begin);
      const auto ms = [&](const char* name, double value) {
        w_.member(name, [&] { w_.write_digits(value, kShadeDigits); });
      };
      ms("wait_ms", row.wait_ms);
      ms("awaited_ms", row.awaited_ms);
      ms("path_ms", row.path_ms);
      std::vector<int64_t> parts;
      for (const StepPicture::Part& p : row.parts)
        parts.insert(parts.end(), {p.own, p.wait, p.move, p.op, p.last});
      w_.values("parts", parts);
    });
  }

  void chain(const std::vector<ChainLink>& links) {
    w_.list("chain", links, [&](const ChainLink& c) {
      w_.object([&] {
        w_.field("rank", c.rank);
        w_.field("op", c.op);
        w_.field("comm", c.comm);
        w_.field("seq", c.seq);
        w_.field("wait_ms", c.wait_ms);
      });
    });
  }

  // Counts as characters: 0 is '0'; each further character is a factor of sqrt(2).
  static std::string levels(const std::vector<uint32_t>& counts) {
    constexpr std::string_view kLevels = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz-_";
    std::string out;
    for (const uint32_t n : counts) {
      const auto level = n == 0 ? size_t{0} : static_cast<size_t>(1 + std::lround(2 * std::log2(n)));
      out += kLevels[std::min(level, kLevels.size() - 1)];
    }
    return out;
  }

  void activity_chart(const Activity& a) {
    if (a.hosts.empty() && a.progress.empty()) return w_.null("activity");
    w_.member("activity", [&] {
      w_.object([&] {
        w_.time("first_ns", a.first_ns);
        w_.field("bin_ns", a.bin_ns);
        const std::span hosts(a.hosts.data(), std::min(a.hosts.size(), kActivityHosts));
        w_.list("hosts", hosts, [&](const HostActivity& h) {
          w_.object([&] {
            w_.field("host", h.host);
            w_.field("lines", levels(h.lines));
            if (std::ranges::any_of(h.indicating, [](uint32_t n) { return n > 0; }))
              w_.field("indicating", levels(h.indicating));
          });
        });
        w_.field("hosts_all", std::max<uint64_t>(a.hosts.size(), a.hosts_all));
        w_.list("progress", a.progress, [&](const std::pair<TimeNs, int64_t>& point) {
          w_.array(std::array{point.first, point.second}, [&](int64_t n) { w_.write(n); });
        });
        if (!a.phases.empty())
          w_.list("phases", a.phases, [&](const JobPhase& phase) {
            w_.object([&] {
              w_.field("kind", to_string(phase.kind));
              w_.time("first_ns", phase.first_ns);
              w_.time("last_ns", phase.last_ns);
            });
          });
        w_.list("indicating_ns", report_.indicating, [&](const Indicating& x) {
          x.first_ns == kNoTime ? w_.write(std::optional<int64_t>()) : w_.write(x.first_ns);
        });
      });
    });
  }

  const Report& report_;
  Writer w_;
};

}  // namespace

std::string to_json(const Report& report, Charts charts) { return ReportWriter(report).run(charts); }
std::string to_json(const Diagnosis& diagnosis) { return ReportWriter::one(diagnosis); }

}  // namespace culprit
