#include "model/report_json_read.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <concepts>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "model/headline.h"
#include "model/json_text.h"
#include "model/verdict.h"

namespace culprit {
namespace {

using Json = nlohmann::json;

constexpr std::string_view kActivityLevels =
    "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz-_";

// Reads the fields of one object after another. The first error is kept; later reads then have no effect.
class Reader {
 public:
  std::string take_error() { return std::move(error_); }
  bool failed() const { return !error_.empty(); }

  const Json* find(const Json& object, const char* name) {
    if (!object.is_object()) return nullptr;
    const auto at = object.find(name);
    return at == object.end() || at->is_null() ? nullptr : &*at;
  }

  template <class Value>
  void field(const Json& object, const char* name, Value& out) {
    if (const Json* value = find(object, name); value && !read(*value, out)) wrong(name);
  }

  template <class Value>
  void field(const Json& object, const char* name, std::optional<Value>& out) {
    Value value{};
    const Json* found = find(object, name);
    if (!found) return;
    if (!read(*found, value)) return wrong(name);
    out = std::move(value);
  }

  template <class Enum>
  void word_field(const Json& object, const char* name, Enum& out) {
    std::string text;
    field(object, name, text);
    // An unknown value of a later version leaves the default.
    if (const auto value = from_word<Enum>(text)) out = *value;
  }

  template <class Each>
  void list(const Json& object, const char* name, Each each) {
    const Json* found = find(object, name);
    if (!found) return;
    if (!found->is_array()) return wrong(name);
    for (const Json& entry : *found) {
      if (failed()) return;
      if (!entry.is_object()) return wrong(name);
      each(entry);
    }
  }

  // Reads the points of a curve: one per step.
  template <class Value>
  void points(const Json& object, const char* name, size_t count, std::vector<Value>& out) {
    const Json* found = find(object, name);
    if (!found || !found->is_array() || found->size() != count) return wrong(name);
    for (const Json& entry : *found) {
      double value = std::numeric_limits<double>::quiet_NaN();
      if (entry.is_string() && (entry == "Infinity" || entry == "-Infinity"))
        value = entry == "Infinity" ? INFINITY : -INFINITY;
      else if (!entry.is_null() && !read(entry, value))
        return wrong(name);
      out.push_back(static_cast<Value>(value));
    }
  }

  void wrong(const char* name) {
    if (error_.empty()) error_ = fmt::format("'{}' is not of the type that it has in a report", name);
  }

 private:
  static bool read(const Json& value, std::string& out) {
    if (!value.is_string()) return false;
    out = value.get<std::string>();
    return true;
  }
  static bool read(const Json& value, bool& out) {
    if (!value.is_boolean()) return false;
    out = value.get<bool>();
    return true;
  }
  static bool read(const Json& value, double& out) {
    if (!value.is_number()) return false;
    out = value.get<double>();
    return true;
  }
  template <std::integral Integer>
  static bool read(const Json& value, Integer& out) {
    if (value.is_number_unsigned()) {
      const uint64_t n = value.get<uint64_t>();
      out = static_cast<Integer>(n);
      return std::in_range<Integer>(n);
    }
    if (!value.is_number_integer()) return false;
    const int64_t n = value.get<int64_t>();
    out = static_cast<Integer>(n);
    return std::in_range<Integer>(n);
  }
  template <class Value>
  static bool read(const Json& value, std::vector<Value>& out) {
    if (!value.is_array()) return false;
    for (const Json& entry : value) {
      Value one{};
      if (!read(entry, one)) return false;
      out.push_back(std::move(one));
    }
    return true;
  }

