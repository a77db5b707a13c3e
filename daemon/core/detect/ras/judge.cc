#include "core/detect/ras/judge.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

#include "base/hash.h"
#include "base/limits.h"
#include "base/text.h"

namespace culprit::ras {
namespace {

// Probability that the named ranks are right. One answer alone proves no standstill.
constexpr double kDeadConfidence = 0.85, kStalledConfidence = 0.75, kOnceConfidence = 0.4;
constexpr double kUnresponsiveConfidence = 0.65;
// If a larger share of a communicator does not answer, the network or the service is at fault, not the
// processes.
constexpr double kManyExits = 0.25;
constexpr size_t kNamed = 16;
const std::string kReported = "NCCL RAS: ";

// A rank for sentences and subjects, identified by process and device.
struct Named {
  RasMember member;
  bool operator<(const Named& other) const {
    return std::pair(member.process, member.device) < std::pair(other.member.process, other.member.device);
  }
};
using Ranks = std::set<Named>;

class Judge {
 public:
  Judge(const RasState& state, const RasContext& context) : state_(state), context_(context) {}

  RasVerdict run() {
    judge_exits();
    for (const RasCommState& comm : state_.comms)
      if (!judge_making(comm)) judge_phases(comm);
    judge_counts();
    if (out_.findings.empty()) report_blind();
    return std::move(out_);
  }

 private:
  // ---- names

  std::string comm_name(const RasCommState& comm) const {
    return fmt::format("communicator {} of {}", hex64(comm.hash), counted(comm.size, "rank"));
  }

  std::string process_name(uint32_t process) const {
    if (process >= state_.processes.size()) return "an unknown process";
    const RasProcess& p = state_.processes[process];
    return fmt::format("process {} on {}", p.pid, host_of(process).value_or(p.host));
  }

  std::optional<std::string> host_of(uint32_t process) const {
    if (process >= state_.processes.size()) return std::nullopt;
    const std::string& address = state_.processes[process].host;
    auto name = context_.host ? context_.host(address) : std::nullopt;
    return name ? name : std::optional(address);
  }

  // "rank 7 (process 12 on node-3)"; uses the communicator's rank if the global rank is unknown.
  std::string rank_name(const RasMember& member) const {
    const std::string process = process_name(member.process);
    if (member.world != kRasUnknown) return fmt::format("rank {} ({})", member.world, process);
    if (member.rank == kRasUnknown) return process;
    return fmt::format("{} (rank {} of its communicator)", process, member.rank);
  }

  template <class List, class Name>
  std::string names(const List& list, size_t all, const Name& name) const {
    std::string out;
    size_t shown = 0;
    for (const auto& one : list) {
      if (shown == kShown) break;
      out += (shown++ > 0 ? ", " : "") + name(one);
    }
    if (all > shown) out += fmt::format("{}{} more", shown > 0 ? " and " : "", all - shown);
    return out;
  }
  std::string names(const Ranks& ranks, size_t all) const {
    return names(ranks, all, [&](const Named& one) { return rank_name(one.member); });
  }

  // ---- findings

  FindingSubject subject(const RasMember& member, double strength) const {
    FindingSubject s;
    if (member.world != kRasUnknown) s.rank = member.world;
    if (s.rank && context_.place) {
      RankPlace place = context_.place(*s.rank);
      s.host = std::move(place.host);
      s.device = place.device;
    }
    if (!s.host) s.host = host_of(member.process);
    if (!s.device && member.device != kRasUnknown && member.device < limits::kDevicesOfHost)
      s.device = member.device;
    s.strength = strength;
    return s;
  }

  Finding fault(TimeNs since) const {
    Finding f;
    f.detector = DetectorKind::kComm;
    f.kind = FindingKind::kFault;
    f.symptom = Symptom::kHang;
    f.fatal = true;
    f.first_ns = since;
    f.last_ns = state_.at_ns;
    f.action = ActionKind::kCheck;
    if (state_.user) f.said_by.uids = {*state_.user};
    return f;
  }

