// What the controller would do about a report: eval_would_do [--alive] [--kernel NAME]... < report.json. The
// job runs on a cluster of 1,200 hosts in observe mode with every stage on, fails twice with the same
// diagnosis, and prints one JSON object: hosts to isolate, hosts to leave out, and orders by kind, once with
// the authors that the evidence shows (files NAME are the kernel's) and once as if an independent author
// confirmed each diagnosis. A slow host counts as measured often enough: the controller can only do less than
// this.
#include <algorithm>
#include <cstdio>
#include <iostream>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/recover/controller.h"
#include "model/json_writer.h"
#include "model/report_json_read.h"

namespace {

using namespace culprit;

constexpr uint32_t kClusterHosts = 1200;
constexpr TimeNs kBegin = 1'700'000'000 * kNsPerSecond, kMinute = 60 * kNsPerSecond;

struct Options {
  bool alive = false;
  std::vector<std::string> kernel_files;
};

struct Deeds {
  std::set<std::string> isolate, exclude;
  std::map<std::string_view, uint32_t> orders;  // by kind
  std::string fault = "none", why;
};

recover::ControllerOptions observing(const Options& options) {
  recover::ControllerOptions out;
  out.guard.stages = {true, true, true, true};
  for (const std::string& file : options.kernel_files) out.origins.kernel_files.push_back(file);
  return out;
}

// The times of a case of yesterday are those of now: its age is not the question.
Diagnosis at_time(Diagnosis d, TimeNs now) {
  d.time_ns = now;
  for (Evidence& e : d.evidence) e.time_ns = now;
  return d;
}

class Observer {
 public:
  Observer(const Options& options, bool independent)
      : options_(options), independent_(independent), controller_(observing(options)) {
    give(recover::ClusterSeen{kClusterHosts});
  }

  Deeds watch(const Diagnosis& d) {
    out_.fault = to_string(recover::case_of(d, observing(options_).origins).fault);
    for (uint32_t attempt = 0; attempt < 2; ++attempt) {
      ScheduledJob job{"slurm", "1", "", kBegin, attempt};
      recover::AttemptStarted started;
      started.job = job;
      for (const Suspect& s : d.hosts)
        if (s.host) started.hosts.push_back(*s.host);
      give(std::move(started));
      now_ += kMinute;
      if (!options_.alive) give(recover::AttemptEnded{job, recover::JobEnd::kFailed, {}, "FAILED"});
      recover::VerdictSeen seen;
      seen.job = job;
      seen.diagnosis = at_time(d, now_);
      seen.alive = options_.alive;
      seen.also.plugin = independent_;
      seen.measured = 2;
      seen.step_share = 1;
      give(std::move(seen));
      for (int i = 0; i < 30; ++i, now_ += kMinute) give(recover::Tick{});
    }
    const auto reasons = controller_.explain(recover::key_of({"slurm", "1", "", kBegin, 0}));
    if (!reasons.empty()) out_.why = reasons.back();
    return out_;
  }

 private:
  void give(recover::Input input) {
    const std::vector<recover::Input> inputs = {std::move(input)};
    for (const recover::Order& order : controller_.step(inputs, now_)) {
      const auto* note = std::get_if<recover::Note>(&order);
      if (note == nullptr || note->kind != recover::NoteKind::kWouldDo || !note->order) continue;
      ++out_.orders[recover::to_string(note->order->kind)];
      if (note->order->kind == OrderKind::kIsolate) out_.isolate.insert(note->order->target);
      if (note->order->kind == OrderKind::kRunAgain)
        out_.exclude.insert(note->order->excluded.begin(), note->order->excluded.end());
    }
  }

  const Options& options_;
  const bool independent_;
  recover::Controller controller_;
  TimeNs now_ = kBegin;
  Deeds out_;
};

void write(JsonWriter& json, std::string_view name, const Deeds& deeds) {
  json.member(name, [&] {
    json.object([&] {
      json.values("isolate", deeds.isolate);
      json.values("exclude", deeds.exclude);
      json.member("orders", [&] {
        json.object([&] {
          for (const auto& [kind, count] : deeds.orders) json.field(kind, count);
        });
      });
      json.field("class", deeds.fault);
      json.field("why", deeds.why);
    });
  });
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    if (word == "--alive")
      options.alive = true;
    else if (word == "--kernel" && i + 1 < argc)
      options.kernel_files.emplace_back(argv[++i]);
    else
      return std::fprintf(stderr, "eval_would_do [--alive] [--kernel NAME]... < report.json\n"), 2;
  }
  const std::string text((std::istreambuf_iterator<char>(std::cin)), std::istreambuf_iterator<char>());
  const Result<Report> report = report_from_json(text);
  if (!report) return std::fprintf(stderr, "%s\n", report.error().text.c_str()), 1;
  // A daemon announces a verdict and nothing else.
  const bool decided = report->verdict && *report->verdict < report->diagnoses.size();
  JsonWriter json;
  json.object([&] {
    for (const bool independent : {false, true})
      write(json, independent ? "confirmed" : "evidence",
            decided ? Observer(options, independent).watch(report->diagnoses[*report->verdict]) : Deeds{});
  });
  std::puts(json.finish().c_str());
  return 0;
}
