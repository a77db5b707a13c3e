#include "core/fuse/hang_state.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <iterator>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "base/limits.h"
#include "core/detect/hang/judge.h"
#include "core/detect/hang/line_reader.h"
#include "core/detect/hang/log_observations.h"
#include "core/detect/hang/meeting_lines.h"
#include "core/detect/hang/parallel_groups.h"
#include "core/detect/hang/preparing.h"
#include "core/detect/hang/watchdog_lines.h"
#include "core/fuse/hang_cause.h"

namespace culprit::core::fuse {
namespace {

constexpr const char* kSameBatches =
    "Give all ranks the same number of batches: drop or pad the last ones, or leave the loop only when a "
    "count "
    "that all ranks share ends it.";

constexpr double kHearsay = 0.3;  // strength of a few peer lines about a host

// The operation in which ranks wait, from a watchdog.
bool is_of_operation(Observes what) {
  switch (what) {
    case Observes::kCollective:
    case Observes::kOperations:
    case Observes::kAbsent:
    case Observes::kFrames:
      return true;
    default:
      return false;
  }
}

// Whether the hang state reads such lines.
bool is_read(Observes what) {
  switch (what) {
    case Observes::kMeeting:
    case Observes::kMembers:
    case Observes::kPeer:
      return true;
    default:
      return is_of_operation(what);
  }
}

uint32_t world_of(const JobFile& job) {
  const uint64_t ranks = uint64_t{job.ranks_per_host.value_or(0)} * job.hosts.size();
  return ranks <= limits::kCommRanks ? static_cast<uint32_t>(ranks) : 0;
}

// A fault that another rule or detector proves, no later than the first report of a wait.
bool came_first(const Finding& f, TimeNs reported) {
  if (f.kind != FindingKind::kFault || f.role != FindingRole::kRoot) return false;
  if (is_of_operation(f.observes)) return false;
  if (f.symptom == Symptom::kSlowdown || f.symptom == Symptom::kNumeric || f.symptom == Symptom::kHang)
    return false;
  // A kill does not come from a watchdog. Lines without a time have only approximate times.
  constexpr TimeNs kNear = 300 * kNsPerSecond;
  const TimeNs slack = is_kill(f) ? kNear : 0;
  return f.first_ns == kNoTime || reported == kNoTime || f.first_ns <= reported + slack;
}

// "srun: error: node-3: task 30: Killed", "local_rank: 2": the number after `word`. No rule's holes yet: a
// finding keeps the texts of its lines, not their holes, and a rule's own `local_rank` accuses a rank.
std::optional<uint32_t> number_behind(std::string_view text, std::string_view word) {
  const size_t at = text.find(word);
  if (at == text.npos) return std::nullopt;
  uint32_t out = 0;
  const auto [end, error] = std::from_chars(text.data() + at + word.size(), text.data() + text.size(), out);
  return error == std::errc() ? std::optional(out) : std::nullopt;
}

hang::RankExit exit_of(const Finding& f, const JobFile& job) {
  hang::RankExit exited;
  exited.kind = is_kill(f) ? hang::ExitKind::kKilled : hang::ExitKind::kException;
  for (const FindingSubject& subject : f.subjects)
    if (!exited.host) exited.host = subject.host;
  if (!f.evidence.empty()) exited.evidence = f.evidence[0];
  if (!exited.host) exited.host = exited.evidence.host;
  // A launcher's text names the rank; the launcher itself is not that rank.
  for (const Evidence& e : f.evidence) {
    if (exited.rank) break;
    if (e.text.find("srun") != e.text.npos) exited.rank = number_behind(e.text, " task ");
    auto local = number_behind(e.text, "local_rank: ");
    if (!local) local = number_behind(e.text, "local rank ");
    if (!exited.rank && local && exited.host) exited.rank = rank_of_local(job, *exited.host, *local);
  }
  if (!exited.rank && exited.kind != hang::ExitKind::kKilled) {
    for (const FindingSubject& subject : f.subjects)
      if (!exited.rank) exited.rank = subject.rank;
    if (!exited.rank) exited.rank = exited.evidence.rank;
  }
  exited.reason = f.title;
  exited.at_ns = f.first_ns;
  return exited;
}

class HangJudge {
 public:
  HangJudge(const HangContext& context, HangSources sources, detect::Analysis& analysis, Report& report)
      : context_(context), sources_(std::move(sources)), analysis_(analysis), report_(report) {}

