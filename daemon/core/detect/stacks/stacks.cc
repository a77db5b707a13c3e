#include "core/detect/stacks/stacks.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "base/text.h"
#include "core/detect/stacks/judge.h"
#include "core/detect/stacks/members.h"
#include "core/detect/stacks/rounds.h"
#include "core/detect/stacks/tree.h"

namespace culprit::stacks {
namespace {

constexpr size_t kEvidence = 16;
constexpr size_t kNamed = 8;  // accused processes with their own sentence

struct Class {
  Category category = Category::kUnknown;
  Component component = Component::kUnknown;
  ActionKind action = ActionKind::kCheck;
  const char* remedy = "";
  std::optional<Restart> restart = {};  // overrides the value derived from category and action
};

constexpr Class kStorage = {
    Category::kPlatform, Component::kStorage, ActionKind::kCheck,
    "Look at the file system from the hosts of these ranks: mounts, servers, quota, `cat "
    "/proc/PID/stack` of the process. Restart the job once a read returns.",
    Restart::kLater};
constexpr Class kProgram = {
    Category::kUser, Component::kUserCode, ActionKind::kCheck,
    "Read the stack: the process runs or waits in code of the program while its peers "
    "wait in a collective. Move such work off the training path, or give it a limit."};

Class class_of(const Found& found) {
  if (found.stopped)
    return {Category::kPlatform, Component::kPlatform, ActionKind::kCheck,
            "See who stopped the process: a signal, a debugger, or a frozen control group.", Restart::kSame};
  switch (found.where) {
    case Where::kLoader:
      if (found.in_loader) return kStorage;
      return {Category::kUser, Component::kUserData, ActionKind::kCheck,
              "Take stacks of the loader's workers too; look for a worker that died, a blocked file or a "
              "batch that takes long."};
    case Where::kFile:
      return kStorage;
    case Where::kDeviceCall:
      return {Category::kHardware, Component::kGpu, ActionKind::kCheck,
              "Read the kernel's log of the host for errors of the driver, and run the vendor's diagnostics "
              "on the device if the call does not return."};
    case Where::kCompile:
      return {Category::kFramework, Component::kFramework, ActionKind::kCheck,
              "Wait if it is the first step; else look for shapes that change on this rank alone, and keep "
              "the compiler's cache on the host."};
    default:
      return kProgram;
  }
}

class Answering {
 public:
  explicit Answering(const StackQuestion& question)
      : q_(question),
        members_(members_of(question.samples)),
        judgement_(judge(members_, question.layout, {question.samples.silent(), question.known_hang})) {}

  // For a job that makes progress.
  SlowAnswer slow() {
    const Rounds rounds = judge_rounds(q_.samples, q_.layout, q_.place);
    SlowAnswer out;
    StackPicture& picture = out.picture;
    picture.sample = rounds.capture;
    picture.processes = rounds.newest.members.size();
    picture.rounds = static_cast<uint32_t>(rounds.count);
    picture.first_ns = rounds.first_ns;
    picture.last_ns = rounds.last_ns;
    picture.why = round_sentences(rounds, q_.samples);
    std::set<const Process*> named;
    for (const RoundSuspect& s : rounds.suspects) named.insert(s.process);
    std::vector<bool> healthy;
    for (const Group& group : rounds.newest.groups)
      healthy.push_back(std::ranges::none_of(
          group.members, [&](uint32_t m) { return named.contains(rounds.newest.members[m].process); }));
    picture.clusters = clusters_of(q_.samples, rounds.newest, healthy);
    if (!rounds.suspects.empty()) out.finding = accuse_slow(rounds, picture.why);
    return out;
  }

