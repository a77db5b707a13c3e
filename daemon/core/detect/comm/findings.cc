#include "core/detect/comm/findings.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "base/limits.h"
#include "base/text.h"
#include "core/detect/comm/judge.h"
#include "core/detect/comm/unknown.h"
#include "core/detect/hang/sentence.h"
#include "model/rank_place.h"

namespace culprit::comm {
namespace {

std::string amount(double ms) {
  if (ms >= 1000) return fmt::format("{:.1f} s", ms / 1000);
  return ms >= 10 ? fmt::format("{:.0f} ms", ms) : fmt::format("{:.2g} ms", ms);
}

// Confidence from which a slow host is isolated on timing alone; below it, the action is a check.
constexpr double kSure = 0.9;
// Minimum ratio to the peers that exceeds the differences between sound parts.
constexpr double kClear = 1.5;
// Strength of a finding against its subject (model/finding.h), by confidence.
constexpr double kStrength = 3;
// Confidence in a mismatch: records of ranks may, rarely, count operations differently.
constexpr double kMismatch = 0.9;
constexpr std::string_view kSameCalls =
    "Compare the control flow of these ranks at that step: every rank of a group must call the same "
    "collectives in the same order, with the same sizes.";
constexpr size_t kWhole = 16;  // maximum number of listed ranks of a host or a link

class Teller {
 public:
  Teller(CommTrace& trace, const RankContext& context)
      : trace_(trace), cluster_(trace.cluster()), steps_(trace.steps()), context_(context) {}

  TraceFindings run(Stopped stopped) {
    judgement_ = judge(cluster_, steps_, trace_.live(), context_.phases);
    for (const Culprit& c : judgement_.culprits)
      if (!c.ambiguous) out_.findings.push_back(finding_of(c));
    irregularities();
    curve();
    std::vector<Culprit> shown = judgement_.culprits;
    shown.insert(shown.end(), judgement_.listed.begin(), judgement_.listed.end());
    out_.wanted = trace_.request_records(shown);
    if (const auto stuck = trace_.stuck(stopped)) hang(*stuck);
    const std::vector<Mismatch> mismatches = trace_.mismatches(stopped);
    const Mismatch* m = last_mismatch(cluster_, mismatches);
    if (const auto left = trace_.left_out()) {
      out_.left_out = {finding_of(*left), m || out_.hang};
      // Mismatches and unfinished operations follow from the skipped operation.
      for (Finding& f : out_.findings)
        if (f.symptom == Symptom::kHang) f.general = true;
    } else if (m) {
      mismatch(*m);
    }
    if (out_.findings.empty()) {
      out_.missing = find_unknowns(cluster_, steps_);
      for (const Culprit& c : judgement_.cheap)
        out_.missing.push_back(
            fmt::format("whether it matters: {}; it makes a step {} longer, and jobs differ by "
                        "as much from day to day",
                        why(c).front(), amount(c.cost_ms)));
    }
    for (const Culprit& c : judgement_.cheap)
      if (!c.ambiguous && c.ratio >= kClear) out_.findings.push_back(weak_finding_of(c));
    for (const Culprit& c : judgement_.likely) out_.findings.push_back(weak_finding_of(c));
    return std::move(out_);
  }

 private:
  std::string name_of(uint32_t rank) const {
    const RankInfo& info = cluster_.ranks()[rank];
    RankPlace at;
    at.host = cluster_.host_name(rank);
    if (at.host && info.device != kNone) at.device = info.device;
    return describe_rank(info.rank, at);
  }

  // Whether the culprit is a single rank, its device or its NIC.
  static bool is_rank(const Culprit& c) {
    return c.pause || c.stalls || c.kind == SlowPart::kGpu || c.kind == SlowPart::kNic;
  }

  bool has_device(const Culprit& c) const { return cluster_.ranks()[c.ranks[0]].device != kNone; }

  std::string host_of(const Culprit& c, size_t i) const {
    return i < c.hosts.size() ? cluster_.hosts()[c.hosts[i]] : "an unknown host";
  }