  std::string error_;
};

class ReportReader {
 public:
  Result<Report> run(const Json& json) {
    std::string schema;
    r_.field(json, "schema", schema);
    if (!schema.starts_with("culprit.report/"))
      return fail(ErrorCode::kInvalid, "no report: 'schema' is not culprit.report/1");
    if (const Json* job = r_.find(json, "job")) read_job(*job);
    r_.list(json, "diagnoses", [&](const Json& x) { out_.diagnoses.push_back(diagnosis(x)); });
    if (const Json* verdict = r_.find(json, "verdict")) read_verdict(*verdict);
    if (const Json* restart = r_.find(json, "restart")) read_restart(*restart, out_.restart.emplace());
    r_.field(json, "missing", out_.missing);
    if (r_.find(json, "notes")) r_.field(json, "notes", out_.notes);
    places(json, "suspects", out_.suspects);
    r_.list(json, "indicating", [&](const Json& x) { out_.indicating.push_back(indicating(x)); });
    read_steps(json);
    if (const Json* hang = r_.find(json, "hang")) read_hang(*hang);
    if (const Json* stacks = r_.find(json, "stacks")) read_stacks(*stacks);
    r_.list(json, "problems", [&](const Json& x) {
      Problem& p = out_.problems.emplace_back();
      r_.field(x, "file", p.file);
      r_.field(x, "offset", p.offset);
      r_.field(x, "what", p.what);
      if (r_.find(x, "about")) r_.word_field(x, "about", p.about);
    });
    if (const Json* charts = r_.find(json, "charts")) read_charts(*charts);
    if (const Json* cut = r_.find(json, "cut"); cut && cut->is_object())
      for (const auto& [list, count] : cut->items())
        if (count.is_number_unsigned()) out_.cut[list] = count.get<uint64_t>();
    // Older daemons and archives have no headline.
    if (r_.find(json, "headline")) {
      r_.field(json, "headline", out_.headline);
      r_.word_field(json, "state", out_.conclusion);
    } else {
      conclude(out_);
    }
    r_.field(json, "settled", out_.settled);
    if (r_.failed()) return fail(ErrorCode::kInvalid, r_.take_error());
    return std::move(out_);
  }

  Result<Verdict> verdict(const Json& x) {
    Verdict v;
    r_.field(x, "job", v.job);
    r_.field(x, "run", v.run);
    r_.field(x, "verdict", v.leads);
    r_.field(x, "settled", v.settled);
    std::string change;
    r_.field(x, "change", change);
    for (const Change one : {Change::kNew, Change::kRevised, Change::kWithdrawn})
      if (change == to_string(one)) v.change = one;
    if (const Json* before = r_.find(x, "replaces")) {
      r_.field(*before, "id", v.replaces_id);
      r_.field(*before, "title", v.replaces_title);
    }
    if (const Json* accused = r_.find(x, "accused_ns"); accused && accused->is_object())
      for (const auto& [host, time] : accused->items())
        v.accused_ns[host] = time.is_number_integer() ? time.get<TimeNs>() : kNoTime;
    v.diagnosis = diagnosis(x);
    if (r_.failed()) return fail(ErrorCode::kInvalid, r_.take_error());
    return v;
  }

 private:
  void read_job(const Json& x) {
    JobSummary& job = out_.job;
    r_.field(x, "id", job.id);
    const std::pair<const char*, uint64_t*> counts[] = {{"hosts", &job.hosts},
                                                        {"ranks", &job.ranks},
                                                        {"bytes", &job.bytes},
                                                        {"lines", &job.lines},
                                                        {"unplaced_lines", &job.unplaced_lines},
                                                        {"templates", &job.templates}};
    for (const auto& [name, count] : counts) r_.field(x, name, *count);
    r_.field(x, "first_ns", job.first_ns);
    r_.field(x, "last_ns", job.last_ns);
    if (x.contains("iteration")) r_.field(x, "iteration", job.iteration);
    r_.field(x, "run", job.run);
  }

  // "verdict" repeats one of the diagnoses.
  void read_verdict(const Json& x) {
    std::string id;
    r_.field(x, "id", id);
    for (size_t i = 0; i < out_.diagnoses.size(); ++i)
      if (out_.diagnoses[i].id == id) out_.verdict = i;
    if (out_.verdict) return;
    out_.verdict = 0;
    out_.diagnoses.insert(out_.diagnoses.begin(), diagnosis(x));
  }