  std::vector<std::string> run() {
    drop_frames();
    gather_lines();
    if (!failed()) input_ = {};
    const bool others = sources_.flight || sources_.ras || sources_.stacks;
    if (input_.observations.empty() && input_.claims.empty() && !others) return name_silent(), still_open();
    input_.world = world_of(context_.view.log->job());
    input_.ranks_per_host = context_.view.log->job().ranks_per_host.value_or(0);
    if (context_.rules) read_course();
    gather_records();
    gather_flight();
    gather_stacks();
    gather_ras();
    gather_silence();
    hang::complete_groups(context_.view.log->job(), input_.observations);
    add_exits();
    hang::HangJudgement judgement =
        hang::answer(input_, [&](uint32_t rank) { return describe_rank_first(rank, context_.place(rank)); });
    if (input_.observations.empty() && input_.claims.empty() && input_.exits.empty() && rest_.empty())
      return still_open();
    return conclude(std::move(judgement));
  }

 private:
  // What is missing, and the questions of lines that explain nothing here.
  std::vector<std::string> still_open() {
    for (diagnose::UnprovenSign& sign : sources_.unproven)
      if (!sign.missing.empty()) missing_.push_back(std::move(sign.missing));
    return std::move(missing_);
  }

  // Stack frames of a watchdog are evidence only if its message was lost.
  void drop_frames() {
    const auto is_frames = [](const Finding& f) { return f.observes == Observes::kFrames; };
    if (std::ranges::none_of(analysis_.findings, is_frames)) return;
    const bool told = std::ranges::any_of(analysis_.findings, [&](const Finding& f) {
      return f.kind == FindingKind::kFault && !f.rule.empty() && !is_frames(f);
    });
    if (told)
      std::erase_if(analysis_.findings, is_frames);
    else
      missing_.emplace_back("why the watchdog ended the process: its message stands above the frames");
  }

  // No rank waits: the peers of a silent rank failed when its connections closed.
  void name_silent() {
    const bool explained = std::ranges::any_of(analysis_.findings, [](const Finding& f) {
      return f.kind == FindingKind::kFault && f.role == FindingRole::kRoot;
    });
    if (explained || input_.exits.empty()) return;
    const hang::HangJudgement judgement =
        hang::answer(input_, [&](uint32_t rank) { return describe_rank_first(rank, context_.place(rank)); });
    if (judgement.by_silence) analysis_.findings.push_back(silent(judgement));
  }

  // --- sources ---

  void gather_lines() {
    if (!context_.rules) return;
    const auto rules = context_.rules->rules();
    const auto rule_of = [&](uint32_t rule) -> const rules::Rule* {
      return rule < rules.size() && is_read(rules[rule].observes) ? &rules[rule] : nullptr;
    };
    input_ = hang::observations_of(*context_.view.log, rule_of, analysis_.outcome.last_progress_ns);
  }

  // If the job recovered, its watchdogs prove no fault.
  bool failed() const {
    return std::ranges::any_of(analysis_.findings, [](const Finding& f) {
      return f.kind == FindingKind::kFault && f.symptom != Symptom::kSlowdown;
    });
  }

  // Progress that only counts preparation does not count.
  void read_course() {
    const auto& last = context_.view.log->last_progress();
    const bool prepares = last.empty() || hang::names_preparation(last.back().text);
    input_.iterated = analysis_.outcome.last_iteration >= 0 && !prepares;
    if (input_.iterated) input_.preparing.reset();
    if (!prepares || last.empty()) return;
    const logs::LogSample& bar = last.back();
    input_.preparing = hang::read_preparing(bar.text, context_.view.log->writers()[bar.place.writer].rank);
  }

  // The records' hang is one of several sources; its finding returns as part of the answer.
  void gather_records() {
    if (!report_.hang || report_.hang->answer == HangAnswer::kUnknown) return;
    const auto own = std::ranges::find_if(analysis_.findings, [](const Finding& f) {
      return f.kind == FindingKind::kFault && f.symptom == Symptom::kHang && f.role == FindingRole::kRoot &&
             f.detector == DetectorKind::kComm && f.rule.empty();
    });
    if (own == analysis_.findings.end()) return;
    hang::HangClaim claim =
        hang::stated_by(hang::ObservationSource::kRecords, report_.hang->answer, std::move(*own));
    if (claim.ranks.empty()) claim.ranks = report_.hang->waited_for;
    claim.call.op = report_.hang->op;
    claim.call.seq = report_.hang->seq;
    claim.group.description = report_.hang->group;
    analysis_.findings.erase(own);
    input_.claims.push_back(std::move(claim));
  }