  std::string subject(const Culprit& c) const {
    if (is_rank(c)) return name_of(c.ranks[0]);
    if (c.kind == SlowPart::kLink) return fmt::format("{} and {}", host_of(c, 0), host_of(c, 1));
    return host_of(c, 0);
  }

  static std::string times(size_t n) {
    return n == 1 ? "once" : n == 2 ? "twice" : fmt::format("{} times", n);
  }

  // "rank 46 (gpu-6, GPU 6) alone, twice in 24 steps: watch it".
  std::string watch(const Culprit& c) const {
    const bool work = c.kind == SlowPart::kHost && c.peers > 0 && !is_rank(c);
    const std::string part = work ? "each rank of " + host_of(c, 0) : part_of(c);
    return fmt::format("{} alone, {} in {}: watch it", part, times(c.steps.size()),
                       counted(steps_.size(), "step"));
  }

  std::vector<std::string> why_listed(const Culprit& c) const {
    const std::string longer = fmt::format("the {} {} longer than usual because of it",
                                           c.steps.size() == 1 ? "step is" : "steps are", amount(c.cost_ms));
    const std::string single = c.steps.size() == 1 ? "a single event: it says nothing of what comes"
                                                   : "too few events for a verdict";
    if (c.peers == 0)
      return {watch(c), fmt::format("what goes through it took {:.2f} times as long as elsewhere", c.ratio),
              longer, single};
    const std::string peers = counted(c.peers - 1, "peer") + " of the same stage";
    return {watch(c),
            c.stalls ? fmt::format("stood still for {} where its {} did not", amount(c.excess_ms), peers)
                     : fmt::format("own work took {} longer than that of its {}: {:.2f} times as long",
                                   amount(c.excess_ms), peers, c.ratio),
            longer, single};
  }

  // The part that is slow, in words.
  std::string part_of(const Culprit& c) const {
    if (c.peers > 0) return subject(c);
    return c.kind == SlowPart::kNic      ? "the network card of " + name_of(c.ranks[0])
           : c.kind == SlowPart::kNvlink ? "the links within " + host_of(c, 0)
           : c.kind == SlowPart::kLink   ? "the way between " + subject(c)
           : c.kind == SlowPart::kSwitch
               ? fmt::format("the switch of {} hosts from {} on", c.hosts.size(), host_of(c, 0))
               : "the network of " + host_of(c, 0);
  }

  std::vector<std::string> why(const Culprit& c) const {
    if (c.listed) return why_listed(c);
    if (c.pause)
      return {
          fmt::format("{} stood still for {} where its {} did not, in one step of {}", name_of(c.ranks[0]),
                      amount(c.excess_ms), counted(c.peers - 1, "peer"), steps_.size()),
          fmt::format("no other rank did for half as long in any step; it made this one {} longer",
                      amount(c.cost_ms)),
          "a single event: it says nothing of what comes"};
    const std::string often = fmt::format("in {} of {}", c.steps.size(), counted(steps_.size(), "step"));
    if (c.kind == SlowPart::kGpu || (c.kind == SlowPart::kHost && c.peers > 0))
      return {
          fmt::format("{} takes {} a step longer than its {} of the same stage, {}",
                      is_rank(c) ? name_of(c.ranks[0]) : "each rank of " + host_of(c, 0), amount(c.excess_ms),
                      counted(c.peers - 1, "peer"), often + recurrence(c)),
          fmt::format("its own work takes {:.2f} times as long as theirs, without what it waits for others",
                      c.ratio),
          c.hidden ? "steps are no longer for it only because others take longer still"
                   : fmt::format("it makes a step {} longer{}{}", amount(c.cost_ms), by_sums(c),
                                 2 * c.cost_ms < c.excess_ms
                                     ? "; the rest hides in what others are waited for meanwhile"
                                     : "")};
    return {fmt::format("what goes through {} takes {:.2f} times as long as elsewhere, {}", part_of(c),
                        c.ratio, often),
            fmt::format("it costs {} a step{}", amount(c.cost_ms), by_sums(c))};
  }

  static std::string recurrence(const Culprit& c) {
    if (c.events == 0) return "";
    if (c.period > 0) return fmt::format(", every {} steps", c.period);
    return fmt::format(": {} apart from one another", counted(c.events, "spell"));
  }