  Diagnosis diagnosis(const Json& x) {
    Diagnosis d;
    r_.field(x, "id", d.id);
    r_.field(x, "rule", d.rule);
    r_.field(x, "detector", d.detector);
    r_.field(x, "found_by", d.found_by);
    r_.word_field(x, "about", d.about);
    r_.field(x, "title", d.title);
    if (r_.find(x, "headline")) r_.field(x, "headline", d.headline);
    if (const Json* at = r_.find(x, "code")) {
      CodePlace& code = d.code.emplace();
      r_.field(*at, "file", code.file);
      r_.field(*at, "line", code.line);
      r_.field(*at, "function", code.function);
    }
    r_.word_field(x, "category", d.category);
    r_.word_field(x, "component", d.component);
    r_.word_field(x, "symptom", d.symptom);
    std::string stage;
    r_.field(x, "stage", stage);
    d.stage = from_word<Stage>(stage);
    r_.field(x, "iteration", d.iteration);
    r_.field(x, "time_ns", d.time_ns);
    r_.field(x, "confidence", d.confidence);
    if (x.contains("step_share")) r_.field(x, "step_share", d.step_share);
    places(x, "hosts", d.hosts);
    links(x, d.links);
    r_.field(x, "why", d.why);
    r_.list(x, "evidence", [&](const Json& e) { d.evidence.push_back(evidence(e)); });
    if (const Json* by = r_.find(x, "confirmed")) {
      Confirmation& c = d.confirmed.emplace();
      r_.field(*by, "by", c.by);
      r_.field(*by, "hits", c.hits);
      r_.field(*by, "right", c.right);
      r_.field(*by, "first_by", c.first_by);
      r_.field(*by, "first_ns", c.first_ns);
      r_.field(*by, "this", c.right_here);
    }
    std::string state;
    r_.field(x, "state", state);
    d.state = from_word<VerdictState>(state);
    r_.field(x, "remedy", d.remedy);
    if (const Json* action = r_.find(x, "action")) {
      r_.word_field(*action, "kind", d.action.kind);
      r_.field(*action, "targets", d.action.targets);
    }
    if (const Json* restart = r_.find(x, "restart")) read_restart(*restart, d.restart);
    if (const Json* reported = r_.find(x, "said_by")) {
      SaidBy& by = d.said_by.emplace();
      std::vector<uint32_t> uids;
      std::vector<std::string> pods;
      r_.field(*reported, "uids", uids);
      r_.field(*reported, "pods", pods);
      by.uids.assign(uids.begin(), uids.end());
      for (const std::string& pod : pods) by.uids.push_back(Principal::pod(pod));
      r_.field(*reported, "hosts", by.hosts);
    }
    return d;
  }

  void read_restart(const Json& x, RestartAdvice& out) {
    r_.word_field(x, "kind", out.kind);
    r_.field(x, "sure", out.sure);
    r_.field(x, "why", out.why);
    r_.field(x, "hosts", out.hosts);
    r_.field(x, "devices", out.devices);
  }

  Evidence evidence(const Json& x) {
    Evidence e;
    r_.field(x, "host", e.host);
    r_.field(x, "file", e.file);
    r_.field(x, "line", e.line);
    r_.field(x, "offset", e.offset);
    r_.field(x, "text", e.text);
    r_.field(x, "rank", e.rank);
    std::optional<uint32_t> uid;
    r_.field(x, "uid", uid);
    if (uid) e.uid = *uid;
    std::string pod;
    r_.field(x, "pod", pod);
    if (!pod.empty()) e.uid = Principal::pod(pod);
    r_.field(x, "time_ns", e.time_ns);
    return e;
  }

