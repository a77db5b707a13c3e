#include "core/ras_states.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/limits.h"
#include "base/text.h"

namespace culprit::core {
namespace {

// Hosts whose addresses are known by name.
constexpr size_t kRasNames = 16'384;

bool is_hang(const Finding& f) {
  return f.kind == FindingKind::kFault && f.detector == DetectorKind::kComm && f.symptom == Symptom::kHang;
}

bool share_subject(const Finding& a, const Finding& b) {
  return std::any_of(a.subjects.begin(), a.subjects.end(), [&](const FindingSubject& s) {
    return s.rank && std::any_of(b.subjects.begin(), b.subjects.end(),
                                 [&](const FindingSubject& other) { return other.rank == s.rank; });
  });
}

// Another source named the same ranks: one fault with the evidence of both.
bool join(const Finding& f, std::vector<Finding>& findings) {
  for (Finding& known : findings) {
    if (!is_hang(known) || !share_subject(known, f)) continue;
    known.why.insert(known.why.end(), f.why.begin(), f.why.end());
    known.evidence.insert(known.evidence.end(), f.evidence.begin(), f.evidence.end());
    known.lines += f.lines;
    return true;
  }
  return false;
}

void add_suspects(const Finding& f, Report& report) {
  if (!report.hang) report.hang = Hang{f.first_ns, {}, {}};
  if (f.by_no_device) return;
  for (const FindingSubject& s : f.subjects) {
    const bool known =
        std::any_of(report.hang->suspects.begin(), report.hang->suspects.end(),
                    [&](const Suspect& old) { return old.rank == s.rank && old.host == s.host; });
    if (known || s.strength <= 0) continue;
    Suspect suspect;
    suspect.host = s.host;
    suspect.score = f.confidence;
    suspect.single = true;
    suspect.rank = s.rank;
    suspect.device = s.device;
    if (s.rank) suspect.ranks = {*s.rank};
    if (s.device) suspect.devices = {*s.device};
    suspect.why = f.why;
    report.hang->suspects.push_back(std::move(suspect));
  }
}

}  // namespace

void RasStates::add(RasInput input) {
  const RasState& state = input.state;
  ranks_ = std::max(ranks_, state.ranks);
  if (!state.address.empty() && !state.host.empty() && hosts_.size() < kRasNames)
    hosts_[state.address] = state.host;
  const auto known = of_host_.find(state.host);
  if (known == of_host_.end() && of_host_.size() >= limits::kRasHosts) {
    ++dropped_;
    const auto oldest = std::min_element(of_host_.begin(), of_host_.end(), [](const auto& a, const auto& b) {
      return a.second.state.at_ns < b.second.state.at_ns;
    });
    of_host_.erase(oldest);
  }
  of_host_[state.host] = std::move(input);
}

const RasInput* RasStates::newest() const {
  const RasInput* out = nullptr;
  for (const auto& [host, input] : of_host_)
    if (!out || input.state.at_ns > out->state.at_ns) out = &input;
  return out;
}

// Whether the state is of a standstill of the job, and not of a moment between two steps.
bool RasStates::counts(const RasState& state, const Moment& moment) {
  if (moment.now == kNoTime) return true;
  if (moment.moved_ns != kNoTime) return state.at_ns > moment.moved_ns;
  TimeNs since = state.still >= 2 ? state.still_since_ns : state.at_ns;
  for (const RasCommState& comm : state.comms)
    if (comm.answers >= 2) since = std::min(since, comm.since_ns);
  return state.at_ns - since >= moment.after_ns;
}

std::vector<std::string> RasStates::report(const Moment& moment, detect::Analysis& analysis,
                                           Report& report) const {
  const RasInput* const input = newest();
  if (!input || !counts(input->state, moment)) return {};
  ras::RasContext context;
  context.place = moment.place;
  context.file = input->file;
  context.offset = input->offset;
  context.once = moment.now == kNoTime;
  context.host = [this](const std::string& address) {
    const auto known = hosts_.find(address);
    return known == hosts_.end() ? std::optional<std::string>() : known->second;
  };
  ras::RasVerdict said = ras::judge(input->state, context);
  for (Finding& f : said.findings) {
    add_suspects(f, report);
    if (!join(f, analysis.findings)) analysis.findings.push_back(std::move(f));
  }
  if (const uint64_t dropped = input->state.dropped; dropped > 0)
    report.problems.push_back({input->file, input->offset,
                               counted(dropped, "part") + " of RAS's answer not understood or not kept"});
  return std::move(said.missing);
}

}  // namespace culprit::core