  // Note if the costs come from summaries: no host had records of these steps, or only part of a large job
  // was requested.
  const char* by_sums(const Culprit& c) const {
    const auto all = [&](auto holds) {
      return std::all_of(c.steps.begin(), c.steps.end(), [&](uint32_t s) { return holds(steps_[s]); });
    };
    if (all([](const StepResult& s) { return s.basis == Basis::kSums; }))
      return ", as far as sums tell: there are no records of these steps here";
    if (c.peers == 0 && all([](const StepResult& s) { return s.network_by_sums; }))
      return ", as far as sums tell: of these steps there are records of some ranks only";
    return "";
  }

  // Whether the culprit is slow in its own work.
  static bool is_work(const Culprit& c) {
    return c.kind == SlowPart::kGpu || (c.kind == SlowPart::kHost && c.peers > 0);
  }

  CoreUse cores_of(const Culprit& c) const {
    return context_.load && is_work(c) ? context_.load->of(number_of(c)) : CoreUse();
  }

  // A rank without a device computes on the host's cores, so waiting for cores may be the whole cause.
  Component component_of(const Culprit& c) const {
    if (c.kind == SlowPart::kGpu)
      return has_device(c) && !cores_of(c).contended() ? Component::kGpu : Component::kCpu;
    if (c.kind == SlowPart::kNvlink) return Component::kNvlink;
    if (c.kind == SlowPart::kHost && c.peers > 0) return Component::kCpu;
    return Component::kNetwork;
  }

  uint32_t number_of(const Culprit& c) const { return cluster_.ranks()[c.ranks[0]].rank; }

  // The title omits the host; the finding's subjects have it.
  std::string title_of(const Culprit& c) const {
    if (c.pause) return fmt::format("Rank {} stood still once, for {}", number_of(c), amount(c.excess_ms));
    if (c.stalls)
      return fmt::format("Rank {} stalls again and again{}", number_of(c),
                         cores_of(c).starved() ? ": other work runs on its core" : "");
    if (c.kind == SlowPart::kGpu && cores_of(c).starved())
      return fmt::format("Rank {} is slow{}: other work runs on its core", number_of(c),
                         c.events > 0 ? " again and again" : "");
    if (c.kind == SlowPart::kGpu && cores_of(c).contended())
      return fmt::format("Rank {} is slow{}, and its host has more to run than cores", number_of(c),
                         c.events > 0 ? " again and again" : "");
    if (c.kind == SlowPart::kGpu)
      return fmt::format("Rank {} is slow{}", number_of(c), c.events > 0 ? " again and again" : "");
    if (c.kind == SlowPart::kNic) return fmt::format("The network card of rank {} is slow", number_of(c));
    if (c.kind == SlowPart::kNvlink) return "The links within a host are slow";
    if (c.kind == SlowPart::kLink) return "The network between two hosts is slow";
    if (c.kind == SlowPart::kSwitch)
      return fmt::format("The network of {} hosts from {} on is slow: what they share is a switch",
                         c.hosts.size(), host_of(c, 0));
    if (c.peers == 0) return "The network of a host is slow";
    return "A host is slow as a whole";
  }

  // Of all step time: what a part costs that is slow now and then is little.
  double share_of(const Culprit& c) const {
    double all = 0, cost = 0;
    for (const StepResult& s : steps_) all += s.step_ms;
    for (const double ms : c.costs) cost += ms;
    return all > 0 ? std::clamp(cost / all, 0.0, 1.0) : 0;
  }