  void gather_flight() {
    if (!sources_.flight) return;
    flight::FlightAnswer& answer = *sources_.flight;
    std::ranges::move(answer.problems, std::back_inserter(report_.problems));
    std::ranges::move(answer.missing, std::back_inserter(missing_));
    if (!answer.waits) return;
    std::ranges::move(answer.claims, std::back_inserter(input_.claims));
    std::ranges::move(answer.observations, std::back_inserter(input_.observations));
    if (answer.no_rank) rest_.push_back(std::move(*answer.no_rank));
    if (!report_.hang) report_.hang.emplace();
    if (report_.hang->since_ns == kNoTime) report_.hang->since_ns = answer.since_ns;
    report_.hang->clusters = std::move(answer.clusters);
  }

  void gather_stacks() {
    if (!sources_.stacks) return;
    stacks::StackAnswer& answer = *sources_.stacks;
    std::ranges::move(answer.missing, std::back_inserter(missing_));
    // Stacks alone, without proof of a standstill.
    const bool hangs = report_.hang || answer.hangs || !input_.observations.empty() || sources_.ras;
    if (!hangs && answer.answer != HangAnswer::kNoSingle) {
      std::ranges::move(answer.findings, std::back_inserter(rest_));
      return;
    }
    if (!report_.hang) report_.hang.emplace();
    size_t known = 0, seen = 0;
    for (const StackCluster& c : report_.hang->clusters) known += c.ranks.size();
    for (const StackCluster& c : answer.clusters) seen += c.ranks.size();
    if (seen >= known) report_.hang->clusters = std::move(answer.clusters);
    std::ranges::move(sources_.stack_observations.observations, std::back_inserter(input_.observations));
    std::ranges::move(sources_.stack_observations.exits, std::back_inserter(weak_exits_));
    for (Finding& f : answer.findings) {
      if (f.kind != FindingKind::kFault) continue;
      if (answer.answer == HangAnswer::kUnknown)
        rest_.push_back(std::move(f));
      else
        input_.claims.push_back(
            hang::stated_by(hang::ObservationSource::kStack, answer.answer, std::move(f)));
    }
  }

  void gather_ras() {
    if (!sources_.ras) return;
    ras::RasStates::RasJudgement& ras_answer = *sources_.ras;
    std::ranges::move(ras_answer.problems, std::back_inserter(report_.problems));
    std::ranges::move(ras_answer.verdict.missing, std::back_inserter(missing_));
    if (ras_answer.all_answer)
      for (uint32_t rank = 0; rank < input_.world; ++rank) input_.alive.insert(rank);
    for (size_t i = 0; i < ras_answer.verdict.findings.size(); ++i) {
      Finding& f = ras_answer.verdict.findings[i];
      if (!report_.hang) report_.hang = Hang{f.first_ns, {}, {}};
      const HangAnswer answer = ras_answer.verdict.answers[i];
      if (answer == HangAnswer::kUnknown) {
        rest_.push_back(std::move(f));
        continue;
      }
      if (answer == HangAnswer::kLeft) {
        removed_.push_back(std::move(f));
        continue;
      }
      for (FindingSubject& s : f.subjects)
        if (!s.rank && s.host && s.device)
          s.rank = rank_of_local(context_.view.log->job(), *s.host, *s.device);
      hang::HangClaim one = hang::stated_by(hang::ObservationSource::kRas, answer, std::move(f));
      one.weak = answer == HangAnswer::kMissing;
      if (one.ranks.empty() && one.as->subjects.empty())
        rest_.push_back(std::move(*one.as));
      else
        input_.claims.push_back(std::move(one));
    }
    for (hang::RankExit& exited : ras_answer.exits)
      if (!removed_.empty()) weak_exits_.push_back(std::move(exited));
  }

  // A silent rank among logging peers: the weakest evidence.
  void gather_silence() {
    for (auto f = analysis_.findings.begin(); f != analysis_.findings.end();) {
      const bool silent = f->rule.empty() && f->detector == DetectorKind::kSilence &&
                          f->kind == FindingKind::kFault && f->general && f->subjects.size() == 1 &&
                          f->subjects[0].rank;
      if (!silent || (input_.observations.empty() && !sources_.flight)) {
        ++f;
        continue;
      }
      hang::HangClaim one =
          hang::stated_by(hang::ObservationSource::kWatchdog, HangAnswer::kMissing, std::move(*f));
      one.weak = true;
      input_.claims.push_back(std::move(one));
      f = analysis_.findings.erase(f);
    }
  }