  StackAnswer run() {
    if (members_.members.empty()) return std::move(out_);
    out_.clusters = clusters_of(q_.samples, members_, healthy());
    switch (judgement_.answer) {
      case Answer::kElsewhere:
        out_.answer = HangAnswer::kMissing;
        accuse_elsewhere();
        break;
      case Answer::kOtherCall:
        out_.answer = HangAnswer::kMismatch;
        accuse_other_call();
        break;
      case Answer::kSharedGroup:
        accuse_group();
        break;
      case Answer::kAllLate:
        out_.answer = HangAnswer::kNoSingle;
        blame_nobody("most processes are {}: no single rank is late",
                     judgement_.where == Where::kLoader ? Component::kUserData : Component::kStorage);
        break;
      case Answer::kNoneLate:
        if (judgement_.is_stalled) state_none_late();
        break;
      case Answer::kSplit:
        if (judgement_.is_stalled) state_split();
        break;
      case Answer::kSilent:
        accuse_silent();
        break;
      case Answer::kNothing:
      case Answer::kMoving:
        break;
    }
    if (!judgement_.why_none.empty()) out_.missing.push_back(judgement_.why_none);
    report_unproven();
    report_others();
    report_absent();
    return std::move(out_);
  }

 private:
  const Member& member(uint32_t m) const { return members_.members[m]; }

  // A group of stacks is healthy unless most of its processes are accused.
  std::vector<bool> healthy() const {
    std::vector<size_t> accused(members_.groups.size());
    for (const uint32_t m : judgement_.accused) ++accused[member(m).group];
    std::vector<bool> out;
    for (size_t g = 0; g < accused.size(); ++g)
      out.push_back(accused[g] * 2 <= members_.groups[g].members.size());
    return out;
  }

  RankPlace place(const Process& process) const {
    RankPlace out;
    if (process.rank && q_.place) out = q_.place(*process.rank);
    if (!out.host) out.host = process.host;
    return out;
  }
  RankPlace place_of_rank(uint32_t rank) const { return q_.place ? q_.place(rank) : RankPlace{}; }

  static std::string titled(std::string text) {
    if (!text.empty() && text[0] >= 'a' && text[0] <= 'z') text[0] = static_cast<char>(text[0] - 'a' + 'A');
    return text;
  }

  std::string accused_names() const {
    std::vector<uint32_t> ranks;
    std::string others;
    for (const uint32_t m : judgement_.accused) {
      if (member(m).process->rank)
        ranks.push_back(*member(m).process->rank);
      else
        others += (others.empty() ? "" : ", ") + name_of(*member(m).process);
    }
    if (ranks.empty()) return others;
    const std::string named =
        fmt::format("{} {}", ranks.size() == 1 ? "rank" : "ranks", rank_ranges(ranks, 8));
    return others.empty() ? named : named + ", " + others;
  }

  std::string waiters() const {
    if (judgement_.waiting == 0) {
      size_t device = 0;
      for (const Member& m : members_.members) device += is_open(m.found.where) ? 1 : 0;
      if (device > 0)
        return fmt::format("{} of {} processes wait for their devices", device, members_.members.size());
      return fmt::format("{} of {} processes are at one place", members_.groups[0].members.size(),
                         members_.members.size());
    }
    return fmt::format("{} of {} processes wait in {}", judgement_.waiting, members_.members.size(),
                       judgement_.waits_in);
  }

  std::string frame_of(const Found& found) const {
    if (found.frames.empty()) return "no frame of the program";
    const CodePlace& s = found.frames[std::min(found.tells, found.frames.size() - 1)];
    return shown(q_.samples.frame(s.frame), s.line);
  }

  static std::string what_of(const Found& found) {
    return found.stopped ? "stopped" : found.where == Where::kFile ? "blocked in the kernel" : "elsewhere";
  }
  std::string where_of(const Found& found) const {
    if (found.frames.empty()) return fmt::format("{}; its stack is not known", what_of(found));
    if (found.stopped) return fmt::format("stopped ({})", frame_of(found));
    if (found.in_loader && found.where == Where::kFile)
      return fmt::format("in a call of the file system for the data loader ({})", frame_of(found));
    return fmt::format("{} ({})", phrase(found.where), frame_of(found));
  }