  Finding finding_of(const Culprit& c) const {
    Finding f;
    f.detector = DetectorKind::kComm;
    f.kind = FindingKind::kFault;
    f.first_ns = first_of(c);
    f.last_ns = f.first_ns;
    f.iteration = steps_[c.steps[0]].number;
    f.confidence = c.confidence;
    f.step_share = share_of(c);
    f.general = c.hidden;  // ranked below findings with a cost
    f.title = title_of(c);
    // Timing alone does not prove a hardware fault of a process without a device, or of an intermittently
    // slow one.
    const CoreUse cores = cores_of(c);
    const bool hardware = c.peers == 0 || (c.lasting && has_device(c) && !cores.contended());
    f.category = hardware ? Category::kHardware : Category::kUnknown;
    f.component = component_of(c);
    f.symptom = Symptom::kSlowdown;
    f.action = hardware && c.confidence >= kSure ? ActionKind::kIsolate : ActionKind::kCheck;
    f.remedy =
        c.kind == SlowPart::kGpu || c.kind == SlowPart::kHost
            ? "Check clocks, temperatures and throttling of the device, and what else runs on its host."
            : "Check link errors and speeds of the ports and cables on this way.";
    f.why = why(c);
    if (std::string reported = cores.sentence(); !reported.empty()) f.why.push_back(std::move(reported));
    if (cores.contended())
      f.remedy =
          "See what else runs on the cores of its host: another job, a service, more processes than cores.";
    const double strength = kStrength * c.confidence;
    for (const uint32_t r : c.ranks) {
      FindingSubject s;
      s.host = cluster_.host_name(r);
      s.rank = cluster_.ranks()[r].rank;
      if (cluster_.ranks()[r].device != kNone) s.device = cluster_.ranks()[r].device;
      s.strength = strength / static_cast<double>(c.ranks.size());
      if (c.kind == SlowPart::kLink && !f.subjects.empty()) s.strength = 0;
      if (c.kind == SlowPart::kLink && f.subjects.empty() && c.hosts.size() > 1) {
        s.host = host_of(c, 0);
        s.rank = s.device = std::nullopt;
        s.peer = host_of(c, 1);
        s.strength = strength;
      }
      f.subjects.push_back(std::move(s));
    }
    return f;
  }

  // Finding for a rank that is certainly slow at negligible cost, or only likely slow. It is a fault only if
  // another finding explains the slowness.
  Finding weak_finding_of(const Culprit& c) const {
    Finding f = finding_of(c);
    f.kind = FindingKind::kSupport;
    f.action = ActionKind::kCheck;
    for (FindingSubject& s : f.subjects) s.strength = 0;
    return f;
  }

  int64_t first_of(const Culprit& c) const { return steps_[c.steps[0]].last_ns; }

  Suspect suspect_of(uint32_t rank, double score) const {
    Suspect s;
    const RankInfo& info = cluster_.ranks()[rank];
    s.host = cluster_.host_name(rank);
    s.score = score;
    s.single = true;
    s.rank = info.rank;
    s.ranks = {info.rank};
    if (info.device != kNone) {
      s.device = info.device;
      s.devices = {info.device};
    }
    return s;
  }

  // Each step gets the culprit with its highest cost; consecutive steps with the same culprit are joined.
  void irregularities() {
    struct Entry {
      const Culprit* culprit = nullptr;
      double cost = 0;
    };
    std::map<uint32_t, Entry> by_step;
    for (const uint32_t s : judgement_.odd) by_step[s];
    for (const Culprit& c : judgement_.culprits)
      for (size_t i = 0; i < c.steps.size() && !c.hidden; ++i)
        if (Entry& e = by_step[c.steps[i]]; c.costs[i] > e.cost) e = {&c, c.costs[i]};
    for (const Culprit& c : judgement_.listed)
      for (size_t i = 0; i < c.steps.size(); ++i)
        if (Entry& e = by_step[c.steps[i]]; !e.culprit) e = {&c, c.costs[i]};
    for (auto at = by_step.begin(); at != by_step.end();) {
      auto end = std::next(at);
      uint32_t last = at->first;
      // After a restart, step numbers go back.
      while (end != by_step.end() && end->first == last + 1 && end->second.culprit == at->second.culprit &&
             steps_[end->first].number > steps_[last].number)
        last = (end++)->first;
      Irregularity out;
      out.first_step = steps_[at->first].number;
      out.last_step = steps_[last].number;
      double time = 0, cost = 0, most = -1;
      bool with_chain = false;
      for (auto i = at; i != end; ++i) {
        const StepResult& s = steps_[i->first];
        const double own = i->second.culprit ? i->second.cost : std::max(0.0, s.step_ms - usual_step());
        time += s.step_ms;
        cost += own;
        without_[i->first] = s.step_ms - own;
        const bool chain = s.basis != Basis::kSums;
        if (chain < with_chain || (chain == with_chain && own <= most)) continue;
        with_chain = chain;
        most = own;
        out.chain = s.chain;
      }
      const auto n = static_cast<double>(last - at->first + 1);
      out.cost_ms = cost / n;
      out.slowdown = time > cost ? time / (time - cost) : 1;
      out.kind = at->second.culprit ? at->second.culprit->kind : SlowPart::kJob;
      if (at->second.culprit) describe(*at->second.culprit, out);
      if (at->second.culprit && at->second.culprit->listed) out.sentence = watch(*at->second.culprit);
      out_.irregularities.push_back(std::move(out));
      at = end;
    }
  }