  void add(HangAnswer answer, Finding f, const std::string& text) {
    if (!context_.once && f.confidence <= kOnceConfidence) return;
    Evidence e;
    e.file = context_.file;
    e.text = shorten(text, limits::kEvidenceText);
    e.time_ns = f.last_ns;
    e.uid = state_.user;
    e.offset = context_.offset;
    f.why.insert(f.why.begin(), text);
    f.evidence.push_back(std::move(e));
    f.lines = 1;
    out_.findings.push_back(std::move(f));
    out_.answers.push_back(answer);
  }

  std::string speaks_for(const RasCommState& comm) const {
    if (comm.answers < 2) return "one answer alone: a running job shows this for moments too";
    return fmt::format("the same in {} answers over {}", comm.answers,
                       format_duration(comm.since_ns == kNoTime ? 0 : state_.at_ns - comm.since_ns));
  }
  static double stalled(const RasCommState& comm) {
    return comm.answers >= 2 ? kStalledConfidence : kOnceConfidence;
  }

  // ---- ranks that left

  void judge_exits() {
    Ranks dead, silent;
    TimeNs since = state_.at_ns;
    uint32_t answers = 0;
    std::set<uint32_t> dead_processes;  // listed apart from the ranks in the text format
    for (const RasExit& exited : state_.exited)
      if (exited.dead) dead_processes.insert(exited.process);
    for (const RasCommState& comm : state_.comms)
      for (const RasMissing& missing : comm.missing) {
        const uint32_t process = missing.member.process;
        if (process == kRasUnknown) continue;
        const bool is_dead = missing.dead || dead_processes.contains(process);
        (is_dead ? dead : silent).insert({missing.member});
        answers = std::max(answers, comm.answers);
        if (comm.since_ns != kNoTime) since = std::min(since, comm.since_ns);
      }
    for (const RasExit& exited : state_.exited) {
      RasMember member;
      member.rank = kRasUnknown;
      member.process = exited.process;
      member.device = exited.device;
      member.world = exited.world;
      Ranks& ranks = exited.dead ? dead : silent;
      if (exited.process != kRasUnknown && !knows(ranks, member)) ranks.insert({member});
    }
    for (const Named& one : dead) removed_.insert(one.member.process);
    for (const Named& one : silent) removed_.insert(one.member.process);
    report_exits(dead, std::max<size_t>(dead.size(), state_.dead_processes), {true, answers, since});
    report_exits(silent, std::max<size_t>(silent.size(), state_.exited_processes), {false, answers, since});
  }

  static bool knows(const Ranks& ranks, const RasMember& member) {
    return std::any_of(ranks.begin(), ranks.end(),
                       [&](const Named& one) { return one.member.process == member.process; });
  }

  struct ExitFacts {
    bool dead;
    uint32_t answers;
    TimeNs since_ns;
  };
  void report_exits(const Ranks& ranks, size_t all, const ExitFacts& facts) {
    if (all == 0) return;
    Finding f = fault(facts.since_ns);
    const bool many = all > 1 && static_cast<double>(all) > kManyExits * std::max<double>(state_.ranks, 1);
    const bool proven = facts.dead || std::max(facts.answers, state_.still) >= 2;
    f.confidence = facts.dead ? kDeadConfidence : proven ? kUnresponsiveConfidence : kOnceConfidence;
    f.by_no_device = many || ranks.empty();
    if (many) f.confidence = std::min(f.confidence, kOnceConfidence);
    if (!f.by_no_device)
      for (const Named& one : ranks)
        if (f.subjects.size() < kNamed) f.subjects.push_back(subject(one.member, facts.dead ? 2 : 1));
    const std::string who = ranks.empty() ? counted(all, "process") : names(ranks, all);
    f.title = fmt::format("{} {}", capital(many || ranks.empty() ? fmt::format("{} processes", all) : who),
                          facts.dead ? "left the job" : "no longer answers: stopped, or its host is gone");
    if (!many && all > 1 && !facts.dead)
      f.title = fmt::format("{} no longer answer: stopped, or their hosts are gone", capital(who));
    f.remedy =
        "Look for the end of the process: its log, the kernel's log of its host (out of memory, a signal), "
        "the "
        "scheduler. A process that is stopped shows state T in ps. The other ranks are victims.";
    add(HangAnswer::kLeft, std::move(f),
        fmt::format("NCCL RAS: {} {}", who,
                    facts.dead ? "unreachable for a minute or more (considered dead)" : "did not answer"));
  }