  void keep(std::vector<Finding> findings) {
    std::ranges::move(findings, std::back_inserter(analysis_.findings));
  }

  // Rule faults first: they state why a rank left. Then unresponsive processes.
  void add_exits() {
    TimeNs reported = kNoTime;
    for (const hang::Observation& observation : input_.observations)
      if (observation.source == hang::ObservationSource::kWatchdog && observation.at_ns != kNoTime &&
          (reported == kNoTime || observation.at_ns < reported))
        reported = observation.at_ns;
    for (size_t i = 0; i < analysis_.findings.size(); ++i) {
      const Finding& f = analysis_.findings[i];
      if (!came_first(f, reported) || is_echo_of_wait(f)) continue;
      hang::RankExit exited = exit_of(f, context_.view.log->job());
      // A catch-all fault of a waiting rank is the end of its wait.
      if (f.general && (!exited.rank || waits(*exited.rank))) continue;
      if (!first_) first_ = i;
      input_.exits.push_back(std::move(exited));
    }
    std::ranges::move(weak_exits_, std::back_inserter(input_.exits));
  }
  // A failure whose own lines say that its rank waited for others: a consequence of the others' fault.
  bool is_echo_of_wait(const Finding& f) {
    return f.general && !f.evidence.empty() &&
           std::ranges::all_of(f.evidence, [&](const Evidence& e) { return is_wait(e.text); });
  }
  bool is_wait(std::string_view text) {
    if (!context_.rules) return false;
    const auto rules = context_.rules->rules();
    return std::ranges::any_of(context_.view.log->rule_lines(), [&](const logs::RuleLine& line) {
      if (line.text != text || line.rule >= rules.size() || !is_read(rules[line.rule].observes)) return false;
      const hang::LineValues values = reader_.read(rules[line.rule], line);
      return hang::read_watchdog_line(values) || hang::read_meeting_line(values);
    });
  }

  bool waits(uint32_t rank) const {
    return std::ranges::any_of(input_.observations, [&](const hang::Observation& observation) {
      return observation.rank == rank && observation.call;
    });
  }

  // --- the answer ---

  std::vector<std::string> conclude(hang::HangJudgement judgement) {
    const bool by_fault = blame_fault(judgement);
    first_is_kill_ = first_ && is_kill(analysis_.findings[*first_]);
    fault_of_host(judgement);
    drop_echoes(judgement.hang.answer != HangAnswer::kUnknown);
    auto finding = by_fault ? std::nullopt : finding_of(judgement);
    if (auto joined = join_cause(finding, judgement))
      finding = std::move(joined);
    else if (first_ && judgement.hang.answer == HangAnswer::kLeft)
      finding.reset();  // replaced by the rule that says why the rank left
    if (judgement.hang.answer == HangAnswer::kLeft)
      for (Finding& f : analysis_.findings)
        if (f.kind == FindingKind::kFault && is_kill(f) && is_in_time(f, standstill(judgement).since_ns))
          name_ranks(judgement.hang.waited_for, f);
    if (finding) {
      give_way(*finding, judgement.led && input_.claims[*judgement.led].meets);
      suspect(*finding, judgement.hang);
      analysis_.findings.push_back(std::move(*finding));
    } else if (judgement.hang.answer == HangAnswer::kUnknown) {
      keep(std::move(rest_));
      keep(std::move(removed_));
    }
    std::ranges::move(judgement.missing, std::back_inserter(missing_));
    put(std::move(judgement.hang));
    return still_open();
  }

  // A machine fault without an exited rank: the rule's finding is the answer.
  bool blame_fault(hang::HangJudgement& judgement) {
    Finding* const other = first_ ? &analysis_.findings[*first_] : nullptr;
    if (!other || judgement.hang.answer != HangAnswer::kLeft || other->category != Category::kHardware)
      return false;
    judgement.hang.answer = HangAnswer::kUnfinished;
    if (judgement.by_process || !judgement.hang.waited_for.empty()) return false;
    const auto host = other->subjects.empty() ? std::optional<std::string>() : other->subjects[0].host;
    judgement.title = host ? fmt::format("{} on {}", other->title, *host) : other->title;
    judgement.hang.sentence = judgement.title + hang::waiting_words(judgement.hang);
    if (!input_.observations.empty()) other->symptom = Symptom::kHang;
    return true;
  }