  static std::string over_time(const Member& m) {
    if (m.samples < 2) return "one sample of its stack: whether it is stuck or slow is not known";
    const std::string span =
        m.span_ns > 0 ? fmt::format(" over {}", format_duration(m.span_ns)) : " at unknown times";
    if (m.moves)
      return fmt::format("its stack changes between {} samples{}: it is slow or working, not stuck",
                         m.samples, span);
    if (m.found.frames.empty()) return fmt::format("its state is the same in {} samples{}", m.samples, span);
    if (!is_stalled(m))
      return fmt::format("its stack is the same in {} samples{}: too close to tell stuck from slow",
                         m.samples, span);
    return fmt::format("its stack is the same in {} samples{}: it is stuck, not slow", m.samples, span);
  }

  Finding begin(Symptom symptom = Symptom::kHang) const {
    Finding f;
    f.detector = DetectorKind::kStacks;
    f.kind = FindingKind::kFault;
    f.symptom = symptom;
    f.fatal = true;
    f.confidence = judgement_.confidence;
    f.first_ns = f.last_ns = time_of(judgement_.accused.empty() ? 0 : judgement_.accused[0]);
    return f;
  }
  TimeNs time_of(uint32_t m) const { return member(m).sample->time_ns; }

  FindingSubject subject(const Process& process) const {
    RankPlace at = place(process);
    FindingSubject s;
    s.host = std::move(at.host);
    s.rank = process.rank;
    s.device = at.device;
    return s;
  }

  Evidence evidence(uint32_t m, std::string text) const {
    const Sample& sample = *member(m).sample;
    Evidence e;
    e.host = place(*member(m).process).host;
    e.rank = member(m).process->rank;
    e.file = sample.file;
    if (sample.line > 0) e.line = sample.line;
    e.text = std::move(text);
    e.time_ns = sample.time_ns;
    return e;
  }

  void add_suspect(const FindingSubject& subject, double score, const std::vector<std::string>& why,
                   bool support) {
    Suspect s;
    s.host = subject.host;
    s.score = score;
    if (subject.rank) s.ranks = {*subject.rank};
    if (subject.device) s.devices = {*subject.device};
    s.why = why;
    s.single = true;
    s.rank = subject.rank;
    s.device = subject.device;
    out_.suspects.push_back(std::move(s));
    if (!support) return;
    Finding f;
    f.detector = DetectorKind::kStacks;
    f.subjects.push_back(subject);
    f.subjects[0].strength = 2 * score;  // as of a Flight Recorder dump: less than a driver's report
    f.why = why;
    out_.findings.push_back(std::move(f));
  }

  void add_accused(Finding& f, bool support) {
    for (size_t i = 0; i < judgement_.accused.size(); ++i) {
      const uint32_t m = judgement_.accused[i];
      const std::string sentence =
          fmt::format("{} is {}, and {}", name_of(*member(m).process), where_of(member(m).found), waiters());
      const std::vector<std::string> why = {sentence, over_time(member(m))};
      f.subjects.push_back(subject(*member(m).process));
      if (f.evidence.size() < kEvidence) f.evidence.push_back(evidence(m, sentence));
      if (i < kNamed) f.why.insert(f.why.end(), why.begin(), why.end());
      add_suspect(f.subjects.back(), judgement_.confidence, why, support);
    }
    f.lines = judgement_.accused.size();
    std::vector<std::string> once;
    for (std::string& why : f.why)
      if (std::find(once.begin(), once.end(), why) == once.end()) once.push_back(std::move(why));
    f.why = std::move(once);
  }

  // "all 5 are in pipeline group 3,7,11: taking out its 8 hosts takes out about 7 innocent ones".
  std::string shared_sentence(size_t n) const {
    const SharedGroup& group = *judgement_.group;
    std::set<std::string> hosts;
    for (const uint32_t rank : group.ranks)
      if (auto at = place_of_rank(rank); at.host) hosts.insert(std::move(*at.host));
    std::string out =
        fmt::format("all {} of them are in one {}: ranks {}", n, group.name, rank_ranges(group.ranks, 16));
    if (hosts.size() > 1)
      out += fmt::format("; taking out its {} hosts takes out about {} innocent ones", hosts.size(),
                         hosts.size() - 1);
    return out;
  }