  void describe(const Culprit& c, Irregularity& out) const {
    if (c.ambiguous) {
      out.comm = c.comm;
      return;
    }
    if (c.kind == SlowPart::kLink && c.hosts.size() > 1)
      out.links.push_back({host_of(c, 0), host_of(c, 1), c.confidence});
    if (c.peers == 0) out.comm = c.comm;
    if (is_rank(c)) {
      out.suspects.push_back(suspect_of(c.ranks[0], c.confidence));
    } else {
      for (const uint32_t h : c.hosts) {
        Suspect s;
        s.host = cluster_.hosts()[h];
        s.score = c.hosts.size() > 1 ? c.confidence / 2 : c.confidence;
        s.single = true;
        for (const uint32_t r : c.ranks)
          if (cluster_.ranks()[r].host == h && s.ranks.size() < kWhole)
            s.ranks.push_back(cluster_.ranks()[r].rank);
        out.suspects.push_back(std::move(s));
      }
    }
    out.suspects[0].why = why(c);
  }

  double usual_step() {
    if (usual_ >= 0) return usual_;
    std::vector<double> times;
    for (const StepResult& s : steps_) times.push_back(s.step_ms);
    std::sort(times.begin(), times.end());
    usual_ = times.empty() ? 0 : times[times.size() / 2];
    return usual_;
  }

  void curve() {
    CommSteps& out = out_.steps;
    std::vector<std::pair<double, uint32_t>> excess(cluster_.ranks().size());
    for (uint32_t r = 0; r < excess.size(); ++r) excess[r].second = r;
    for (uint32_t s = 0; s < steps_.size(); ++s) {
      out.steps.push_back(steps_[s].number);
      out.step_ms.push_back(steps_[s].step_ms);
      const auto at = without_.find(s);
      out.without_ms.push_back(at == without_.end() ? steps_[s].step_ms : at->second);
      for (const RankStep& r : steps_[s].ranks) excess[r.rank].first += std::max(0.f, r.excess);
    }
    out.ranks = excess.size();
    out.pictures = trace_.pictures();
    std::stable_sort(excess.begin(), excess.end(),
                     [](const auto& a, const auto& b) { return a.first > b.first; });
    if (excess.size() > limits::kCommRows) excess.resize(limits::kCommRows);
    std::map<uint32_t, std::vector<float>> rows;  // by index
    for (const auto& [sum, r] : excess) rows[r].assign(steps_.size(), NAN);
    for (uint32_t s = 0; s < steps_.size(); ++s)
      for (const RankStep& r : steps_[s].ranks)
        if (const auto at = rows.find(r.rank); at != rows.end() && r.peers > 1) at->second[s] = r.excess;
    for (auto& [r, values] : rows) {
      CommSteps::Row row;
      row.rank = cluster_.ranks()[r].rank;
      row.host = cluster_.host_name(r);
      if (cluster_.ranks()[r].device != kNone) row.device = cluster_.ranks()[r].device;
      row.excess_ms = std::move(values);
      out.rows.push_back(std::move(row));
    }
    std::sort(out.rows.begin(), out.rows.end(), [](const auto& a, const auto& b) { return a.rank < b.rank; });
  }