  static std::string capital(std::string text) {
    if (!text.empty() && text[0] >= 'a' && text[0] <= 'z') text[0] = static_cast<char>(text[0] - 'a' + 'A');
    return text;
  }

  // ---- communicators that are made, or left

  static const RasGroup* group_in(const RasCommState& comm, RasPhase phase) {
    for (const RasGroup& group : comm.phases)
      if (group.value == static_cast<uint64_t>(phase)) return &group;
    return nullptr;
  }

  // Ranks that wait for others while a communicator is created.
  bool judge_making(const RasCommState& comm) {
    const RasGroup* const init = group_in(comm, RasPhase::kInit);
    if (!init) return false;
    Ranks absent;
    size_t all = comm.size > init->ranks ? comm.size - init->ranks : 0;
    for (const RasGroup& group : comm.phases)
      if (&group != init)
        for (const RasMember& member : group.listed) absent.insert({member});
    for (const RasMissing& missing : comm.missing) absent.insert({missing.member});
    Finding f = fault(comm.since_ns);
    f.confidence = all > 0 ? stalled(comm) : kOnceConfidence;
    const bool few = !absent.empty() && all * 2 <= comm.size && absent.size() == all;
    f.by_no_device = !few;
    if (few)
      for (const Named& one : absent) f.subjects.push_back(subject(one.member, 1));
    f.title = all == 0 ? fmt::format("All {} still make a communicator", counted(init->ranks, "rank"))
              : few ? fmt::format("{} did not join a communicator that {} make", capital(names(absent, all)),
                                  counted(init->ranks, "rank"))
                    : fmt::format("{} wait in the making of a communicator for {} others",
                                  counted(init->ranks, "rank"), all);
    f.remedy =
        "Take stacks of the ranks that did not come (py-spy dump): they do not create this group, or are "
        "late. "
        "Where all came, check the network between the hosts.";
    add(few ? HangAnswer::kMissing : HangAnswer::kUnknown, std::move(f),
        fmt::format("NCCL RAS: {}: {} in INIT, {} elsewhere; {}", comm_name(comm), init->ranks, all,
                    speaks_for(comm)));
    return true;
  }

  // Ranks that finalized, aborted or never had a communicator that others use.
  void judge_phases(const RasCommState& comm) {
    const RasGroup* const running = group_in(comm, RasPhase::kRunning);
    if (!running || comm.phases.size() < 2) return;
    Ranks left;
    size_t all = 0;
    std::string how;
    bool ends = true;  // a normal end, as of every job
    for (const RasGroup& group : comm.phases) {
      if (&group == running) continue;
      ends = ends && group.value == static_cast<uint64_t>(RasPhase::kFinalize);
      all += group.ranks;
      for (const RasMember& member : group.listed) left.insert({member});
      how += fmt::format("{}{} {}", how.empty() ? "" : ", ", group.ranks,
                         to_string(static_cast<RasPhase>(std::min<uint64_t>(group.value, kRasPhases - 1))));
    }
    const bool few = all < running->ranks && left.size() == all;
    Finding f = fault(comm.since_ns);
    f.confidence = few && !ends ? stalled(comm) : kOnceConfidence;
    f.by_no_device = true;  // the program's order of ends, or an abort after another rank's error
    f.category = Category::kUser;
    f.component = Component::kUserCode;
    for (const Named& one : left)
      if (few && f.subjects.size() < kNamed) f.subjects.push_back(subject(one.member, 0));
    f.title = few ? fmt::format("{} left a communicator that {} still use", capital(names(left, all)),
                                counted(running->ranks, "rank"))
                  : "Some ranks left a communicator that others still use";
    f.action = ActionKind::kFix;
    f.remedy =
        "Find why these ranks ended their loop earlier or aborted: their logs, an exception, an uneven "
        "number of "
        "batches.";
    add(few ? HangAnswer::kMismatch : HangAnswer::kUnknown, std::move(f),
        fmt::format("NCCL RAS: {}: {} RUNNING, {}; {}", comm_name(comm), running->ranks, how,
                    speaks_for(comm)));
  }