  void accuse_elsewhere() {
    const Member& first = member(judgement_.accused[0]);
    const bool stuck = std::all_of(judgement_.accused.begin(), judgement_.accused.end(),
                                   [&](uint32_t m) { return is_stalled(member(m)); });
    const bool moves = std::all_of(judgement_.accused.begin(), judgement_.accused.end(),
                                   [&](uint32_t m) { return member(m).moves; });
    Found typical = first.found;
    for (const uint32_t m : judgement_.accused)
      if (member(m).found.where == judgement_.where) typical = member(m).found;
    const Class c = class_of(typical);
    Finding f = begin();
    f.category = c.category;
    f.component = c.component;
    f.action = c.action;
    f.restart = c.restart;
    f.remedy = c.remedy;
    add_accused(f, true);
    if (judgement_.group && judgement_.accused.size() > 1)
      f.why.push_back(shared_sentence(judgement_.accused.size()));
    const std::string_view verb = judgement_.accused.size() == 1 ? "is" : "are";
    const std::string what = typical.stopped ? "stopped" : std::string(phrase(typical.where));
    f.title = titled(fmt::format("{} {} {}{}, and {}", accused_names(), verb,
                                 stuck && !typical.stopped ? "stuck " : "", what, waiters()));
    finish(std::move(f), !moves);
  }

  Finding accuse_slow(const Rounds& rounds, const std::vector<std::string>& why) const {
    const RoundSuspect& first = rounds.suspects[0];
    const Class c = class_of(first.found);
    Finding f;
    f.detector = DetectorKind::kStacks;
    f.kind = FindingKind::kFault;
    f.symptom = Symptom::kSlowdown;
    f.category = c.category;
    f.component = c.component;
    f.action = ActionKind::kCheck;
    f.remedy = c.remedy;
    f.confidence = first.confidence;
    f.first_ns = rounds.first_ns;
    f.last_ns = rounds.last_ns;
    f.why = why;
    f.lines = first.votes;
    std::string names;
    for (const RoundSuspect& s : rounds.suspects) {
      f.subjects.push_back(subject(*s.process));
      if (!s.host.empty()) {
        f.subjects.back() = {};
        f.subjects.back().host = s.host;
      }
      names += (names.empty() ? "" : ", ") + (s.host.empty() ? name_of(*s.process) : "host " + s.host);
      Evidence e;
      e.host = f.subjects.back().host;
      e.rank = f.subjects.back().rank;
      e.text = why[std::min(f.evidence.size(), why.size() - 1)];
      e.time_ns = rounds.last_ns;
      f.evidence.push_back(std::move(e));
    }
    f.title = titled(fmt::format("{} {} the others waiting: {} in {} of {} rounds of stacks", names,
                                 rounds.suspects.size() == 1 ? "keeps" : "keep",
                                 first.found.stopped ? "stopped" : phrase(first.found.where), first.votes,
                                 rounds.count));
    return f;
  }

  void accuse_other_call() {
    Finding f = begin();
    f.category = Category::kUser;
    f.component = Component::kUserCode;
    f.action = ActionKind::kFix;
    f.by_no_device = true;
    f.remedy =
        "Make all ranks of a group call the same collectives in the same order: look for conditions on the "
        "rank, on data or on time round them.";
    for (const uint32_t m : judgement_.accused) {
      const Found& found = member(m).found;
      std::string why = fmt::format("{} waits in {}", name_of(*member(m).process), found.op);
      if (!found.site.empty()) why += fmt::format(" called at {}", found.site);
      why += fmt::format(", and {}", waiters());
      f.subjects.push_back(subject(*member(m).process));
      if (f.evidence.size() < kEvidence) f.evidence.push_back(evidence(m, why));
      add_suspect(f.subjects.back(), judgement_.confidence, {why}, false);
      if (f.why.size() < kNamed) f.why.push_back(std::move(why));
    }
    f.lines = judgement_.accused.size();
    f.title = titled(fmt::format("{} {} in another collective than {} peers", accused_names(),
                                 judgement_.accused.size() == 1 ? "waits" : "wait",
                                 judgement_.accused.size() == 1 ? "its" : "their"));
    finish(std::move(f), true);
  }