  // Attributes a process killed on a host to the exited ranks, if all of them ran on this host.
  void name_ranks(const std::vector<uint32_t>& ranks, Finding& f) const {
    if (f.subjects.size() != 1 || f.subjects[0].rank || !f.subjects[0].host) return;
    FindingSubject one = f.subjects[0];
    std::vector<FindingSubject> named;
    for (const uint32_t rank : ranks) {
      const RankPlace at = context_.place(rank);
      if (at.host != one.host) continue;
      named.push_back({at.host, rank, at.device, {}, one.strength / static_cast<double>(ranks.size())});
    }
    if (named.size() == ranks.size() && !named.empty()) f.subjects = std::move(named);
  }

  // Joins the answer with the machine's line that explains it into one diagnosis.
  std::optional<Finding> join_cause(const std::optional<Finding>& answer, hang::HangJudgement& judgement) {
    const bool unknown = judgement.hang.answer == HangAnswer::kUnknown;
    if (unknown ? input_.observations.empty() && rest_.empty() : !answer) return std::nullopt;
    const size_t proven = analysis_.findings.size();
    std::vector<Finding> lines = analysis_.findings;
    for (const diagnose::UnprovenSign& sign : sources_.unproven) lines.push_back(sign.finding);
    const auto at = cause_of(standstill(judgement), lines);
    if (!at) return std::nullopt;
    Finding joined = unknown ? lines[*at] : with_cause(*answer, lines[*at]);
    if (*at < proven)
      analysis_.findings.erase(analysis_.findings.begin() + static_cast<long>(*at));
    else
      sources_.unproven.erase(sources_.unproven.begin() + static_cast<long>(*at - proven));
    first_.reset();
    judgement.missing.clear();
    if (unknown) {
      judgement.hang.answer = HangAnswer::kNoSingle;
      joined.by_no_device = true;
      joined.subjects.clear();
    }
    judgement.hang.sentence = joined.title + hang::waiting_words(judgement.hang);
    return joined;
  }
  Standstill standstill(const hang::HangJudgement& judgement) const {
    Standstill out{judgement.hang.answer, {}, {}, judgement.hang.since_ns};
    if (out.since_ns == kNoTime && report_.hang) out.since_ns = report_.hang->since_ns;
    for (const uint32_t rank : judgement.hang.waited_for)
      if (auto host = context_.place(rank).host) out.hosts.insert(std::move(*host));
    for (const hang::RankExit& exited : input_.exits)
      if (exited.pid && exited.rank && std::ranges::binary_search(judgement.hang.waited_for, *exited.rank))
        out.processes.insert(*exited.pid);
    return out;
  }

  // A rule's fault on the host of the missing rank is the reason.
  void fault_of_host(hang::HangJudgement& judgement) const {
    const bool unexplained = judgement.hang.answer == HangAnswer::kMissing ||
                             (judgement.hang.answer == HangAnswer::kLeft && judgement.by_process);
    if (!unexplained || !first_ || judgement.hang.waited_for.empty()) return;
    for (const hang::RankExit& exited : input_.exits) {
      if (exited.source != hang::ObservationSource::kWatchdog || exited.rank || !exited.host) continue;
      const bool same = std::ranges::all_of(
          judgement.hang.waited_for, [&](uint32_t rank) { return context_.place(rank).host == exited.host; });
      if (!same) continue;
      judgement.hang.answer = HangAnswer::kLeft;
      judgement.why.push_back(exited.reason);
      const uint32_t rank = judgement.hang.waited_for[0];
      judgement.title = describe_rank_first(rank, context_.place(rank)) + " left: " + exited.reason;
      return;
    }
  }

  std::optional<Finding> finding_of(const hang::HangJudgement& judgement) {
    if (judgement.hang.answer == HangAnswer::kUnknown) return std::nullopt;
    if (judgement.hang.answer == HangAnswer::kLeft) return left(judgement);
    Finding f =
        judgement.led && input_.claims[*judgement.led].as ? of_source(judgement) : of_hang_state(judgement);
    for (const size_t i : judgement.agree) join(input_.claims[i], f);
    if (!judgement.led || input_.claims[*judgement.led].source != hang::ObservationSource::kFlight)
      for (const std::string& why : judgement.why)
        if (std::ranges::find(f.why, why) == f.why.end()) f.why.push_back(why);
    f.confidence = judgement.confidence;
    if (!judgement.left_loop) return f;
    f.title = judgement.title;
    f.remedy = kSameBatches;
    return f;
  }