  void hang(const Stuck& stuck) {
    Hang hang;
    hang.since_ns = stuck.since_ns;
    Finding f;
    f.detector = DetectorKind::kComm;
    f.kind = FindingKind::kFault;
    f.first_ns = f.last_ns = stuck.since_ns;
    f.fatal = true;
    f.symptom = Symptom::kHang;
    // A rank that never entered may wait for data or for a lock. Only a device that does not finish a started
    // operation indicates hardware.
    const bool device = stuck.on_device && !stuck.ranks.empty() &&
                        std::all_of(stuck.ranks.begin(), stuck.ranks.end(),
                                    [&](uint32_t r) { return cluster_.ranks()[r].device != kNone; });
    f.component = stuck.ranks.empty() ? Component::kNcclComm : device ? Component::kGpu : Component::kUnknown;
    f.category = device ? Category::kHardware : Category::kUnknown;
    // With one missing rank, one in a hundred accusations is wrong; with several ranks, more are.
    f.confidence = stuck.ranks.empty() ? 0.4 : 0.6 + 0.35 / static_cast<double>(stuck.ranks.size());
    f.action = stuck.ranks.empty() ? ActionKind::kNone : ActionKind::kCheck;
    f.title = stuck.ranks.empty()
                  ? fmt::format("{} of group {:x} never ended", to_string(stuck.op), stuck.comm)
                  : fmt::format("{} {}", who(stuck.ranks),
                                stuck.on_device ? "did not leave an operation that its peers left"
                                                : "did not enter an operation that its peers wait in");
    f.title[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(f.title[0])));
    f.remedy = device ? "Take its stack and the device's state before the job is ended; then check the host."
                      : "Take its stack before the job is ended (py-spy dump --pid, gdb): it shows what the "
                        "rank does while its peers wait.";
    f.why.push_back(
        fmt::format("{} wait in operations that never ended, {} number {} of group {:x} among them",
                    counted(stuck.waiting, "rank"), to_string(stuck.op), stuck.seq, stuck.comm));
    if (stuck.absent) f.why.push_back("of some of those named nothing was recorded at all");
    const double score = f.confidence / static_cast<double>(std::max<size_t>(1, stuck.ranks.size()));
    for (const uint32_t r : stuck.ranks) {
      hang.suspects.push_back(suspect_of(r, f.confidence));
      hang.suspects.back().why = f.why;
      FindingSubject s;
      s.host = cluster_.host_name(r);
      s.rank = cluster_.ranks()[r].rank;
      if (cluster_.ranks()[r].device != kNone) s.device = cluster_.ranks()[r].device;
      s.strength = kStrength * score;
      f.subjects.push_back(std::move(s));
    }
    describe(stuck, hang);
    out_.hang = std::move(hang);
    out_.findings.push_back(std::move(f));
  }
  void describe(const Stuck& stuck, Hang& hang) const {
    hang.answer = stuck.ranks.empty() ? HangAnswer::kUnknown
                  : stuck.on_device   ? HangAnswer::kUnfinished
                                      : HangAnswer::kMissing;
    hang.op = to_string(stuck.op);
    hang.group = fmt::format("{:x}", stuck.comm);
    hang.seq = static_cast<int64_t>(std::min<uint64_t>(stuck.seq, INT64_MAX));
    for (const uint32_t r : stuck.ranks) hang.waited_for.push_back(cluster_.ranks()[r].rank);
    std::ranges::sort(hang.waited_for);
    for (const uint32_t r : stuck.in) hang.waiting.push_back(cluster_.ranks()[r].rank);
    std::ranges::sort(hang.waiting);
    if (!hang.waiting.empty())
      hang.hang_state.push_back({hang.group, hang.op, hang.seq, CallPlace::kWaits, {}, hang.waiting});
    if (!hang.waited_for.empty())
      hang.hang_state.push_back({hang.group, {}, -1, CallPlace::kUnknown, {}, hang.waited_for});
    hang.sentence = hang::sentence_of(hang, {});
  }

  // Base of findings on ranks whose program made different calls in a step.
  Finding fault_of_program(int64_t step) const {
    Finding f;
    f.detector = DetectorKind::kComm;
    f.kind = FindingKind::kFault;
    f.iteration = step;
    f.fatal = f.by_no_device = true;
    f.symptom = out_.hang ? Symptom::kHang : Symptom::kCrash;
    f.category = Category::kUser;
    f.component = Component::kUserCode;
    f.confidence = kMismatch;
    f.action = ActionKind::kFix;
    f.remedy = kSameCalls;
    return f;
  }