  // ---- counts

  struct Difference {
    const RasCommState* comm;
    const RasSpread* spread;
    uint64_t most = 0, least = 0;
    uint32_t ahead = 0, behind = 0;  // ranks
    Ranks ahead_named, behind_named;
  };

  static Difference difference(const RasCommState& comm, const RasSpread& spread) {
    Difference d{&comm, &spread, 0, UINT64_MAX, 0, 0, {}, {}};
    for (const RasGroup& group : spread.groups) {
      d.most = std::max(d.most, group.value);
      d.least = std::min(d.least, group.value);
    }
    for (const RasGroup& group : spread.groups) {
      const bool ahead = group.value == d.most;
      (ahead ? d.ahead : d.behind) += group.ranks;
      for (const RasMember& member : group.listed) (ahead ? d.ahead_named : d.behind_named).insert({member});
    }
    return d;
  }

  void judge_counts() {
    std::vector<Difference> all;
    for (const RasCommState& comm : state_.comms)
      for (const RasSpread& spread : comm.spreads)
        if (spread.groups.size() > 1) all.push_back(difference(comm, spread));
    if (all.empty()) return;
    if (report_other_calls(all)) return;
    // A rank that is behind in one communicator and ahead in another waits in the latter.
    Ranks waits;
    for (const Difference& d : all) waits.insert(d.ahead_named.begin(), d.ahead_named.end());
    std::stable_sort(all.begin(), all.end(), [](const Difference& a, const Difference& b) {
      return a.comm->answers > b.comm->answers;
    });
    std::set<uint32_t> told;
    bool chain = false;
    for (const Difference& d : all) {
      Ranks roots;
      std::set_difference(d.behind_named.begin(), d.behind_named.end(), waits.begin(), waits.end(),
                          std::inserter(roots, roots.end()));
      chain = chain || roots.size() < d.behind_named.size();
      if (d.behind_named.size() < d.behind || d.behind * 2 > d.behind + d.ahead) {
        if (told.empty()) report_many_behind(d);
        if (told.empty()) return;
        continue;
      }
      std::erase_if(roots, [&](const Named& one) {
        return removed_.contains(one.member.process) || !told.insert(one.member.process).second;
      });
      if (!roots.empty()) report_behind(d, roots, chain);
    }
  }

  // Ranks ahead in one function and behind in another of the same communicator: a program fault.
  bool report_other_calls(const std::vector<Difference>& all) {
    for (const Difference& a : all)
      for (const Difference& b : all) {
        if (a.comm != b.comm || a.spread == b.spread) continue;
        const bool minority = !a.ahead_named.empty() && a.ahead_named.size() == a.ahead;
        if (!minority || !(same(a.ahead_named, b.behind_named) && b.behind_named.size() == b.behind))
          continue;
        Finding f = fault(a.comm->since_ns);
        f.confidence = stalled(*a.comm);
        f.by_no_device = true;
        f.category = Category::kUser;
        f.component = Component::kUserCode;
        for (const Named& one : a.ahead_named)
          if (f.subjects.size() < kNamed) f.subjects.push_back(subject(one.member, 0));
        f.title = fmt::format("{} called {} where the peers called {}",
                              capital(names(a.ahead_named, a.ahead)), a.spread->function, b.spread->function);
        f.action = ActionKind::kFix;
        f.remedy =
            "Make all ranks of a group call the same collectives in the same order: look for conditions on "
            "the "
            "rank, on data or on time round them.";
        add(HangAnswer::kMismatch, std::move(f),
            kReported + counts_of(a) + "; " + counts_of(b) + "; " + speaks_for(*a.comm));
        return true;
      }
    return false;
  }
  static bool same(const Ranks& a, const Ranks& b) {
    return a.size() == b.size() &&
           std::equal(a.begin(), a.end(), b.begin(),
                      [](const Named& x, const Named& y) { return !(x < y) && !(y < x); });
  }