  // An unresponsive process; a fault found by a rule is itself the finding.
  std::optional<Finding> left(const hang::HangJudgement& judgement) {
    if (judgement.by_silence && !first_) return silent(judgement);
    const auto own = std::ranges::find_if(removed_, [&](const Finding& f) {
      return std::ranges::any_of(f.subjects, [&](const FindingSubject& s) {
        return s.rank && std::ranges::binary_search(judgement.hang.waited_for, *s.rank);
      });
    });
    if (own == removed_.end()) return std::nullopt;
    // A rule that states why the rank left is the finding; a kill of its process is joined to it
    // (join_cause).
    if (first_ && !first_is_kill_) return std::nullopt;
    return std::move(*own);
  }

  Finding silent(const hang::HangJudgement& judgement) const {
    Finding f = of_hang_state(judgement);
    f.symptom = Symptom::kCrash;
    f.general = true;
    f.confidence = judgement.confidence;
    for (FindingSubject& s : f.subjects) s.strength = 2 * f.confidence;
    f.remedy =
        "Look at how this rank's process ended: its own output, the launcher's, and the kernel's log of its "
        "host "
        "(out of memory, a fault of the device).";
    return f;
  }

  Finding of_source(const hang::HangJudgement& judgement) {
    Finding f = *input_.claims[*judgement.led].as;
    for (FindingSubject& s : f.subjects) {
      if (!s.rank || s.host) continue;
      const RankPlace at = context_.place(*s.rank);
      s.host = at.host;
      if (!s.device) s.device = at.device;
    }
    if (judgement.hang.answer == HangAnswer::kMissing && judgement.by_host_code &&
        f.category == Category::kUnknown) {
      f.category = Category::kUser;
      f.why.emplace_back("the process lives: it is stuck in its own code, not gone");
    }
    return f;
  }

  Finding of_hang_state(const hang::HangJudgement& judgement) const {
    Finding f;
    f.detector = DetectorKind::kComm;
    f.kind = FindingKind::kFault;
    f.symptom = Symptom::kHang;
    f.fatal = true;
    f.by_no_device = true;
    f.title = judgement.title;
    f.why = judgement.why;
    f.evidence = judgement.evidence;
    f.lines = f.evidence.size();
    for (const Evidence& e : f.evidence) {
      if (e.time_ns == kNoTime) continue;
      f.first_ns = f.first_ns == kNoTime ? e.time_ns : std::min(f.first_ns, e.time_ns);
      f.last_ns = std::max(f.last_ns, e.time_ns);
    }
    // Stacks in files have the file's time, which may be that of a copy.
    const TimeNs ended = context_.view.log->last_ns();
    if (ended != kNoTime && f.first_ns > ended && judgement.hang.since_ns != kNoTime)
      f.first_ns = judgement.hang.since_ns;
    if (judgement.hang.answer == HangAnswer::kMismatch) {
      f.category = Category::kUser;
      f.component = Component::kUserCode;
      f.action = ActionKind::kFix;
      f.remedy =
          "Make all ranks of a group call the same collectives in the same order with the same sizes: look "
          "for conditions on the rank, on data or on time round the calls named.";
    } else if (judgement.hang.answer == HangAnswer::kUnfinished) {
      unfinished(judgement, f);
    } else {
      missing(judgement, f);
    }
    return f;
  }

  void unfinished(const hang::HangJudgement& judgement, Finding& f) const {
    const bool named = !judgement.hang.waited_for.empty();
    f.category = Category::kHardware;
    // If several devices are involved, none is at fault alone.
    f.component = judgement.hang.waited_for.size() == 1 ? Component::kGpu : Component::kNetwork;
    f.general = !named;
    f.by_no_device = !named;
    f.action = ActionKind::kCheck;
    f.restart = named ? Restart::kElsewhere : Restart::kUnknown;
    f.remedy =
        "Read the kernel's logs of the hosts for errors of devices and adapters; test the links between "
        "them. Stacks tell whether a rank waits in another group.";
    if (named) add_places(judgement.hang.waited_for, f);
  }

