#include "core/diagnose/suspects.h"

#include <algorithm>
#include <map>

#include "core/diagnose/speakers.h"

namespace culprit::diagnose {
namespace {

using detect::kNowhere;
using detect::Unit;
using detect::View;

constexpr double kLeast = 0.05;  // a smaller weight accuses no host
constexpr double kHalf = 1.0;    // weight at which the score is one half
constexpr size_t kReasons = 32;  // for a suspect
// The weight of any number of claims: their score is at most that of one.
constexpr double kClaimedMost = kHalf * kClaimed / (1 - kClaimed);

void insert_sorted(std::vector<uint32_t>& list, uint32_t value) {
  const auto at = std::lower_bound(list.begin(), list.end(), value);
  if (at == list.end() || *at != value) list.insert(at, value);
}

class Court {
 public:
  Court(const View& view, const std::map<uint32_t, TimeNs>& torn_down) : view_(view), torn_down_(torn_down) {}

  void add_finding(const Finding& finding) {
    const Blame* reported = nullptr;  // reasons are added once per host, for any number of its ranks
    for (const FindingSubject& s : finding.subjects) {
      Blame& b = of(s, s.host);
      double strength = s.peer ? s.strength / 2 : s.strength;  // either end of a link may have the fault
      if (is_too_late(finding, b.unit)) strength = 0;
      accuse(b, finding, s, strength);
      if (&b != reported && strength > 0) add_reasons(finding, b);
      reported = &b;
      if (s.peer) accuse(of(s, s.peer), finding, {s.peer, {}, {}, {}, 0}, strength);
    }
  }

  std::vector<Blame> drain_blame() {
    std::vector<Blame> out;
    for (auto& [unit, b] : blames_) b.weight += std::min(b.claimed, kClaimedMost);
    for (auto& [unit, b] : blames_)
      if (b.weight >= kLeast) out.push_back(std::move(b));
    for (Blame& b : out) b.suspect.score = b.weight / (b.weight + kHalf);
    std::stable_sort(out.begin(), out.end(),
                     [](const Blame& x, const Blame& y) { return x.weight > y.weight; });
    return out;
  }

 private:
  bool is_too_late(const Finding& finding, uint32_t unit) const {
    const auto end = torn_down_.find(unit);
    return end != torn_down_.end() && finding.first_ns != kNoTime && finding.first_ns >= end->second &&
           finding.detector != DetectorKind::kSilence;
  }

  static void add_reasons(const Finding& finding, Blame& b) {
    for (const std::string& why : finding.why)
      if (b.suspect.why.size() < kReasons) b.suspect.why.push_back(why);
  }

  Blame& of(const FindingSubject& subject, const std::optional<std::string>& host) {
    const uint32_t unit = unit_of(subject, host);
    const std::string name = unit != kNowhere ? view_.hosts[unit].name
                             : host           ? *host
                                              : "rank " + std::to_string(subject.rank.value_or(0));
    const auto [at, fresh] = blames_.try_emplace({unit, name});
    Blame& b = at->second;
    if (!fresh) {
      if (!b.suspect.host) b.suspect.host = host;  // an earlier finding named only the rank
      return b;
    }
    b.unit = unit;
    b.name = name;
    if (unit == kNowhere || view_.by_rank)
      b.suspect.host = host;
    else
      b.suspect.host = name;
    return b;
  }

  uint32_t unit_of(const FindingSubject& subject, const std::optional<std::string>& host) const {
    if (host && !view_.by_rank) return view_.host_named(*host);
    const uint32_t rank = subject.rank ? view_.rank_numbered(*subject.rank) : kNowhere;
    return rank == kNowhere ? kNowhere : view_.ranks[rank].host;
  }

  void accuse(Blame& b, const Finding& finding, const FindingSubject& subject, double strength) {
    (is_claim(finding) ? b.claimed : b.weight) += strength;
    // A victim that only reports a failure is not the suspect part of its host.
    if (finding.role == FindingRole::kCascade && strength <= 0) return;
    if (subject.rank) insert_sorted(b.suspect.ranks, *subject.rank);
    if (subject.device) insert_sorted(b.suspect.devices, *subject.device);
    if (subject.rank) add_devices_of(*subject.rank, b);
    if (strength <= 0) return;
    b.silent = b.silent || finding.detector == DetectorKind::kSilence;
    const TimeNs onset = finding.first_ns;
    if (onset != kNoTime && (b.onset_ns == kNoTime || onset < b.onset_ns)) {
      b.onset_ns = onset;
      b.iteration = finding.iteration;
    }
  }

  void add_devices_of(uint32_t rank, Blame& b) const {
    const uint32_t unit = view_.rank_numbered(rank);
    if (unit == kNowhere) return;
    for (const uint32_t device : view_.ranks[unit].devices) insert_sorted(b.suspect.devices, device);
  }

  const View& view_;
  const std::map<uint32_t, TimeNs>& torn_down_;
  std::map<std::pair<uint32_t, std::string>, Blame> blames_;
};

}  // namespace

std::vector<Blame> blame(const View& view, const std::vector<Finding>& findings,
                         const std::map<uint32_t, TimeNs>& torn_down) {
  Court court(view, torn_down);
  for (const Finding& f : findings)
    if (f.kind != FindingKind::kIteration && f.kind != FindingKind::kNotice) court.add_finding(f);
  return court.drain_blame();
}

}  // namespace culprit::diagnose
