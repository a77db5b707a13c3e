// Reports for the tests of their display: one that failed, and one whose every text is hostile.
#pragma once

#include <string>
#include <utility>

#include "base/time.h"
#include "model/report.h"

namespace culprit::cli {

inline constexpr TimeNs kStart = 1'763'690'000 * kNsPerSecond;
// Hostile content of a log line: colours, a window title, a cleared screen, right-to-left text, bad UTF-8, a
// page of its own.
inline const std::string kHostile =
    "\x1b[2J\x1b]0;owned\x07\r\x08\xc2\x9b"
    "31m \xe2\x80\xae evil \xff </pre><script>alert(1)</script>"
    "<img src=x onerror=alert(1)> \" onload=\"x ' & <style>*{}</style>";

inline Suspect suspect(const std::string& host, double score, std::vector<uint32_t> ranks = {}) {
  Suspect s;
  s.host = host;
  s.score = score;
  s.ranks = std::move(ranks);
  s.why = {"only its kernel reported it"};
  return s;
}

inline Report failed(
    const std::string& text = "NVRM: Xid (PCI:0000:9b:00): 79, GPU has fallen off the bus.") {
  Report r;
  r.job = {"llama", 64, 512, 9'000'000, 120'000, 7, 300, kStart, kStart + 600 * kNsPerSecond};
  Diagnosis d;
  d.id = "d1";
  d.rule = "nvidia.xid.79";
  d.title = "GPU has fallen off the bus";
  d.category = Category::kHardware;
  d.component = Component::kGpu;
  d.symptom = Symptom::kCrash;
  d.stage = Stage::kIterative;
  d.iteration = 1120;
  d.time_ns = kStart + 500 * kNsPerSecond;
  d.confidence = 0.95;
  d.hosts = {suspect("node-17", 0.9, {139})};
  d.why = {"no successful job has such a line"};
  d.evidence.push_back({"node-17", "runs/node-17.log", 4711, std::nullopt, text, d.time_ns, 139, {}});
  d.remedy = "Replace the GPU.";
  d.action = {ActionKind::kIsolate, {"node-17"}};
  r.diagnoses = {d};
  r.verdict = 0;
  r.suspects = d.hosts;
  r.indicating.push_back({"NVRM: Xid (PCI:<*>): 79",
                          0.9,
                          3,
                          {"spatial"},
                          {{"node-17", "runs/node-17.log", 4711}},
                          text,
                          d.time_ns});
  r.activity.first_ns = kStart;
  r.activity.bin_ns = 60 * kNsPerSecond;
  r.activity.hosts = {{"node-16", {5, 5, 5, 5, 5, 5, 5, 5, 5, 5}, std::vector<uint32_t>(10)},
                      {"node-17", {5, 5, 5, 5, 5, 5, 5, 5, 9, 0}, {0, 0, 0, 0, 0, 0, 0, 0, 9, 0}}};
  r.activity.progress = {{kStart, 0}, {kStart + 500 * kNsPerSecond, 1120}};
  return r;
}

// Every external text of the report is the hostile one.
inline Report hostile() {
  Report r = failed(kHostile);
  r.job.id = kHostile;
  Diagnosis d = r.diagnoses[0];
  d.id = d.title = d.remedy = kHostile;
  d.rule = d.detector = d.evidence[0].file = kHostile;
  d.why = {kHostile};
  d.hosts[0].host = d.evidence[0].host = kHostile;
  d.action.targets = {kHostile};
  d.confirmed = Confirmation{kHostile, 1, 1};
  r.diagnoses = {d, d};
  r.missing = {kHostile};
  r.suspects = d.hosts;
  r.suspects[0].why = {kHostile};
  Indicating& x = r.indicating[0];
  x.template_text = x.where[0].file = kHostile;
  x.where[0].host = kHostile;
  x.why = {kHostile};
  r.iterations = {{5, 0.5, {kHostile}}};
  Irregularity spell;
  spell.suspects = d.hosts, spell.links = {{kHostile, kHostile, 1}};
  r.irregularities = {spell};
  r.numerics = {{1, 2, NumericClass::kSdc, {1}, {kHostile}, 0.5, kHostile}};
  r.hang = Hang{kStart, {{{kHostile}, {1}, false}}, d.hosts};
  r.problems = {{kHostile, 1, kHostile}};
  r.cut = {{kHostile, 1}};
  r.activity.hosts[0].host = kHostile;
  return r;
}

}  // namespace culprit::cli
