#include "core/detect/hang/meetings.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/text.h"

namespace culprit::hang {
namespace {

constexpr uint64_t kNextLines = 8;  // lines of one message are near each other, if not adjacent
constexpr size_t kMeetings = 256;
constexpr size_t kMeetingQuotes = 4;
constexpr size_t kShown = 8;
constexpr size_t kSuspects = 256;
constexpr size_t kTensors = 1'000;        // per meeting; beyond that, the report counts as truncated
constexpr size_t kTensorsNamed = 4;       // tensors listed with the ranks that lack them
constexpr uint32_t kCountable = 1 << 16;  // larger meetings: no rank is inferred

std::string_view noun(MeetingUnit unit) { return unit == MeetingUnit::kTask ? "task" : "rank"; }

// "rank 2", "tasks 3, 5 and 2 more".
std::string names(MeetingUnit unit, const std::set<uint32_t>& who) {
  std::vector<uint32_t> shown;
  std::ranges::copy_n(who.begin(), static_cast<long>(std::min(who.size(), kShown)),
                      std::back_inserter(shown));
  std::string out = fmt::format("{}{} {}", noun(unit), who.size() == 1 ? "" : "s", fmt::join(shown, ", "));
  if (who.size() > kShown) out += fmt::format(" and {} more", who.size() - kShown);
  return out;
}
std::string capital(std::string text) {
  if (!text.empty() && text[0] >= 'a' && text[0] <= 'z') text[0] = static_cast<char>(text[0] - 0x20);
  return text;
}

// The numbers below `end` that are not in `there`; empty if the meeting is too large.
std::set<uint32_t> others(const std::set<uint32_t>& there, uint32_t end) {
  std::set<uint32_t> out;
  for (uint32_t rank = 0; end <= kCountable && rank < end; ++rank)
    if (!there.contains(rank)) out.insert(rank);
  return out;
}

}  // namespace

size_t Meetings::meeting_of(const MeetingLine& line) {
  const auto known = std::ranges::find(meetings_, line.what, &Meeting::what);
  if (known != meetings_.end()) return static_cast<size_t>(known - meetings_.begin());
  meetings_.push_back({line.what, line.unit, line.starts, line.lost});
  return meetings_.size() - 1;
}

void Meetings::add(const logs::RuleLine& from, MeetingLine line) {
  if (line.started) {
    started_ = line.started;
    return;
  }
  const auto open = open_.find(from.place.source);
  if (!line.opens && (open == open_.end() || from.text_line > open->second.line + kNextLines)) {
    // The first line of this list was lost.
    if (line.labelled || (!line.all && line.tensors.empty())) return;
    line.what = line.tensors.empty() ? "a barrier" : kTensor;
  }
  const bool own = line.opens || !line.what.empty();
  if (own && meetings_.size() >= kMeetings) return;
  const size_t at = own ? meeting_of(line) : open->second.meeting;
  open_[from.place.source] = {at, from.text_line};
  Meeting& m = meetings_[at];
  if (line.opens) m.tensors.clear(), m.cut = false;  // each report describes its own moment
  if (line.all) m.all = std::max(m.all.value_or(0), *line.all);
  if (line.came) m.came = std::max(m.came.value_or(0), *line.came);
  m.missing.insert(line.missing.begin(), line.missing.end());
  m.cut = m.cut || line.cut;
  m.waited_ns = std::max(m.waited_ns, line.waited_ns);
  const auto writer = log_.writers()[from.place.writer].rank;
  if (line.labelled && (!writer || m.what != kTensor)) return;
  for (MeetingLine::Tensor& tensor : line.tensors) {
    if (m.tensors.size() >= kTensors && !m.tensors.contains(tensor.name)) {
      m.cut = true;
      continue;
    }
    Tensor& one = m.tensors[tensor.name];
    if (line.labelled) one.missing.insert(*writer);
    one.there.insert(tensor.there.begin(), tensor.there.end());
    one.missing.insert(tensor.missing.begin(), tensor.missing.end());
  }
  const auto rank = line.rank ? line.rank : writer;
  const bool told = line.lost || line.what == kTensor;  // the coordinator reports about others
  if (line.opens && rank && !told) m.waiting.insert(*rank);
  if (m.lines.size() < kMeetingQuotes) m.lines.push_back(&from);
}

std::set<uint32_t> Meetings::logged() const {
  std::set<uint32_t> out;
  for (const logs::WriterStats& writer : log_.writers())
    if (writer.rank && writer.lines > 0) out.insert(*writer.rank);
  return out;
}

void Meetings::infer_from_tensors(Meeting& m) const {
  uint32_t end = static_cast<uint32_t>(log_.job().hosts.size()) * log_.job().ranks_per_host.value_or(0);
  for (const auto& [name, tensor] : m.tensors)
    for (const auto* const some : {&tensor.there, &tensor.missing})
      if (!some->empty()) end = std::max(end, *some->rbegin() + 1);
  if (const auto ranks = logged(); !ranks.empty()) end = std::max(end, *ranks.rbegin() + 1);
  // The ranks missing in every report; if some ranks are not listed, the ranks missing in any report.
  std::optional<std::set<uint32_t>> common;
  const auto add = [&](const std::set<uint32_t>& missing) {
    if (!common) {
      common = missing;
    } else if (m.cut) {
      common->insert(missing.begin(), missing.end());
    } else {
      std::erase_if(*common, [&](uint32_t rank) { return !missing.contains(rank); });
    }
  };
  // Among reports that list the arrived ranks: the ranks in any of them, and in all.
  std::set<uint32_t> there;
  std::optional<std::set<uint32_t>> everywhere;
  size_t named = 0;
  for (auto& [name, tensor] : m.tensors) {
    m.waiting.insert(tensor.there.begin(), tensor.there.end());
    if (!tensor.missing.empty()) {
      add(tensor.missing);
      continue;
    }
    there.insert(tensor.there.begin(), tensor.there.end());
    if (!everywhere)
      everywhere = tensor.there;
    else
      std::erase_if(*everywhere, [&](uint32_t rank) { return !tensor.there.contains(rank); });
    if (named++ < kTensorsNamed) tensor.missing = others(tensor.there, end);
  }
  if (everywhere) add(others(m.cut ? *everywhere : there, end));
  if (common) m.missing = std::move(*common);
}

void Meetings::infer_missing(Meeting& m) const {
  if (!m.tensors.empty()) return infer_from_tensors(m);
  if (!m.all || *m.all > kCountable) return;
  if (!m.missing.empty()) {
    const auto named = static_cast<uint32_t>(m.missing.size());
    if (!m.came && named <= *m.all) m.came = *m.all - named;
    return;
  }
  if (!m.came || *m.came >= *m.all) return;
  if (m.waiting.size() == *m.came && *m.waiting.rbegin() < *m.all) {
    m.missing = others(m.waiting, *m.all);
    m.why.push_back(fmt::format("all other {}s say that they wait there", noun(m.unit)));
    return;
  }
  const std::set<uint32_t> ranks = logged();
  if (ranks.size() != *m.came || *ranks.rbegin() >= *m.all || m.unit != MeetingUnit::kRank) return;
  m.missing = others(ranks, *m.all);
  m.why.push_back(fmt::format("of all ranks, only {} logged nothing", names(m.unit, m.missing)));
}

// Each rank waits in a tensor that another rank has not submitted.
std::optional<HangClaim> Meetings::state_order(const Meeting& m) const {
  if (m.cut || m.tensors.size() < 2 || !m.missing.empty()) return std::nullopt;
  HangClaim claim;
  claim.answer = HangAnswer::kMismatch;
  std::string each;
  for (const auto& [name, tensor] : m.tensors) {
    if (claim.ranks.size() >= 2 || tensor.missing.empty()) break;
    each +=
        fmt::format("{}{} did not submit {}", each.empty() ? "" : ", ", names(m.unit, tensor.missing), name);
    claim.ranks.push_back(*tensor.missing.begin());
  }
  if (claim.ranks.size() < 2) return std::nullopt;
  claim.title = "Ranks wait for each other in different tensors: " + each;
  claim.ranks.clear();
  claim.why.emplace_back("no rank lacks all of the tensors: ranks submit different ones");
  claim.call.op = m.what;
  claim.confidence = 0.75;
  return claim;
}

// If JAX runs one process per host, a task is a host.
void Meetings::place(const Meeting& m, HangClaim& claim) const {
  const JobFile& job = log_.job();
  const bool by_host =
      m.unit == MeetingUnit::kTask && m.all == job.hosts.size() && job.ranks_per_host.value_or(1) > 1;
  // Too many ranks for suspects: they share a cause.
  const bool few = m.missing.size() <= kSuspects;
  for (const uint32_t one : few ? m.missing : std::set<uint32_t>()) {
    FindingSubject subject;
    if (!by_host)
      subject.rank = one;
    else if (one < job.hosts.size())
      subject.host = job.hosts[one];
    else
      continue;
    claim.as->subjects.push_back(std::move(subject));
    if (!by_host) claim.ranks.push_back(one);
  }
  claim.as->by_no_device = claim.as->subjects.empty();
}

std::optional<HangClaim> Meetings::state(const Meeting& m) const {
  const bool counted = m.came && m.all && *m.came < *m.all;
  if (!counted && m.missing.empty()) return std::nullopt;
  HangClaim claim;
  Finding& f = claim.as.emplace();
  f.detector = DetectorKind::kComm;
  f.kind = FindingKind::kFault;
  f.symptom = m.starts ? Symptom::kLaunchFailure : Symptom::kHang;
  f.fatal = true;
  f.general = true;  // a fault stated by a line explains why the rank did not come
  f.action = ActionKind::kCheck;
  const std::string who = m.missing.empty() ? std::string() : names(m.unit, m.missing);
  if (m.lost) {
    f.role = FindingRole::
        kCascade;  // reported by its peers: the reason of its stop is in other findings, or unknown
    claim.title = capital(who) + " stopped sending heartbeats";
  } else if (!m.tensors.empty()) {
    claim.title = fmt::format("{} did not submit {}", capital(who), m.tensors.begin()->first);
    if (m.tensors.size() > 1)
      claim.title += m.cut ? std::string(" and more") : fmt::format(" and {} more", m.tensors.size() - 1);
    claim.title += ", for which others wait";
  } else if (counted) {
    claim.title = fmt::format("{} of {} {}s came to {}", *m.came, *m.all, noun(m.unit), m.what);
    if (!who.empty()) claim.title += fmt::format("; {} never did", who);
  } else {
    claim.title = fmt::format("{} never came to {}", capital(who), m.what);
  }
  claim.call.op = m.what;
  claim.why = m.why;
  const uint32_t world =
      static_cast<uint32_t>(log_.job().hosts.size()) * log_.job().ranks_per_host.value_or(0);
  const uint32_t started = started_.value_or(world);
  const bool too_large = m.all && m.unit == MeetingUnit::kRank && started > 0 && *m.all > started;
  if (too_large) {
    claim.why.push_back(fmt::format("the program waits for {} ranks, and the job has {}", *m.all, started));
    f.category = Category::kUser;
    f.component = Component::kUserConfig;
    f.action = ActionKind::kFix;
    f.by_no_device = true;
    f.remedy =
        "Make the world size of the program and the number of processes that are started equal: WORLD_SIZE, "
        "--nnodes, --nproc-per-node, the hosts of the job.";
  } else {
    place(m, claim);
    if (f.subjects.size() == 1 && f.subjects[0].host)
      claim.title += fmt::format(" ({})", *f.subjects[0].host);
    f.remedy = fmt::format("Read the log of {}, and look whether its process and its host run: it {}.",
                           who.empty() ? std::string("the one that did not come") : who,
                           m.starts ? "failed, hangs or was never started. If nothing starts it, the world "
                                      "size is too large"
                                    : "failed, hangs, or does work that the others do not do");
  }
  claim.confidence = too_large ? 0.8 : m.missing.empty() ? 0.5 : 0.65;
  f.title = claim.title;
  return claim;
}

void Meetings::finish(HangInput& out) {
  std::optional<HangClaim> best;
  const Meeting* of = nullptr;
  for (Meeting& m : meetings_) {
    infer_missing(m);
    auto claim = state(m);
    if (!claim) claim = state_order(m);
    if (!claim || (best && (!best->ranks.empty() || claim->ranks.empty()))) continue;
    best = std::move(claim);
    of = &m;
  }
  if (!best) return;
  for (const logs::RuleLine* line : of->lines) {
    Evidence evidence = detect::evidence_of(log_, *line);
    if (best->evidence.text.empty()) best->evidence = evidence;
    if (!best->as) continue;
    Finding& f = *best->as;
    if (line->own_time && (f.first_ns == kNoTime || line->place.time_ns < f.first_ns))
      f.first_ns = line->place.time_ns;
    if (line->own_time && line->place.time_ns != kNoTime)
      f.last_ns = std::max(f.last_ns, line->place.time_ns);
    f.evidence.push_back(std::move(evidence));
    ++f.lines;
  }
  for (const uint32_t rank : of->waiting) {
    if (of->missing.contains(rank)) continue;
    Observation observation;
    observation.rank = rank;
    observation.call.emplace();
    observation.call->op = of->what;
    observation.timed_out = true;
    observation.waited_ns = of->waited_ns;
    if (of->lines[0]->own_time) observation.at_ns = of->lines[0]->place.time_ns;
    out.observations.push_back(std::move(observation));
  }
  best->meets = true;
  out.claims.push_back(std::move(*best));
}

}  // namespace culprit::hang
