#include "app/jobs/announcer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace culprit::app {
namespace {

// Smaller changes of confidence are not announced.
constexpr double kNews = 0.1;
// A hardware rule with this confidence: later lines cannot withdraw its diagnosis.
constexpr double kCertain = 0.9;

bool is_certain(const Diagnosis& d) {
  return d.rule && d.category == Category::kHardware && d.confidence >= kCertain;
}

}  // namespace

Announcer::Face Announcer::face_of(const Diagnosis& d, bool verdict) {
  Face out{fmt::format("{}|{}", d.title, to_string(d.symptom)), d.confidence, verdict};
  for (const Suspect& s : d.hosts) out.text += "|" + s.host.value_or("");
  return out;
}

bool Announcer::differs(const Face& a, const Face& b) {
  return a.text != b.text || a.verdict != b.verdict || std::abs(a.confidence - b.confidence) >= kNews;
}

void Announcer::load(const Announced& before) {
  const auto [at, fresh] = known_.try_emplace(before.id);
  if (!fresh) return;  // reported since
  at->second.sentence = before.sentence;
  at->second.announced = Face{"", 0, before.verdict};
  at->second.before = true;
}

// Whether people would see a difference from the last report.
bool Announcer::compare(const Report& report, std::span<const AccusedTimes> accused) {
  bool changed = false;
  for (auto& [id, known] : known_) {
    known.was_there = std::exchange(known.there, false);
    known.changed = false;
  }
  for (size_t i = 0; i < report.diagnoses.size(); ++i) {
    const Diagnosis& d = report.diagnoses[i];
    const auto [at, fresh] = known_.try_emplace(d.id);
    DiagnosisState& known = at->second;
    if (std::exchange(known.before, false)) known.announced.reset();
    Face face = face_of(d, report.verdict == i);
    const bool differs_now = fresh || differs(face, known.retained);
    changed = changed || differs_now || !known.was_there;
    known.changed = differs_now || known.accused_ns != accused[i];
    known.there = true;
    known.sentence = d.headline;
    known.accused_ns = accused[i];
    if (differs_now) known.retained = std::move(face);
  }
  for (const auto& [id, known] : known_) changed = changed || (known.was_there && !known.there);
  return changed;
}

bool Announcer::may_announce(const Report& report, TimeNs now) {
  if (report.verdict && is_certain(report.diagnoses[*report.verdict])) return true;
  // If the clock was set back, the wait starts again.
  changed_ns_ = std::min(changed_ns_, now);
  pending_ns_ = std::min(pending_ns_, now);
  return now - changed_ns_ >= kSettle || now - pending_ns_ >= kSettleLongest;
}

std::vector<Announcement> Announcer::update(const Report& report, std::span<const AccusedTimes> accused,
                                            At at) {
  const TimeNs now = at.now;
  std::vector<Announcement> out;
  const bool changed = compare(report, accused);
  const bool pending = std::any_of(known_.begin(), known_.end(), [&at](const auto& one) {
    const DiagnosisState& known = one.second;
    if (known.before && !at.whole) return false;
    return known.there ? !known.announced || differs(known.retained, *known.announced)
                       : known.announced.has_value();
  });
  if (pending) {
    if (changed || changed_ns_ == kNoTime) changed_ns_ = now;
    if (pending_ns_ == kNoTime) pending_ns_ = now;
    if (at.at_once || may_announce(report, now)) announce(report, at.whole, out);
  }
  if (!pending || !out.empty()) pending_ns_ = changed_ns_ = kNoTime;
  keep(report, out);
  return out;
}

Announcement Announcer::announcement_of(const Diagnosis& d, const DiagnosisState& known) const {
  Announcement out;
  out.id = d.id;
  out.publish = out.settled = true;
  out.verdict = known.retained.verdict;
  out.sentence = d.headline;
  if (out.verdict) {
    out.change = verdict_id_.empty() ? Change::kNew : Change::kRevised;
    if (!verdict_id_.empty() && verdict_id_ != d.id) {
      out.replaced_verdict_id = verdict_id_;
      out.replaced_title = verdict_title_;
    }
  } else if (known.announced) {
    out.change = known.announced->verdict ? Change::kWithdrawn : Change::kRevised;
  }
  return out;
}

void Announcer::announce(const Report& report, bool whole, std::vector<Announcement>& out) {
  for (size_t i = 0; i < report.diagnoses.size(); ++i) {
    DiagnosisState& known = known_[report.diagnoses[i].id];
    if (known.announced && !differs(known.retained, *known.announced)) continue;
    out.push_back(announcement_of(report.diagnoses[i], known));
    out.back().index = i;
    known.announced = known.retained;
    known.changed = false;
  }
  for (auto& [id, known] : known_) {
    if (known.there || !known.announced || (known.before && !whole)) continue;
    Announcement removed;
    removed.id = id;
    removed.change = Change::kWithdrawn;
    removed.publish = removed.settled = true;
    removed.verdict = known.announced->verdict;
    removed.sentence = known.sentence;
    out.push_back(std::move(removed));
    known.announced.reset();
  }
  verdict_id_ = report.verdict ? report.diagnoses[*report.verdict].id : "";
  verdict_title_ = report.verdict ? report.diagnoses[*report.verdict].title : "";
}

// Adds changed diagnoses that are not announced now, and removed ones that were never announced.
void Announcer::keep(const Report& report, std::vector<Announcement>& out) {
  for (size_t i = 0; i < report.diagnoses.size(); ++i) {
    const DiagnosisState& known = known_[report.diagnoses[i].id];
    if (!known.changed) continue;
    Announcement retained = announcement_of(report.diagnoses[i], known);
    retained.index = i;
    retained.publish = false;
    retained.settled = known.announced && !differs(known.retained, *known.announced);
    out.push_back(std::move(retained));
  }
  for (auto it = known_.begin(); it != known_.end();) {
    const DiagnosisState& known = it->second;
    if (known.there || known.announced) {
      ++it;
      continue;
    }
    const bool reported =
        std::any_of(out.begin(), out.end(), [&](const Announcement& a) { return a.id == it->first; });
    if (!reported) {
      Announcement removed;
      removed.id = it->first;
      removed.change = Change::kWithdrawn;
      removed.sentence = known.sentence;
      out.push_back(std::move(removed));
    }
    it = known_.erase(it);
  }
}

void Announcer::new_finding(TimeNs now) {
  if (pending_ns_ != kNoTime) changed_ns_ = std::max(changed_ns_, now);
}

std::optional<TimeNs> Announcer::due_ns() const {
  if (pending_ns_ == kNoTime) return std::nullopt;
  return std::min(changed_ns_ + kSettle, pending_ns_ + kSettleLongest);
}

}  // namespace culprit::app