  void missing(const hang::HangJudgement& judgement, Finding& f) const {
    f.general = !judgement.certain && !judgement.by_host_code;
    f.action = ActionKind::kCheck;
    f.remedy =
        "Take the stack of this rank (py-spy dump), and read its log: a data loader, a lock, a file system, "
        "or work that only this rank does.";
    f.by_no_device = judgement.hang.waited_for.empty();
    add_places(judgement.hang.waited_for, f);
    if (!judgement.by_host_code) return;
    f.category = Category::kUser;
    f.component = !judgement.prepares && (judgement.certain || !judgement.hang.waited_for.empty())
                      ? Component::kUnknown
                      : Component::kUserConfig;
    if (judgement.prepares) f.restart = Restart::kNever;  // the preparation would take as long again
    if (judgement.hang.waited_for.empty() || judgement.prepares)
      f.remedy =
          "Raise the timeout of the process group above the time of the preparation, or prepare before the "
          "group exists, on every host once.";
  }

  void add_places(const std::vector<uint32_t>& ranks, Finding& f) const {
    for (const uint32_t rank : ranks) {
      const RankPlace at = context_.place(rank);
      f.subjects.push_back({at.host, rank, at.device, {}, 0});
    }
  }

  // Another source about the same ranks: their position is stronger evidence than their absence.
  static void join(const hang::HangClaim& claim, Finding& f) {
    if (!claim.as) return;
    std::ranges::copy(claim.why, std::back_inserter(f.why));
    std::ranges::copy(claim.as->evidence, std::back_inserter(f.evidence));
    f.lines += claim.as->lines;
    const bool vague = f.category == Category::kUnknown || f.component == Component::kUnknown;
    if (!vague || claim.as->category == Category::kUnknown || claim.answer != HangAnswer::kMissing) return;
    f.category = claim.as->category;
    f.component = claim.as->component;
    f.remedy = claim.as->remedy;
    f.title = claim.title;
  }

  // A program fault has no suspects: its ranks are in `waited_for`.
  void suspect(Finding& f, const Hang& hang) {
    if (!report_.hang) report_.hang.emplace();
    report_.hang->suspects.clear();
    if (f.by_no_device || hang.answer == HangAnswer::kMismatch) return;
    for (FindingSubject& s : f.subjects) {
      s.strength = std::max(s.strength, 2 * f.confidence);
      Suspect one;
      one.host = s.host;
      one.score = f.confidence;
      one.single = true;
      one.rank = s.rank;
      one.device = s.device;
      if (s.rank) one.ranks = {*s.rank};
      if (s.device) one.devices = {*s.device};
      one.why = f.why;
      report_.hang->suspects.push_back(std::move(one));
    }
  }

  // Rules that match the same lines would only repeat the answer.
  void give_way(const Finding& answer, bool by_meeting) {
    std::erase_if(analysis_.findings, [&](const Finding& f) {
      if (f.observes == Observes::kAbsent || (by_meeting && f.observes == Observes::kMeeting)) return true;
      if (f.rule != answer.rule && is_echo_of_wait(f)) return true;
      return f.rule.empty() && f.detector == DetectorKind::kSilence && f.kind == FindingKind::kFault &&
             f.general && !answer.subjects.empty() && f.subjects.size() == 1 &&
             f.subjects[0].rank == answer.subjects[0].rank;
    });
  }

  // Only waiting ranks print. Templates that began when watchdogs timed out belong to the waiting ranks, and
  // accuse no host. Silence accuses no host either, if the hang state has judged which ranks are missing.
  void drop_echoes(bool answered) {
    const auto is_wait = [](const hang::Observation& observation) { return observation.timed_out; };
    if (std::ranges::none_of(input_.observations, is_wait)) return;
    const bool grouped = std::ranges::any_of(input_.observations, [&](const hang::Observation& observation) {
      return is_wait(observation) && !observation.group.key.empty() &&
             (!observation.group.members.empty() || input_.world > 0);
    });
    const bool judged = answered || grouped || sources_.flight || sources_.ras || sources_.stacks;
    const TimeNs gave_up = gave_up_at();
    std::erase_if(analysis_.findings, [&](const Finding& f) {
      const bool silence = f.detector == DetectorKind::kSilence && f.rule.empty();
      if (silence) return judged && (f.kind == FindingKind::kSupport || f.general);
      const bool statistical =
          f.kind == FindingKind::kSupport && f.rule.empty() &&
          (f.detector == DetectorKind::kSpatial || f.detector == DetectorKind::kTemporal);
      if (!statistical) return false;
      const bool hearsay =
          std::ranges::all_of(f.subjects, [](const auto& s) { return s.strength < kHearsay; });
      return (judged && hearsay) || (gave_up != kNoTime && (f.first_ns == kNoTime || f.first_ns >= gave_up));
    });
  }
  // When the first watchdog timed out, minus the clock difference between hosts.
  TimeNs gave_up_at() const {
    constexpr TimeNs kClocks = 5 * kNsPerSecond;
    TimeNs first = kNoTime;
    for (const hang::Observation& observation : input_.observations)
      if (observation.timed_out && observation.at_ns != kNoTime &&
          (first == kNoTime || observation.at_ns < first))
        first = observation.at_ns;
    return first == kNoTime ? kNoTime : first - kClocks;
  }

