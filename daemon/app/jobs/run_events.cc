#include "app/jobs/run_events.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/hash.h"

namespace culprit::app {
namespace {

// Minimum interval of finding events of one rule and host; repetitions are counted.
constexpr TimeNs kRepeatEvery = 10 * kNsPerSecond;
// Limit of rules and hosts whose findings are counted separately.
constexpr size_t kRepeats = 4096;
// Limit of accusations whose evidence has no usable time.
constexpr size_t kAccused = 4096;

// Identifies a finding when its bytes are read again.
std::string id_of(const Finding& f, const std::string& host, TimeNs now) {
  const Evidence none;
  const Evidence& e = f.evidence.empty() ? none : f.evidence.front();
  return hex64(hash64(fmt::format("{}\n{}\n{}\n{}\n{}\n{}", f.rule, host, e.file, e.line.value_or(0), e.text,
                                  f.first_ns == kNoTime ? now : f.first_ns)));
}

// Devices that a numeric diagnosis accuses, by permanent names if known.
std::vector<LiveEvent::Device> corrupting(const Diagnosis& d, const core::Engine* engine) {
  std::vector<LiveEvent::Device> out;
  if (d.detector != to_string(DetectorKind::kNumerics) || d.category != Category::kHardware || !engine)
    return out;
  for (const Suspect& s : d.hosts) {
    const std::string host = s.host.value_or("");
    const size_t before = out.size();
    for (const uint32_t rank : s.ranks)
      if (auto name = engine->device_name(rank)) out.push_back({std::move(*name), host});
    if (out.size() > before || host.empty()) continue;
    for (const uint32_t device : s.devices)
      out.push_back({fmt::format("device {} of {}", device, host), host});
    if (s.devices.empty()) out.push_back({host, host});
  }
  return out;
}

}  // namespace

LiveEvent RunEvents::event(LiveEventKind kind, TimeNs now) const {
  LiveEvent out;
  out.kind = kind;
  out.time_ns = now;
  out.job = job_.id;
  out.run = job_.run;
  out.known_until_ns = agents_.hosts().empty() ? now : std::max(job_.last_ns, agents_.known_until(now));
  return out;
}

bool RunEvents::add_findings(const std::vector<Finding>& findings, TimeNs now, std::vector<LiveEvent>& out) {
  bool fresh = false;
  for (const Finding& f : findings) {
    const std::string host = f.evidence.empty() ? "" : f.evidence.front().host.value_or("");
    const std::string key = f.rule + "@" + host;
    const auto known = repeats_.find(key);
    // the finding is dropped here, but the report has it
    if (known == repeats_.end() && repeats_.size() >= kRepeats) continue;
    Repeat& repeat = known == repeats_.end() ? repeats_[key] : known->second;
    fresh = fresh || repeat.known_until_ns == kNoTime;
    repeat.last_ns = now;
    if (repeat.known_until_ns != kNoTime && now - repeat.known_until_ns < kRepeatEvery) {
      ++repeat.more;
      continue;
    }
    LiveEvent e = event(LiveEventKind::kFinding, now);
    e.id = id_of(f, host, now);
    if (!host.empty()) agents_.add_agents_of(host, e.hosts);
    e.content = FindingChange{f, repeat.more};
    repeat = {now, now, 0};
    out.push_back(std::move(e));
  }
  if (fresh) announcer_.new_finding(now);
  return fresh;
}

// Time of the newest evidence in this diagnosis against the host. It comes from the spool or the lines, so it
// is the same after a restart.
TimeNs RunEvents::accused_ns(const Diagnosis& d, const std::string& host) {
  if (d.rule)
    if (const auto reported = repeats_.find(*d.rule + "@" + host); reported != repeats_.end())
      return reported->second.last_ns;
  TimeNs last = kNoTime;
  for (const Evidence& e : d.evidence)
    if (!e.host || *e.host == host) last = std::max(last, e.time_ns);
  if (last == kNoTime) last = d.time_ns;
  // A log's clock may be ahead of the daemon's: then the line's read time counts.
  if (last != kNoTime && last <= job_.last_ns) return last;
  const std::string key = fmt::format("{}@{}@{}", d.id, host, last);
  if (accused_.size() >= kAccused && !accused_.contains(key)) return job_.last_ns;
  return accused_.try_emplace(key, job_.last_ns).first->second;
}

AccusedTimes RunEvents::accused_times(const Diagnosis& d) {
  AccusedTimes out;
  for (const Suspect& s : d.hosts)
    if (s.host && !out.contains(*s.host)) out[*s.host] = accused_ns(d, *s.host);
  return out;
}

// `diagnosis`: null if it is gone.
LiveEvent RunEvents::diagnosis_event(const Announcement& a, const Diagnosis* diagnosis,
                                     const AccusedTimes& accused, TimeNs now) {
  LiveEvent e = event(diagnosis ? LiveEventKind::kDiagnosis : LiveEventKind::kDiagnosisWithdrawn, now);
  e.id = a.id;
  e.publish = a.publish;
  DiagnosisChange change;
  if (diagnosis) {
    change = {a, *diagnosis, accused};
    reported_[a.id] = {*diagnosis, accused};
  } else if (const auto last = reported_.extract(a.id)) {
    change = {a, std::move(last.mapped().diagnosis), std::move(last.mapped().accused_ns)};
  } else {
    change.announcement = a;
  }
  e.content = std::move(change);
  if (a.publish && a.change == Change::kWithdrawn && (a.verdict || diagnosis))
    e.sentence = "withdrawn: " + a.sentence;
  return e;
}

void RunEvents::load(Verdict before) {
  announcer_.load({before.id(), before.diagnosis.headline, before.leads});
  const std::string id = before.id();
  reported_.try_emplace(id, LastDiagnosis{std::move(before.diagnosis), std::move(before.accused_ns)});
}

void RunEvents::add_diagnoses(const Report& report, const core::Engine* engine, Announcer::At at,
                              std::vector<LiveEvent>& out) {
  std::vector<AccusedTimes> accused;
  for (const Diagnosis& d : report.diagnoses) accused.push_back(accused_times(d));
  for (const Announcement& a : announcer_.update(report, accused, at)) {
    const Diagnosis* d = a.index ? &report.diagnoses[*a.index] : nullptr;
    LiveEvent e = diagnosis_event(a, d, d ? accused[*a.index] : AccusedTimes(), at.now);
    if (d) {
      e.devices = corrupting(*d, engine);
      e.step = d->iteration;
      if (a.publish && a.verdict)
        e.sentence = (a.change == Change::kRevised ? "revised: " : "") +
                     fmt::format("{} ({:.0f} %); {}", d->headline, 100 * d->confidence, d->remedy);
      for (const Suspect& s : d->hosts)
        if (s.host) agents_.add_agents_of(*s.host, e.hosts);
    }
    out.push_back(std::move(e));
  }
}

}  // namespace culprit::app