  Finding finding_of(const LeftOut& left) const {
    Finding f = fault_of_program(left.step);
    f.title = fmt::format("{} left out {} in step {}: it is behind {} since", who({left.rank}),
                          left.count == 1 ? fmt::format("an operation ({})", to_string(left.op))
                                          : counted(left.count, "operation"),
                          left.step, counted(left.peers, "peer"));
    f.title[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(f.title[0])));
    f.why = {
        fmt::format("in group {:x} each of its operations meets a later one of its peers, from step {} on",
                    left.comm, left.step + 1)};
    FindingSubject s;
    s.host = cluster_.host_name(left.rank);
    s.rank = cluster_.ranks()[left.rank].rank;
    f.subjects.push_back(std::move(s));
    return f;
  }

  // The waits are a consequence of the program's fault, so the hang finding becomes general.
  void mismatch(const Mismatch& m) {
    for (Finding& f : out_.findings)
      if (f.symptom == Symptom::kHang) f.general = true;
    Finding f = fault_of_program(m.step);
    f.first_ns = f.last_ns = m.first_ns;
    const bool tie = m.ranks.size() == 2 * m.members;
    const bool sizes = m.most == m.other;
    const std::string most =
        sizes ? fmt::format("{} of {} bytes", to_string(m.most), m.bytes) : std::string(to_string(m.most));
    const std::string other = sizes ? fmt::format("{} of {} bytes", to_string(m.other), m.other_bytes)
                                    : std::string(to_string(m.other));
    f.title = tie ? fmt::format("{} entered different operations: {} and {}", who(m.ranks), most, other)
                  : fmt::format("{} entered {} where {} entered {}", who(m.ranks), other,
                                counted(m.members, "peer"), most);
    f.title[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(f.title[0])));
    f.why = {fmt::format("operation {} of group {:x}, in step {}, is not the same on all of its ranks", m.seq,
                         m.comm, m.step),
             "the group did nothing more after it"};
    for (const uint32_t r : m.ranks) {
      FindingSubject s;
      s.host = cluster_.host_name(r);
      s.rank = cluster_.ranks()[r].rank;
      f.subjects.push_back(std::move(s));
    }
    out_.findings.push_back(std::move(f));
  }

  std::string who(const std::vector<uint32_t>& ranks) const {
    if (ranks.size() == 1) return name_of(ranks[0]);
    std::string out = "ranks ";
    for (size_t i = 0; i < ranks.size() && i < kWhole; ++i)
      out += fmt::format("{}{}", i == 0 ? "" : ", ", cluster_.ranks()[ranks[i]].rank);
    return ranks.size() > kWhole ? out + " and others" : out;
  }

  CommTrace& trace_;
  const Cluster& cluster_;
  const std::deque<StepResult>& steps_;
  const RankContext context_;
  Judgement judgement_;
  std::map<uint32_t, double> without_;  // by step index: step time without the excess
  double usual_ = -1;
  TraceFindings out_;
};

}  // namespace

TraceFindings report_findings(CommTrace& trace, Stopped stopped, const RankContext& context) {
  trace.settle();
  return Teller(trace, context).run(stopped);
}

void add_summary(const CommTrace& trace, JobSummary& job) {
  if (trace.empty()) return;
  std::set<uint32_t> hosts;
  for (const RankInfo& r : trace.cluster().ranks())
    if (r.host != kNone) hosts.insert(r.host);
  job.hosts = std::max<uint64_t>(job.hosts, hosts.size());
  job.ranks = std::max<uint64_t>(job.ranks, trace.cluster().ranks().size());
  if (job.first_ns == kNoTime || trace.first_ns() < job.first_ns) job.first_ns = trace.first_ns();
  if (job.last_ns == kNoTime || trace.last_ns() > job.last_ns) job.last_ns = trace.last_ns();
}

}  // namespace culprit::comm
