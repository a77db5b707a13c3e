#include "common/report.h"

#include <algorithm>

namespace health {
namespace {

constexpr size_t kTracksMax = 4096;

std::string key_of(const Kind& kind, const Subject& subject) {
  return std::string(kind.id) + '\t' + std::to_string(subject.device) + '\t' + subject.part;
}

}  // namespace

bool Report::raised(const Kind& kind, const Subject& subject) const {
  const auto found = tracks_.find(key_of(kind, subject));
  return found != tracks_.end() && found->second.raised;
}

bool Report::changed(const Kind& kind, const Subject& subject, bool bad) {
  const std::string key = key_of(kind, subject);
  auto found = tracks_.find(key);
  if (found == tracks_.end()) {
    if (!bad || tracks_.size() >= kTracksMax) return false;
    found = tracks_.emplace(key, Track()).first;
  }
  Track& track = found->second;
  if (bad == track.raised) {
    track.looks = 0;
    if (!bad) tracks_.erase(found);
    return false;
  }
  if (++track.looks < (bad ? kind.raise_after : kind.clear_after)) return false;
  track.raised = bad;
  track.looks = 0;
  if (!bad) tracks_.erase(found);
  return true;
}

void Report::emit(const Kind& kind, const Subject& subject, uint32_t state, const Seen& seen) {
  culprit::Finding finding;
  finding.id = kind.id;
  finding.title = kind.title;
  finding.text = seen.text;
  finding.category = kind.category;
  finding.component = kind.component;
  finding.symptom = kind.symptom;
  finding.action = kind.action;
  finding.remedy = kind.remedy;
  finding.part = subject.part;
  finding.device = subject.device;
  finding.severity = kind.severity;
  finding.confidence = kind.confidence;
  finding.state = state;
  finding.values = seen.values;
  const int32_t error = host_.emit(finding);  // over the limit of findings: the daemon counts it
  if (error == CULPRIT_ERROR_INVALID) host_.log(CULPRIT_ERR, finding.id + ": refused by the daemon");
}

std::string Report::save() const {
  std::string state;
  for (const auto& [key, track] : tracks_) {
    if (track.raised) state += key + '\n';
  }
  return state;
}

void Report::load(const std::string& state) {
  size_t at = 0;
  while (at < state.size() && tracks_.size() < kTracksMax) {
    const size_t end = std::min(state.find('\n', at), state.size());
    if (end > at) tracks_[state.substr(at, end - at)].raised = true;
    at = end + 1;
  }
}

uint64_t Count::look(uint64_t value, int64_t now_ns) {
  const uint64_t grown = known_ && value > last_ ? value - last_ : 0;
  if (!known_) start_ns_ = now_ns;
  known_ = true;
  last_ = value;
  roll(now_ns);
  current_ += grown;
  total_ += grown;
  return grown;
}

void Count::roll(int64_t now_ns) {
  const int64_t passed = (now_ns - start_ns_) / window_ns_;
  if (passed <= 0) return;
  previous_ = passed == 1 ? current_ : 0;
  current_ = 0;
  start_ns_ += passed * window_ns_;
}

double Count::recent(int64_t now_ns) const {
  const double part = std::min(1.0, double(now_ns - start_ns_) / double(window_ns_));
  return double(current_) + double(previous_) * (1 - part);
}

}  // namespace health