  void places(const Json& object, const char* name, std::vector<Suspect>& out) {
    r_.list(object, name, [&](const Json& x) {
      Suspect& s = out.emplace_back();
      r_.field(x, "host", s.host);
      r_.field(x, "score", s.score);
      r_.field(x, "ranks", s.ranks);
      r_.field(x, "devices", s.devices);
      r_.field(x, "why", s.why);
      s.single = x.contains("rank");
      r_.field(x, "rank", s.rank);
      r_.field(x, "device", s.device);
    });
  }

  void links(const Json& object, std::vector<Link>& out) {
    r_.list(object, "links", [&](const Json& x) {
      Link& l = out.emplace_back();
      r_.field(x, "a", l.a);
      r_.field(x, "b", l.b);
      r_.field(x, "score", l.score);
    });
  }

  Indicating indicating(const Json& x) {
    Indicating out;
    r_.field(x, "template", out.template_text);
    r_.field(x, "score", out.score);
    r_.field(x, "count", out.count);
    r_.field(x, "why", out.why);
    r_.list(x, "where", [&](const Json& p) {
      LinePlace& place = out.where.emplace_back();
      r_.field(p, "host", place.host);
      r_.field(p, "file", place.file);
      r_.field(p, "line", place.line);
    });
    return out;
  }

  void read_steps(const Json& json) {
    r_.list(json, "iterations", [&](const Json& x) {
      IterationScore& i = out_.iterations.emplace_back();
      r_.field(x, "iteration", i.iteration);
      r_.field(x, "score", i.score);
      r_.field(x, "hosts", i.hosts);
    });
    r_.list(json, "irregularities", [&](const Json& x) { out_.irregularities.push_back(irregularity(x)); });
    r_.list(json, "numerics", [&](const Json& x) {
      NumericFault& n = out_.numerics.emplace_back();
      r_.field(x, "step", n.step);
      r_.field(x, "detected_at", n.detected_at);
      r_.word_field(x, "class", n.kind);
      r_.field(x, "ranks", n.ranks);
      r_.field(x, "metrics", n.metrics);
      r_.field(x, "confidence", n.confidence);
      r_.field(x, "mitigation", n.mitigation);
    });
    r_.list(json, "findings", [&](const Json& x) {
      SeenFinding& f = out_.findings.emplace_back();
      r_.field(x, "text", f.text);
      r_.field(x, "host", f.host);
      r_.field(x, "rank", f.rank);
      r_.field(x, "device", f.device);
      r_.field(x, "first_ns", f.first_ns);
      r_.field(x, "last_ns", f.last_ns);
    });
  }

  Irregularity irregularity(const Json& x) {
    Irregularity out;
    std::vector<int64_t> steps;
    r_.field(x, "steps", steps);
    if (steps.size() != 2) r_.wrong("steps");
    if (r_.failed()) return out;
    out.first_step = steps[0], out.last_step = steps[1];
    r_.field(x, "slowdown", out.slowdown);
    r_.field(x, "cost_ms", out.cost_ms);
    r_.word_field(x, "kind", out.kind);
    places(x, "suspects", out.suspects);
    links(x, out.links);
    r_.field(x, "comm", out.comm);
    r_.list(x, "chain", [&](const Json& c) { out.chain.push_back(chain_link(c)); });
    if (x.contains("sentence")) r_.field(x, "sentence", out.sentence);
    return out;
  }

  ChainLink chain_link(const Json& c) {
    ChainLink link;
    r_.field(c, "rank", link.rank);
    r_.field(c, "op", link.op);
    r_.field(c, "comm", link.comm);
    r_.field(c, "seq", link.seq);
    r_.field(c, "wait_ms", link.wait_ms);
    return link;
  }

  void clusters(const Json& x, std::vector<StackCluster>& out) {
    r_.list(x, "clusters", [&](const Json& c) {
      StackCluster& cluster = out.emplace_back();
      r_.field(c, "frames", cluster.frames);
      r_.field(c, "ranks", cluster.ranks);
      r_.field(c, "healthy", cluster.healthy);
    });
  }