  void accuse_group() {
    Finding f = begin();
    f.component = Component::kNcclComm;
    f.action = ActionKind::kCheck;
    f.remedy =
        "One rank of this group keeps the others waiting. Take stacks again and Flight Recorder dumps to "
        "find "
        "it; if the job must go on at once, take out the hosts of the group.";
    const SharedGroup group = *judgement_.group;
    f.why.push_back(
        fmt::format("{} wait in another collective than the rest, where {}", accused_names(), waiters()));
    f.why.push_back(shared_sentence(judgement_.accused.size()));
    for (const uint32_t rank : group.ranks) {
      RankPlace at = place_of_rank(rank);
      FindingSubject s;
      s.host = at.host;
      s.rank = rank;
      s.device = at.device;
      f.subjects.push_back(s);
      add_suspect(s, judgement_.confidence / 2,
                  {fmt::format("rank {} is in the {} that waits apart from the others", rank, group.name)},
                  true);
    }
    for (const uint32_t m : judgement_.accused)
      if (f.evidence.size() < kEvidence)
        f.evidence.push_back(
            evidence(m, fmt::format("{} waits in {}", name_of(*member(m).process), member(m).found.op)));
    f.lines = judgement_.accused.size();
    f.title = titled(
        fmt::format("one rank of a {} keeps it waiting: ranks {}", group.name, rank_ranges(group.ranks, 8)));
    finish(std::move(f), true);
  }

  void blame_nobody(fmt::format_string<std::string_view> title, Component component) {
    Finding f = begin();
    f.category = component == Component::kStorage ? Category::kPlatform : Category::kUser;
    f.component = component;
    f.by_no_device = true;
    f.remedy = component == Component::kStorage
                   ? kStorage.remedy
                   : "Look at what feeds the loaders of all ranks: storage, network, a shared service.";
    size_t n = 0;
    for (uint32_t m = 0; m < members_.members.size(); ++m) {
      if (member(m).found.where != judgement_.where) continue;
      ++n;
      if (f.evidence.size() < kEvidence)
        f.evidence.push_back(
            evidence(m, fmt::format("{} is {}", name_of(*member(m).process), where_of(member(m).found))));
    }
    f.lines = n;
    f.why.push_back(
        fmt::format("{} of {} processes are {}", n, members_.members.size(), phrase(judgement_.where)));
    f.title = titled(fmt::format(title, phrase(judgement_.where)));
    finish(std::move(f), true);
  }

  void state_none_late() {
    Finding f = begin();
    f.role = FindingRole::kCascade;
    f.component = Component::kNcclComm;
    f.by_no_device = true;
    f.why.push_back("no stack is outside of a collective: a device or the network does not finish one");
    f.evidence.push_back(evidence(0, waiters()));
    f.lines = members_.members.size();
    f.action = ActionKind::kCheck;
    f.remedy = "Read Flight Recorder dumps or ask NCCL RAS which operation is open, and look at the network.";
    f.title = titled(fmt::format("{}, and none is late", waiters()));
    finish(std::move(f), true);
  }