  std::string counts_of(const Difference& d) const {
    const std::string& function = d.spread->function;
    const std::string up_to = d.least == 0 ? std::string("none") : fmt::format("only up to #{}", d.least);
    return fmt::format("{}: {} launched {} #{}, {} {}", comm_name(*d.comm), counted(d.ahead, "rank"),
                       function.empty() ? "operation" : function, d.most, counted(d.behind, "rank"), up_to);
  }

  void report_behind(const Difference& d, const Ranks& roots, bool chain) {
    const std::string& function = d.spread->function;
    Finding f = fault(d.comm->since_ns);
    f.confidence = stalled(*d.comm);
    for (const Named& one : roots)
      if (f.subjects.size() < kNamed) f.subjects.push_back(subject(one.member, 2 * f.confidence));
    f.title = fmt::format("{} never joined {} #{}; {} {}", capital(names(roots, roots.size())),
                          function.empty() ? "operation" : function, d.most, counted(d.ahead, "rank"),
                          d.ahead == 1 ? "waits" : "wait");
    if (chain) f.why.push_back("other ranks are behind too, but wait themselves in another communicator");
    f.remedy =
        "Take stacks of the process (py-spy dump, and gdb where it does not answer): a lock, a data loader, "
        "a "
        "file system or a device call that does not return.";
    HangAnswer answer = HangAnswer::kMissing;
    if (on_several_hosts(roots)) {
      answer = HangAnswer::kUnknown;
      f.by_no_device = true;
      f.confidence = std::min(f.confidence, 0.5);
      for (FindingSubject& s : f.subjects) s.strength = 0;
      f.why.emplace_back(
          "ranks of several hosts are late together: they may wait in send or receive, which RAS does not "
          "see");
    }
    add(answer, std::move(f), kReported + counts_of(d) + "; " + speaks_for(*d.comm));
  }

  bool on_several_hosts(const Ranks& ranks) const {
    std::set<std::optional<std::string>> hosts;
    for (const Named& one : ranks) hosts.insert(host_of(one.member.process));
    return hosts.size() > 1;
  }

  // Most ranks are behind a few: storage, a program phase, or an extra call of the few.
  void report_many_behind(const Difference& d) {
    Finding f = fault(d.comm->since_ns);
    f.confidence = std::min(stalled(*d.comm), 0.5);
    f.by_no_device = true;
    for (const Named& one : d.ahead_named)
      if (f.subjects.size() < kNamed) f.subjects.push_back(subject(one.member, 0));
    const std::string few =
        d.ahead_named.size() == d.ahead ? names(d.ahead_named, d.ahead) : counted(d.ahead, "rank");
    f.title =
        fmt::format("{} launched an operation that {} did not", capital(few), counted(d.behind, "rank"));
    f.why.push_back(
        "either these made a call of their own, or all others are late together: storage or a phase of the "
        "program");
    f.remedy = "Compare stacks of one rank of each side (py-spy dump).";
    add(HangAnswer::kUnknown, std::move(f), kReported + counts_of(d) + "; " + speaks_for(*d.comm));
  }

  // ---- nothing distinguishes the ranks

  void report_blind() {
    if (state_.still < 2 || !state_.json) return;
    out_.missing.push_back(fmt::format(
        "who is late: by NCCL RAS all ranks of {} launched the same operations, and nothing moved for {}; it "
        "sees neither send, recv and all-to-all nor whether a device finishes",
        counted(state_.comms_seen, "communicator"),
        format_duration(state_.still_since_ns == kNoTime ? 0 : state_.at_ns - state_.still_since_ns)));
  }

  static constexpr size_t kShown = 4;

  const RasState& state_;
  const RasContext& context_;
  RasVerdict out_;
  std::set<uint32_t> removed_;  // processes
};

}  // namespace

RasVerdict judge(const RasState& state, const RasContext& context) { return Judge(state, context).run(); }

}  // namespace culprit::ras