  void read_stacks(const Json& x) {
    StackPicture& out = out_.stacks.emplace();
    r_.field(x, "sample", out.sample);
    r_.field(x, "processes", out.processes);
    r_.field(x, "rounds", out.rounds);
    r_.field(x, "first_ns", out.first_ns);
    r_.field(x, "last_ns", out.last_ns);
    clusters(x, out.clusters);
    r_.field(x, "why", out.why);
  }

  void read_hang(const Json& x) {
    Hang& hang = out_.hang.emplace();
    r_.field(x, "since_ns", hang.since_ns);
    clusters(x, hang.clusters);
    places(x, "suspects", hang.suspects);
    r_.word_field(x, "answer", hang.answer);
    r_.field(x, "sentence", hang.sentence);
    r_.field(x, "op", hang.op);
    r_.field(x, "group", hang.group);
    r_.field(x, "seq", hang.seq);
    r_.field(x, "waiting", hang.waiting);
    r_.field(x, "waited_for", hang.waited_for);
    r_.list(x, "scene", [&](const Json& one) {
      HangStateRow& row = hang.hang_state.emplace_back();
      r_.field(one, "group", row.group);
      r_.field(one, "op", row.op);
      r_.field(one, "seq", row.seq);
      r_.word_field(one, "place", row.place);
      r_.field(one, "doing", row.doing);
      r_.field(one, "ranks", row.ranks);
    });
  }

  void read_charts(const Json& x) {
    if (const Json* numerics = r_.find(x, "numerics")) {
      NumericCurves& c = out_.curves;
      r_.field(*numerics, "steps", c.steps);
      r_.list(*numerics, "curves", [&](const Json& one) {
        NumericCurves::Curve& curve = c.curves.emplace_back();
        r_.field(one, "metric", curve.metric);
        r_.points(one, "median", c.steps.size(), curve.median);
        r_.points(one, "worst", c.steps.size(), curve.worst);
        r_.field(one, "not_finite", curve.not_finite);
        if (std::any_of(curve.not_finite.begin(), curve.not_finite.end(),
                        [&](uint32_t at) { return at >= c.steps.size(); }))
          r_.wrong("not_finite");
      });
      r_.list(*numerics, "rows", [&](const Json& one) {
        NumericCurves::Row& row = c.rows.emplace_back();
        r_.field(one, "rank", row.rank);
        r_.field(one, "host", row.host);
        r_.points(one, "odd", c.steps.size(), row.odd);
      });
      r_.field(*numerics, "ranks", c.ranks);
    }
    if (const Json* comm = r_.find(x, "comm")) {
      CommSteps& c = out_.comm;
      r_.field(*comm, "steps", c.steps);
      r_.points(*comm, "step_ms", c.steps.size(), c.step_ms);
      r_.points(*comm, "without_ms", c.steps.size(), c.without_ms);
      r_.list(*comm, "rows", [&](const Json& one) {
        CommSteps::Row& row = c.rows.emplace_back();
        r_.field(one, "rank", row.rank);
        r_.field(one, "host", row.host);
        r_.field(one, "device", row.device);
        r_.points(one, "excess_ms", c.steps.size(), row.excess_ms);
      });
      r_.field(*comm, "ranks", c.ranks);
      r_.list(*comm, "pictures", [&](const Json& one) { c.pictures.push_back(picture(one)); });
    }
    if (const Json* activity = r_.find(x, "activity")) read_activity(*activity);
  }

  // Reads line counts written as characters (report_json.cc): a character becomes a count that maps to the
  // same character.
  void read_levels(const Json& x, const char* name, std::vector<uint32_t>& out) {
    std::string levels;
    r_.field(x, name, levels);
    for (const char c : levels) {
      const size_t level = kActivityLevels.find(c);
      if (level == kActivityLevels.npos) return r_.wrong(name);
      out.push_back(level == 0 ? 0 : static_cast<uint32_t>(std::lround(std::exp2((level - 1) / 2.0))));
    }
  }