  void state_split() {
    Finding f = begin();
    f.category = Category::kUser;
    f.component = Component::kUserCode;
    f.by_no_device = true;
    f.why.push_back(
        "ranks of one group that call different collectives at one time wait for each other: the program; "
        "ranks of different groups may");
    f.evidence.push_back(evidence(0, waiters()));
    f.lines = members_.members.size();
    f.remedy =
        "Compare the calls of both sides: if they are of one group, look for conditions on the rank, on data "
        "or on time round them; else take Flight Recorder dumps.";
    f.title = titled(fmt::format("{}, and {}: a mismatch of the program, or different groups", waiters(),
                                 judgement_.other));
    finish(std::move(f), true);
  }

  void accuse_silent() {
    Finding f = begin();
    f.action = ActionKind::kCheck;
    f.remedy = "See whether the process is alive and the host answers; read its logs.";
    for (const uint32_t rank : judgement_.absent) {
      RankPlace at = place_of_rank(rank);
      FindingSubject s;
      s.host = at.host;
      s.rank = rank;
      s.device = at.device;
      const std::string why = fmt::format("rank {} did not give its stack ({}), and {}", rank,
                                          q_.samples.silent().at(rank), waiters());
      f.subjects.push_back(s);
      add_suspect(s, judgement_.confidence, {why}, true);
      if (f.why.size() < kNamed) f.why.push_back(why);
    }
    f.evidence.push_back(evidence(0, waiters()));
    f.lines = judgement_.absent.size();
    f.title = titled(fmt::format("{} {} did not give a stack, and {}",
                                 judgement_.absent.size() == 1 ? "rank" : "ranks",
                                 rank_ranges(judgement_.absent, 8), waiters()));
    finish(std::move(f), true);
  }

  void finish(Finding f, bool hangs) {
    hangs = hangs && judgement_.is_stalled;
    out_.hangs = hangs;
    if (!hangs) f.fatal = false;
    out_.findings.push_back(std::move(f));
  }

  void report_unproven() {
    if (judgement_.is_stalled || out_.findings.empty()) return;
    out_.missing.push_back(
        "whether the job stands still: a second dump of all ranks some seconds later, for the stacks are of "
        "one moment or changed");
  }

  static std::string some_names(const std::vector<const Process*>& processes) {
    constexpr size_t kShown = 3;
    std::string out;
    for (size_t i = 0; i < processes.size() && i < kShown; ++i)
      out += (i == 0 ? "" : ", ") + name_of(*processes[i]);
    if (processes.size() > kShown) out += fmt::format(" and {} more", processes.size() - kShown);
    return out;
  }

  // Lists processes whose stacks count for no rank.
  void report_others() {
    if (!members_.strangers.empty())
      out_.missing.push_back(
          fmt::format("the ranks of {}: their stacks are left out, as of no rank of the job",
                      some_names(members_.strangers)));
    if (!members_.doubled.empty())
      out_.missing.push_back(fmt::format("which dumps are of this job: those of {} are of several hosts",
                                         some_names(members_.doubled)));
    if (!members_.silent.empty() && (out_.hangs || q_.known_hang))
      out_.missing.push_back(
          fmt::format("stacks with a frame of {}: their dumps have none", some_names(members_.silent)));
  }

  // Lists ranks of the job without a stack, if they leave a question open.
  void report_absent() {
    const uint32_t world = q_.layout.world();
    if (world == 0 || (!out_.hangs && !q_.known_hang)) return;
    std::set<uint32_t> absent;
    for (uint32_t rank = 0; rank < world; ++rank) absent.insert(absent.end(), rank);
    for (const Member& m : members_.members)
      if (m.process->rank) absent.erase(*m.process->rank);
    if (!absent.empty())
      out_.missing.push_back(fmt::format("the stacks of {} {}", absent.size() == 1 ? "rank" : "ranks",
                                         rank_ranges({absent.begin(), absent.end()}, 16)));
  }

  const StackQuestion& q_;
  Members members_;
  Judgement judgement_;
  StackAnswer out_;
};

}  // namespace

StackAnswer analyse_stacks(const StackQuestion& question) { return Answering(question).run(); }

SlowAnswer analyse_rounds(const StackQuestion& question) { return Answering(question).slow(); }

}  // namespace culprit::stacks
