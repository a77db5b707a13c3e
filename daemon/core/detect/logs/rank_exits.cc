#include "core/detect/logs/rank_exits.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <iterator>
#include <limits>
#include <set>

#include "base/limits.h"
#include "base/text.h"

namespace culprit::detect {
namespace {

// If more than one in this many ranks exit without a message, the reason is a scheduler, a person or a
// shutdown.
constexpr size_t kFewOf = 3;
// Strength against the host: the exit shows the place of the fault, not its kind.
constexpr double kStrength = 1.5;
// Like a specific rule, because peers or a launcher confirm it.
constexpr double kConfidence = 0.8;
constexpr size_t kQuoted = 4;  // quoted lines of launchers
// Time within which peers of a lost rank stop: at their next collective operation, within a step.
constexpr TimeNs kWentOn = 30 * kNsPerSecond;
// Exits observed this close together have no order: rings and sockets are polled in turn.
constexpr TimeNs kTogether = kNsPerSecond / 2;

// "12:01:02 UTC"
std::string clock_of(TimeNs time) { return format_time(time).substr(11, 8) + " UTC"; }

// Ranks that logged a failure, their own or a peer's: a rule match or an exception.
struct Speakers {
  std::set<uint32_t> ranks;
  // Hosts on which a process logged its own fault under a local rank; its global rank is unknown.
  std::set<std::string> hosts;
  bool contains(const RankExited& of) const { return ranks.contains(of.rank) || hosts.contains(of.host); }
};

Speakers find_speakers(const View& view, bool one_host) {
  Speakers out;
  const logs::JobLog& log = *view.log;
  const auto add = [&](uint32_t writer, bool own) {
    const logs::WriterStats& w = log.writers()[writer];
    const std::optional<uint32_t> rank = w.rank || !one_host ? w.rank : w.device;
    if (rank)
      out.ranks.insert(*rank);
    else if (own && w.device && w.host)
      out.hosts.insert(*w.host);
  };
  for (const logs::RuleLine& line : log.rule_lines())
    if (!line.handled && line.known >= logs::Meaning::kEcho)
      add(line.place.writer, line.known == logs::Meaning::kFault);
  for (const logs::RuleLine& line : log.uncaught()) add(line.place.writer, true);
  for (const logs::ClusterId id : log.clusters()) {
    const logs::TemplateStats& t = log.templates()[id];
    if (t.shape.kind != logs::ShapeKind::kException || t.shape.handled) continue;
    for (const logs::GroupStats& group : t.groups) add(group.writer, false);
  }
  return out;
}

// Exit code that the launcher reports for a process: "exitcode  : 3 (pid: 15703)". Skips 1, which Python uses
// for any exception.
std::optional<int> exit_code_in(std::string_view text) {
  for (const std::string_view word : {"exitcode", "exit code", "exit status"}) {
    size_t at = text.find(word);
    if (at == text.npos) continue;
    at = text.find_first_not_of(" :=", at + word.size());
    if (at == text.npos) continue;
    int code = 0;
    const auto [end, error] = std::from_chars(text.data() + at, text.data() + text.size(), code);
    if (error == std::errc() && code > 1) return code;
  }
  return std::nullopt;
}

// Whether any rank outside `exited` reports a lost peer.
bool others_miss_a_peer(const View& view, const std::set<uint32_t>& removed) {
  const logs::JobLog& log = *view.log;
  return std::any_of(log.rule_lines().begin(), log.rule_lines().end(), [&](const logs::RuleLine& line) {
    const auto rank = log.writers()[line.place.writer].rank;
    return line.known == logs::Meaning::kEcho && !line.handled && !(rank && removed.contains(*rank));
  });
}

// "pid: 4702", "process 4702", "PID 4702". In a container pids are as small as ranks, so the word before the
// number counts too.
bool names_pid(std::string_view text, uint32_t pid) {
  const std::string number = std::to_string(pid);
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  for (size_t at = text.find(number); at != text.npos; at = text.find(number, at + 1)) {
    const size_t end = at + number.size();
    const size_t word = text.substr(0, at).find_last_not_of(" :=#[(");
    if (word == text.npos || word + 1 == at || (end < text.size() && is_digit(text[end]))) continue;
    const std::string_view before = text.substr(0, word + 1);
    if (before.ends_with("pid") || before.ends_with("PID") || before.ends_with("rocess")) return true;
  }
  return false;
}

// Whether a hang finding only reports that these ranks did not enter an operation.
bool waits_for(const Finding& f, const std::set<uint32_t>& removed) {
  if (f.kind != FindingKind::kFault || f.symptom != Symptom::kHang || f.subjects.empty()) return false;
  return f.rule.empty() && std::all_of(f.subjects.begin(), f.subjects.end(), [&](const FindingSubject& s) {
           return s.rank && removed.contains(*s.rank);
         });
}

// The rule's finding about the same death: a launcher, a shell or the kernel saw how that process ended.
Finding* reported_death(uint32_t rank, std::optional<uint32_t> pid, std::vector<Finding>& findings) {
  for (Finding& f : findings) {
    if (f.kind != FindingKind::kFault || f.rule.empty() || f.role != FindingRole::kRoot) continue;
    if (f.symptom != Symptom::kCrash || !f.general || f.category == Category::kUnknown) continue;
    const bool names =
        std::ranges::any_of(f.subjects, [&](const FindingSubject& s) { return s.rank == rank; });
    const bool same =
        pid && std::ranges::any_of(f.evidence, [&](const Evidence& e) { return names_pid(e.text, *pid); });
    if (names || same) return &f;
  }
  return nullptr;
}

// One exit, one finding: the rule gives the reason; the exit gives the rank and the time.
void join_death(Finding exit, Finding& seen) {
  const uint32_t rank = exit.subjects[0].rank.value_or(0);
  const std::string name = fmt::format("rank {}", rank);
  if (seen.title.find(name) == seen.title.npos) seen.title += fmt::format(", {}", name);
  const bool named =
      std::ranges::any_of(seen.subjects, [&](const FindingSubject& s) { return s.rank == rank; });
  if (!named) seen.subjects.push_back(exit.subjects[0]);
  std::ranges::move(exit.why, std::back_inserter(seen.why));
  if (!seen.iteration) seen.iteration = exit.iteration;
}

}  // namespace

void RankExits::add(const RankExited& exited, TimeNs now) {
  if (exited.rank >= limits::kCommRanks) return;
  if (exits_.size() >= limits::kWriters && !exits_.contains(exited.rank)) return;
  exits_[exited.rank] = {exited, now};
}

// Ranks that exited without a message and harmed the job. If the job continued for long, the exit did no
// harm. A rank that exited after a rank with a message was ended by its launcher or by the lost connection.
std::vector<const RankExits::Exit*> RankExits::wordless(const Job& job) const {
  const Speakers speakers = find_speakers(job.view, job.one_host);
  TimeNs first_with_words = std::numeric_limits<TimeNs>::max();
  for (const auto& [rank, exit] : exits_)
    if (speakers.contains(exit.of)) first_with_words = std::min(first_with_words, exit.time_ns);
  // torch's elastic agent logs this when it ends the remaining ranks.
  const auto closed = [&](const RankExited& of) {
    const auto& lines = job.view.log->rule_lines();
    return of.pid && std::any_of(lines.begin(), lines.end(), [&](const logs::RuleLine& line) {
             return line.text.find("closing signal") != line.text.npos && names_pid(line.text, *of.pid);
           });
  };
  std::vector<const Exit*> out;
  for (const auto& [rank, exit] : exits_) {
    const bool went_on = job.progressed_ns != kNoTime && job.progressed_ns - exit.time_ns > kWentOn;
    const bool followed = exit.time_ns - kTogether > first_with_words;
    if (!speakers.contains(exit.of) && !went_on && !followed && !closed(exit.of)) out.push_back(&exit);
  }
  return out;
}

Finding RankExits::fault_of(const View& view, const std::vector<const Exit*>& removed) {
  Finding f;
  f.detector = DetectorKind::kSilence;
  f.kind = FindingKind::kFault;
  f.fatal = true;
  f.confidence = kConfidence;
  f.symptom = Symptom::kCrash;
  f.action = ActionKind::kCheck;
  f.remedy =
      "Find out what ended the process: the kernel's out-of-memory lines, the exit status at its launcher or "
      "scheduler, somebody's kill.";
  for (const Exit* exit : removed) {
    const RankExited& of = exit->of;
    std::optional<int> code;
    for (const logs::RuleLine& line : view.log->rule_lines()) {
      if (!of.pid || !names_pid(line.text, *of.pid)) continue;
      if (!code) code = exit_code_in(line.text);
      if (f.evidence.size() < kQuoted) f.evidence.push_back(evidence_of(*view.log, line));
    }
    f.why.push_back(fmt::format(
        "Rank {} ({}{}) ended {}without a message at {}", of.rank, of.host.empty() ? "host unknown" : of.host,
        of.pid ? fmt::format(", pid {}", *of.pid) : "",
        code ? fmt::format("with exit code {} and ", *code) : "", clock_of(exit->time_ns)));
    f.first_ns = f.first_ns == kNoTime ? exit->time_ns : std::min(f.first_ns, exit->time_ns);
    f.last_ns = std::max(f.last_ns, exit->time_ns);
    FindingSubject s;
    if (!of.host.empty()) s.host = of.host;
    s.rank = of.rank;
    s.strength = kStrength / static_cast<double>(removed.size());
    f.subjects.push_back(std::move(s));
  }
  f.lines = f.evidence.size();
  f.title = f.why[0];
  if (removed.size() > 1) f.title += fmt::format(", and {} more", counted(removed.size() - 1, "rank"));
  return f;
}

void RankExits::judge(const Job& job, std::vector<Finding>& findings) const {
  if (exits_.empty() || job.outcome.ended_well) return;
  const std::vector<const Exit*> removed = wordless(job);
  const size_t all = std::max({job.ranks, job.view.ranks.size(), exits_.size()});
  if (removed.empty() || removed.size() > std::max<size_t>(1, all / kFewOf) || removed.size() == all) return;
  std::set<uint32_t> numbers;
  for (const Exit* exit : removed) numbers.insert(exit->of.rank);
  const bool missed = others_miss_a_peer(job.view, numbers);
  const bool waited =
      std::any_of(findings.begin(), findings.end(), [&](const Finding& f) { return waits_for(f, numbers); });
  if (!missed && !waited) return;
  Finding fault = fault_of(job.view, removed);
  fault.iteration = job.iteration;
  // A line of the kernel or the launcher is more specific.
  fault.general = std::any_of(findings.begin(), findings.end(), [](const Finding& f) {
    return f.kind == FindingKind::kFault && f.role == FindingRole::kRoot && !f.rule.empty();
  });
  if (missed)
    fault.why.emplace_back("its peers report that they lost or miss a peer, and nothing of their own");
  for (Finding& wait : findings)
    if (waits_for(wait, numbers)) {
      std::move(wait.why.begin(), wait.why.end(), std::back_inserter(fault.why));
      if (!fault.iteration) fault.iteration = wait.iteration;
    }
  std::erase_if(findings, [&](const Finding& wait) { return waits_for(wait, numbers); });
  if (Finding* seen = reported_death(removed[0]->of.rank, removed[0]->of.pid, findings);
      seen && removed.size() == 1)
    join_death(std::move(fault), *seen);
  else
    findings.push_back(std::move(fault));
}

}  // namespace culprit::detect