  StepPicture picture(const Json& x) {
    StepPicture out;
    r_.field(x, "step", out.step);
    r_.field(x, "step_ms", out.step_ms);
    r_.field(x, "unit_ms", out.unit_ms);
    r_.field(x, "ops", out.ops);
    r_.field(x, "ranks", out.ranks);
    r_.list(x, "rows", [&](const Json& one) {
      StepPicture::Row& row = out.rows.emplace_back();
      r_.field(one, "rank", row.rank);
      r_.field(one, "host", row.host);
      r_.field(one, "device", row.device);
      r_.field(one, "of", row.of);
      r_.field(one, "begin", row.begin);
      r_.field(one, "wait_ms", row.wait_ms);
      r_.field(one, "awaited_ms", row.awaited_ms);
      r_.field(one, "path_ms", row.path_ms);
      std::vector<int64_t> parts;
      r_.field(one, "parts", parts);
      if (parts.size() % 5 != 0) return r_.wrong("parts");
      for (size_t i = 0; i < parts.size(); i += 5) {
        const auto n = [&](size_t k) {
          return static_cast<uint32_t>(std::clamp<int64_t>(parts[i + k], 0, UINT32_MAX));
        };
        row.parts.push_back({n(0), n(1), n(2), n(3), parts[i + 4]});
        if (row.parts.back().op >= out.ops.size()) r_.wrong("parts");
      }
    });
    r_.list(x, "chain", [&](const Json& one) { out.chain.push_back(chain_link(one)); });
    return out;
  }

  void read_activity(const Json& x) {
    Activity& a = out_.activity;
    r_.field(x, "first_ns", a.first_ns);
    r_.field(x, "bin_ns", a.bin_ns);
    r_.field(x, "hosts_all", a.hosts_all);
    r_.list(x, "hosts", [&](const Json& one) {
      HostActivity& row = a.hosts.emplace_back();
      r_.field(one, "host", row.host);
      read_levels(one, "lines", row.lines);
      read_levels(one, "indicating", row.indicating);
      row.indicating.resize(row.lines.size());
    });
    std::vector<std::vector<int64_t>> progress;
    r_.field(x, "progress", progress);
    for (const std::vector<int64_t>& point : progress) {
      if (point.size() != 2) return r_.wrong("progress");
      a.progress.emplace_back(point[0], point[1]);
    }
    r_.list(x, "phases", [&](const Json& one) {
      JobPhase& phase = a.phases.emplace_back();
      r_.word_field(one, "kind", phase.kind);
      r_.field(one, "first_ns", phase.first_ns);
      r_.field(one, "last_ns", phase.last_ns);
    });
    const Json* first = r_.find(x, "indicating_ns");
    if (!first) return;
    if (!first->is_array()) return r_.wrong("indicating_ns");
    for (size_t i = 0; i < std::min(first->size(), out_.indicating.size()); ++i)
      if (const Json& at = (*first)[i]; at.is_number_integer())
        out_.indicating[i].first_ns = at.get<TimeNs>();
      else if (!at.is_null())
        return r_.wrong("indicating_ns");
  }

  Reader r_;
  Report out_;
};

}  // namespace

Result<Report> report_from_json(std::string_view text) {
  const Json json = parse_json(text);
  if (json.is_discarded()) return fail(ErrorCode::kInvalid, "no report: it is not one JSON object");
  return ReportReader().run(json);
}

Result<Verdict> verdict_from_json(std::string_view text) {
  const Json json = parse_json(text);
  if (!json.is_object()) return fail(ErrorCode::kInvalid, "no diagnosis: it is not one JSON object");
  return ReportReader().verdict(json);
}

}  // namespace culprit