  void put(Hang hang) {
    if (report_.hang) {
      hang.clusters = std::move(report_.hang->clusters);
      hang.suspects = std::move(report_.hang->suspects);
      if (report_.hang->since_ns != kNoTime) hang.since_ns = report_.hang->since_ns;
      if (hang.answer == HangAnswer::kUnknown && report_.hang->answer != HangAnswer::kUnknown) {
        report_.hang->suspects = std::move(hang.suspects);
        report_.hang->clusters = std::move(hang.clusters);
        return;
      }
    }
    report_.hang = std::move(hang);
  }

  const HangContext& context_;
  HangSources sources_;
  detect::Analysis& analysis_;
  Report& report_;
  hang::HangInput input_;
  hang::LineReader reader_;
  std::vector<hang::RankExit> weak_exits_;
  std::vector<Finding> rest_;     // of detectors that distinguish no rank: for an answer that is unknown
  std::vector<Finding> removed_;  // of RAS: processes that left
  std::optional<size_t> first_;   // the finding of the first exit, until echoes are dropped
  bool first_is_kill_ = false;
  std::vector<std::string> missing_;
};

}  // namespace

void blame_loopback(const HangContext& context, detect::Analysis& analysis) {
  const auto refused = std::ranges::find(analysis.findings, Observes::kRefusal, &Finding::observes);
  if (refused == analysis.findings.end() || context.view.known_hosts < 2) return;
  const auto rules = context.rules->rules();
  const logs::JobLog& log = *context.view.log;
  const auto line = std::ranges::find_if(log.rule_lines(), [&](const logs::RuleLine& l) {
    return !l.mentioned && l.rule < rules.size() && rules[l.rule].observes == Observes::kLoopback;
  });
  if (line == log.rule_lines().end()) return;
  const rules::Rule& rule = rules[line->rule];
  refused->rule = rule.id;
  refused->ends = rule.ends;
  refused->observes = rule.observes;
  refused->title = rule.title;
  refused->category = rule.category;
  refused->component = rule.component;
  refused->remedy = rule.remedy;
  refused->action = rule.action;
  refused->by_no_device = true;
  refused->subjects.clear();
  refused->why.emplace_back("peers refuse the connection to an address that only their own host has");
  refused->evidence.insert(refused->evidence.begin(), detect::evidence_of(log, *line));
  ++refused->lines;
}

bool timed_out_at_end(const detect::View& view, const rules::Ruleset& ruleset,
                      const detect::RunEnd& outcome) {
  constexpr TimeNs kLong = 60 * kNsPerSecond;
  const auto rules = ruleset.rules();
  const logs::JobLog& log = *view.log;
  // Writers whose last line is a time-out without a time: no later line of the file has a time.
  std::set<uint32_t> undated;
  hang::LineReader reader;
  for (const logs::RuleLine& line : log.rule_lines()) {
    if (line.mentioned || line.rule >= rules.size()) continue;
    if (!is_of_operation(rules[line.rule].observes)) continue;
    if (line.place.time_ns == kNoTime) continue;
    const bool late = line.own_time && line.place.time_ns >= outcome.last_progress_ns + kLong;
    const bool last = !line.own_time && log.span_of(line.place.source).second <= line.place.time_ns;
    if (!late && !last) continue;
    const auto read = hang::read_watchdog_line(reader.read(rules[line.rule], line));
    if (!read || read->kind != hang::WatchdogKind::kTimeout || read->waited_ns < kLong) continue;
    if (late) return true;
    undated.insert(line.place.writer);
  }
  // An untimed line of one process may be from an earlier attempt.
  return undated.size() > 1 && 2 * undated.size() >= view.ranks.size();
}

std::vector<std::string> add_hang_state(const HangContext& context, HangSources sources,
                                        detect::Analysis& analysis, Report& report) {
  return HangJudge(context, std::move(sources), analysis, report).run();
}

}  // namespace culprit::core::fuse
