#include "core/detect/hang/judge.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "base/text.h"
#include "core/detect/hang/calls.h"
#include "core/detect/hang/loop.h"
#include "core/detect/hang/numbered_calls.h"
#include "core/detect/hang/rank_states.h"
#include "core/detect/hang/wait_graph.h"
#include "core/detect/hang/watchdog_lines.h"

namespace culprit::hang {
namespace {

// The first operations of a group count as its start-up: preparation takes place between barriers.
constexpr int64_t kEarly = 50;
// A wait for a store key involves no device, and start-up needs seconds.
constexpr TimeNs kLongForAKey = 600 * kNsPerSecond;
constexpr size_t kQuotes = 16;
constexpr size_t kHangStateRows = 200;
constexpr const char* kWhichDevice =
    "which device or link stands still: the kernel's logs of the hosts, the counters of their network "
    "adapters, "
    "stacks of the ranks";

class RankStateJudge {
 public:
  RankStateJudge(const HangInput& input, const NameOfRank& name)
      : in_(input), name_(name), groups_(groups_of(input.observations)) {}

  HangJudgement run() {
    out_.hang.since_ns = since();
    follow();
    const bool found = stated(HangAnswer::kMismatch) || by_mismatch() || stated(HangAnswer::kUnfinished) ||
                       by_waits(WaitEnd::kDevice) || by_exit(true) || stated(HangAnswer::kNoSingle) ||
                       stated(HangAnswer::kMissing) || by_barrier(true) || by_waits(WaitEnd::kIdle) ||
                       by_waits(WaitEnd::kCircle) || by_loop() || by_waits(WaitEnd::kAllIn) ||
                       by_distance() || stated(HangAnswer::kMissing, true) || by_waits(WaitEnd::kAbsent) ||
                       by_barrier() || by_exit(false);
    if (!found) unknown();
    finish();
    return std::move(out_);
  }

 private:
  // --- gathering ---

  TimeNs since() const {
    TimeNs first = kNoTime;
    for (const Group& group : groups_)
      for (const RankState& entry : group.rank_states)
        if (entry.since_ns != kNoTime && (first == kNoTime || entry.since_ns < first)) first = entry.since_ns;
    return first;
  }

  struct End {
    WaitAnswer reached;
    const Group* group;
    std::vector<const Group*> of = {};  // by the indices of `reached`
  };

  // --- the answers ---

  bool stated(HangAnswer answer, bool weak = false) {
    std::optional<size_t> lead;
    for (size_t i = 0; i < in_.claims.size(); ++i) {
      const HangClaim& claim = in_.claims[i];
      if (claim.answer != answer || claim.weak != weak || contradicted(claim)) continue;
      if (!lead || rank_of(claim.source) < rank_of(in_.claims[*lead].source)) lead = i;
    }
    if (!lead) return false;
    const HangClaim& claim = in_.claims[*lead];
    out_.led = lead;
    if (answer == HangAnswer::kMismatch)
      mismatch_by(claim);
    else if (answer == HangAnswer::kMissing)
      missing_by(claim);
    else
      waiting_anywhere();
    out_.hang.answer = answer;
    if (answer == HangAnswer::kUnfinished || answer == HangAnswer::kNoSingle)
      out_.hang.waited_for = claim.ranks;
    if (!claim.title.empty()) out_.title = claim.title;
    out_.why.insert(out_.why.end(), claim.why.begin(), claim.why.end());
    prove(claim.evidence, claim.confidence > 0              ? claim.confidence
                          : answer == HangAnswer::kMismatch ? 0.9
                                                            : 0.85);
    if (const auto sides =
            answer == HangAnswer::kMismatch ? stated_sides(groups_, claim.source, claim.ranks) : std::nullopt)
      tell_loop(sides->first, sides->second);
    weigh(*lead);
    return true;
  }
  // A rank whose own watchdog timed out was waiting too: its program's later position is not what its peers
  // wait for.
  bool contradicted(const HangClaim& claim) const {
    if (claim.source != ObservationSource::kStack || claim.answer != HangAnswer::kMissing ||
        claim.ranks.empty())
      return false;
    return std::ranges::all_of(claim.ranks, [&](uint32_t rank) { return waits_by_own_words(rank); });
  }
  bool waits_by_own_words(uint32_t rank) const {
    return std::ranges::any_of(groups_, [&](const Group& group) {
      return group.source == ObservationSource::kWatchdog &&
             std::ranges::any_of(group.rank_states, [&](const RankState& entry) {
               return entry.rank == rank && entry.call && entry.call->entered;
             });
    });
  }
  // Dumps number each operation of each rank; library reports compare ranks; a stack is one moment.
  static std::ptrdiff_t rank_of(ObservationSource source) {
    constexpr std::array kByProof = {ObservationSource::kFlight, ObservationSource::kWatchdog,
                                     ObservationSource::kRecords, ObservationSource::kStack,
                                     ObservationSource::kRas};
    return std::ranges::find(kByProof, source) - kByProof.begin();
  }

  // Other statements about the same ranks raise the confidence; those about other ranks lower it.
  void weigh(std::optional<size_t> lead) {
    constexpr double kAgree = 0.05, kDisagree = 0.1, kMost = 0.97;
    for (size_t i = 0; i < in_.claims.size(); ++i) {
      const HangClaim& claim = in_.claims[i];
      if (lead == i || claim.ranks.empty() || out_.hang.waited_for.empty()) continue;
      const bool same = std::ranges::any_of(claim.ranks, [&](uint32_t rank) {
        return std::ranges::find(out_.hang.waited_for, rank) != out_.hang.waited_for.end();
      });
      if (same) out_.agree.push_back(i);
      if (lead && in_.claims[*lead].source == claim.source) continue;
      out_.confidence += same ? kAgree : claim.weak ? 0 : -kDisagree;
    }
    // If most ranks are in the file system, other sources show that this is no ordinary save.
    if (out_.hang.answer == HangAnswer::kNoSingle)
      out_.confidence = std::max(out_.confidence, facts_.lives.empty() ? 0.5 : 0.7);
    out_.confidence = std::clamp(out_.confidence, 0.1, kMost);
  }

  void mismatch_by(const HangClaim& claim) {
    waiting_anywhere();
    out_.hang.waited_for = claim.ranks;
    if (claim.call.seq >= 0 || !claim.call.op.empty()) set_call(claim.call, claim.group.description);
    if (!claim.title.empty()) return;
    std::string calls;
    for (size_t i = 0; i < claim.calls.size() && i < claim.ranks.size(); ++i)
      calls += fmt::format("{}rank {} calls {}", i ? ", " : "", claim.ranks[i], shown_call(claim.calls[i]));
    out_.title = "Ranks call different collectives: " + calls;
    out_.why.push_back("a check of the program's own library compared the calls of the ranks");
  }

  void missing_by(const HangClaim& lead) {
    std::set<uint32_t> behind, waiting;
    ObservedCall call = lead.call;
    for (const HangClaim& claim : in_.claims) {
      if (claim.answer != HangAnswer::kMissing || claim.weak != lead.weak || claim.source != lead.source)
        continue;
      behind.insert(claim.ranks.begin(), claim.ranks.end());
      if (call.seq < 0) call = claim.call;
      if (lead.title.empty()) out_.evidence.push_back(claim.evidence);
    }
    for (const Group& of : groups_)
      for (const RankState& entry : of.rank_states)
        if (entry.rank && entry.call && !behind.contains(*entry.rank)) {
          waiting.insert(*entry.rank);
          if (call.op.empty()) call = *entry.call;
        }
    out_.hang.waiting.assign(waiting.begin(), waiting.end());
    missing_ranks({behind.begin(), behind.end()}, call, lead.group.description);
    out_.by_host_code = !behind.empty() && std::ranges::all_of(behind, [&](uint32_t rank) {
      return alive_.contains(rank) && !facts_.waits.contains(rank);
    });
    const bool known = lead.as && (!lead.as->subjects.empty() || lead.as->category != Category::kUnknown);
    if (behind.empty() && !known)
      out_.missing.emplace_back("who did not come: the logs of all ranks, or of the launchers of all hosts");
    if (lead.title.empty()) out_.why.push_back("a report of the program's own library compared the ranks");
  }

  // --- waits across groups ---

  // What a rank's own process reports about its state. A stack or counts from another process do not count.
  void follow() {
    alive_ = in_.alive;
    facts_.ranks_per_host = in_.ranks_per_host;
    for (const Group& group : groups_)
      for (const RankState& entry : group.rank_states) {
        if (!entry.rank) continue;
        const bool out = entry.state != ObservedState::kUnknown && entry.state != ObservedState::kInCall;
        if (out && entry.state != ObservedState::kDeviceCall) facts_.elsewhere.insert(*entry.rank);
        if (entry.state == ObservedState::kInCall || waits(entry)) facts_.waits.insert(*entry.rank);
        if (group.source != ObservationSource::kStack) facts_.lives.insert(*entry.rank);
        alive_.insert(*entry.rank);
      }
    for (const RankExit& exited : in_.exits)
      if (exited.rank && !waits(*exited.rank)) {
        facts_.waits.erase(*exited.rank);
        facts_.lives.erase(*exited.rank);
        alive_.erase(*exited.rank);
      }
    for (const ObservationSource source : {ObservationSource::kFlight, ObservationSource::kWatchdog}) {
      std::vector<WaitGroup> graph;
      std::vector<const Group*> of;
      for (const Group& group : groups_)
        if (group.source == source && !group.of.key.empty()) {
          graph.push_back(wait_group(group));
          graph.back().exact = source == ObservationSource::kFlight;
          of.push_back(&group);
        }
      WaitAnswer reached = follow_waits(graph, facts_);
      if (reached.end == WaitEnd::kNothing) continue;
      const Group* const group = of[reached.group];
      ends_.push_back({std::move(reached), group, of});
    }
  }
  static bool waits(const RankState& entry) {
    return (entry.call && entry.call->entered) || (entry.counted && entry.completed < entry.enqueued);
  }
  WaitGroup wait_group(const Group& group) const {
    WaitGroup out;
    out.members = members_of(group);
    for (const RankState& entry : group.rank_states) {
      if (!entry.rank) continue;
      WaitPlace at;
      at.rank = *entry.rank;
      at.enqueued = entry.enqueued;
      at.completed = entry.completed;
      at.since_ns = entry.since_ns;
      at.order = entry.order;
      if (entry.call) at.started = entry.call->started;
      if (entry.call && entry.call->entered) {
        const std::string op = plain_op(entry.call->op);
        at.waits_at = entry.call->seq;
        at.synchronises = synchronises(op);
        out.pairs = out.pairs || op == "send" || op == "recv" || op == "coalesced";
      } else if (entry.counted && entry.completed < entry.enqueued) {
        at.waits_at = entry.completed + 1;
      }
      out.places.push_back(at);
    }
    return out;
  }
  static bool synchronises(std::string_view op) {
    while (op.starts_with('_')) op.remove_prefix(1);
    for (const std::string_view one : {"broadcast", "gather", "scatter", "send", "recv", "reduceoop"})
      if (op.starts_with(one)) return false;
    return op != "reduce";
  }

  bool by_waits(WaitEnd end) {
    for (const End& one : ends_)
      if (one.reached.end == end) return tell(one), true;
    return false;
  }
  void tell(const End& end) {
    const WaitAnswer& reached = end.reached;
    const Group& group = *end.group;
    const ObservedCall call = call_at(group, reached.seq);
    out_.hang.waiting = reached.waiting;
    if (!reached.circle.empty()) return tell_circle(end, call);
    for (const RankState& entry : group.rank_states)
      if (entry.waits_at(reached.seq)) quote(entry);
    set_call(call, group.of.description);
    for (const Group& of : groups_)
      for (const RankState& entry : of.rank_states)
        if (entry.rank && std::ranges::binary_search(reached.ranks, *entry.rank)) {
          quote(entry);
          if (!entry.doing.empty()) out_.why.push_back(fmt::format("{} is {}", named(entry), entry.doing));
        }
    conclude(reached, group, call);
    weigh(std::nullopt);
  }

  static ObservedCall call_at(const Group& group, int64_t seq) {
    ObservedCall call;
    call.seq = seq;
    for (const RankState& entry : group.rank_states)
      if (entry.waits_at(seq)) call = *entry.call;
    return call;
  }

  // For two sides of a circle: who waits where, with the lines of two ranks of each side.
  void tell_circle(const End& end, const ObservedCall& call) {
    constexpr size_t kSides = 2, kOfSide = 2;
    const WaitAnswer& reached = end.reached;
    set_call(call, end.group->of.description);
    out_.hang.answer = HangAnswer::kMismatch;
    out_.hang.waited_for = reached.ranks;
    std::string sides;
    for (size_t i = 0; i < std::min(reached.circle.size(), kSides); ++i) {
      const WaitAnswer::Held& side = reached.circle[i];
      const Group& of = *end.of[side.group];
      const std::string in = fmt::format("{} of {}", shown_op(call_at(of, side.seq)), of.title());
      sides += fmt::format("{}{} in {}", i ? ", " : "", shown_ranks(side.ranks), in);
      size_t quoted = 0;
      for (const RankState& entry : of.rank_states)
        if (quoted < kOfSide && entry.waits_at(side.seq) && entry.evidence && entry.rank &&
            std::ranges::binary_search(side.ranks, *entry.rank))
          quote(entry), ++quoted;
    }
    if (reached.circle.size() > kSides)
      sides += fmt::format(", and others in {} more operations", reached.circle.size() - kSides);
    out_.title = "Ranks wait for each other, each in another group: " + sides;
    if (!reached.ranks.empty())
      out_.why.push_back(fmt::format("{} {} the smaller side", shown_ranks(reached.ranks),
                                     reached.ranks.size() == 1 ? "is" : "are"));
    out_.why.emplace_back(
        "each side waits in a group for ranks that wait in another group: they call their groups in "
        "another order, or one side left a loop earlier");
    if (reached.circle.size() == 2) tell_loop(side_of(end, 0), side_of(end, 1));
    out_.certain = true;
    out_.confidence = 0.75;
    weigh(std::nullopt);
  }

  static LoopSide side_of(const End& end, size_t i) {
    const WaitAnswer::Held& held = end.reached.circle[i];
    return {held.ranks, call_at(*end.of[held.group], held.seq)};
  }
  void tell_loop(const LoopSide& a, const LoopSide& b) {
    const bool begun = in_.iterated || std::max(a.call.seq, b.call.seq) > kEarly;
    auto claim = loop_answer(a, b, begun, name_);
    if (!claim) return;
    out_.why.push_back(std::move(claim->why));
    if (claim->title.empty()) return;
    out_.title = std::move(claim->title);
    out_.hang.waited_for = std::move(claim->few);
    out_.hang.waiting = std::move(claim->many);
    out_.left_loop = true;
  }
  bool by_loop() {
    const auto wait = divided_loop(groups_);
    if (!wait) return false;
    out_.hang.answer = HangAnswer::kMismatch;
    out_.hang.waited_for = wait->few.ranks;
    out_.hang.waiting = wait->many.ranks;
    set_call(wait->many.call, wait->of_many->of.description);
    out_.title =
        fmt::format("Ranks wait in different operations: {} in {} of {}, {} in {} of {}",
                    shown_ranks(wait->few.ranks), shown_op(wait->few.call), wait->of_few->title(),
                    shown_ranks(wait->many.ranks), shown_op(wait->many.call), wait->of_many->title());
    tell_loop(wait->few, wait->many);
    for (const RankState* entry : wait->rank_states) quote(*entry);
    out_.confidence = 0.65;
    weigh(std::nullopt);
    return true;
  }

  void conclude(const WaitAnswer& reached, const Group& group, const ObservedCall& call) {
    const std::string where = shown_op(call) + " of " + group.title();
    switch (reached.end) {
      case WaitEnd::kDevice:
        out_.hang.answer = HangAnswer::kUnfinished;
        out_.hang.waited_for = reached.ranks;
        out_.title = fmt::format(
            "{} did not finish {}, which {} peers finished: a device or link stands still",
            capital(shown_ranks(reached.ranks)), where, reached.ranks.size() == 1 ? "its" : "their");
        out_.why.emplace_back(
            reached.by_members ? "the last numbers that the ranks print: the peers are beyond it"
                               : "its peers in this group print no wait in it, but in a later operation that "
                                 "all ranks entered");
        out_.certain = true;
        out_.confidence = reached.by_members ? 0.8 : 0.65;
        break;
      case WaitEnd::kIdle:
        missing_ranks(reached.ranks, call, group.of.description);
        out_.why.push_back(reached.by_members
                               ? "they live, and wait for no other rank"
                               : "of all ranks that tell something, only they wait for no other rank");
        out_.by_host_code = true;
        out_.certain = reached.by_members;
        out_.confidence = reached.by_members ? 0.75 : 0.6;
        break;
      case WaitEnd::kAllIn:
        out_.hang.answer = HangAnswer::kUnfinished;
        out_.hang.waited_for = reached.ranks;
        out_.title = fmt::format("All {} of {} entered {}, and none finished it: a device or the network",
                                 counted(reached.waiting.size() + reached.ranks.size(), "rank"),
                                 group.title(), shown_op(call));
        if (!reached.ranks.empty())
          out_.title = fmt::format("The device of {} did not begin {}, which its peers began",
                                   shown_ranks(reached.ranks), where);
        out_.certain = !reached.ranks.empty();
        if (reached.ranks.empty()) out_.missing.push_back(kWhichDevice);
        out_.confidence = reached.ranks.empty() ? 0.5 : 0.7;
        break;
      case WaitEnd::kAbsent:
        missing_ranks(reached.ranks, call, group.of.description);
        out_.why.push_back(fmt::format("all other members of {} wait in it; {} nothing", group.title(),
                                       reached.ranks.size() == 1 ? "this rank tells" : "these ranks tell"));
        out_.missing.push_back(fmt::format("why {} did not come: stacks, the state of the process, its log",
                                           shown_ranks(reached.ranks)));
        out_.by_host_code =
            std::ranges::all_of(reached.ranks, [&](uint32_t rank) { return alive_.contains(rank); });
        out_.confidence = reached.ranks.size() == 1 ? 0.6 : 0.5;
        break;
      case WaitEnd::kCircle:
      case WaitEnd::kNothing:
        break;
    }
  }

  // Ranks of one group that wait under one number in different calls.
  bool by_mismatch() {
    for (const Group& group : groups_) {
      const bool apart = !comparable(group);
      for (const int64_t seq : awaited(group)) {
        NumberedCalls calls;
        const RankState* first = nullptr;
        bool found = false;
        for (const RankState& entry : group.rank_states) {
          if (!entry.waits_at(seq) || entry.call->op.empty()) continue;
          if (!first) first = &entry;
          found = found || differ(*first->call, *entry.call);
          calls[call_key(*entry.call)].push_back(&entry);
        }
        if (found && (apart ? one_data(calls) : proves(group, calls))) return mismatch(group, calls), true;
      }
    }
    return false;
  }
  // In an unnamed group, equal numbers may belong to different groups, so all waiting ranks must have one
  // number.
  static bool comparable(const Group& group) { return !group.of.key.empty() || awaited(group).size() == 1; }
  static std::set<int64_t> awaited(const Group& group) {
    std::set<int64_t> out;
    for (const RankState& entry : group.rank_states)
      if (entry.call && entry.call->seq >= 0) out.insert(entry.call->seq);
    return out;
  }

  void mismatch(const Group& group, const NumberedCalls& calls) {
    const auto most =
        std::ranges::max_element(calls, {}, [](const auto& entry) { return entry.second.size(); });
    size_t all = 0;
    for (const auto& [key, rank_states] : calls) all += rank_states.size();
    const bool majority = 2 * most->second.size() > all;
    std::string others;
    for (const auto& [key, rank_states] : calls) {
      const std::vector<uint32_t> ranks = ranks_of(rank_states);
      const ObservedCall& call = *rank_states[0]->call;
      out_.why.push_back(
          fmt::format("{} called {}", ranks.empty() ? "a rank" : shown_ranks(ranks), shown_call(call)));
      for (const RankState* entry : rank_states) quote(*entry);
      if (majority && key == most->first) {
        out_.hang.waiting = ranks;
        continue;
      }
      out_.hang.waited_for.insert(out_.hang.waited_for.end(), ranks.begin(), ranks.end());
    }
    const ObservedCall& call = *most->second[0]->call;
    out_.hang.answer = HangAnswer::kMismatch;
    set_call(call, group.of.description);
    const std::vector<uint32_t>& odd = out_.hang.waited_for;
    const std::string who = odd.empty() ? std::string("Ranks") : capital(shown_ranks(odd));
    out_.title = majority ? fmt::format("{} called another operation or size than {} as #{} of {}", who,
                                        counted(most->second.size(), "peer"), call.seq, group.title())
                          : fmt::format("{} called different operations or sizes as #{} of {}", who, call.seq,
                                        group.title());
    if (majority && calls.size() == 2)
      for (const auto& [key, rank_states] : calls)
        if (key != most->first) tell_loop({odd, *rank_states[0]->call}, {out_.hang.waiting, call});
    out_.certain = true;
    out_.confidence = majority || all > 2 ? 0.9 : 0.85;
  }

  bool by_distance() {
    for (const Group& group : groups_) {
      const std::set<int64_t> seqs = awaited(group);
      if (group.of.key.empty() || seqs.size() < 2 || wait_group(group).pairs) continue;
      const bool apart =
          std::ranges::all_of(group.rank_states, [](const RankState& s) { return !s.call || s.rank; });
      if (!apart) continue;
      std::vector<const RankState*> low, high;
      for (const RankState& entry : group.rank_states)
        if (entry.call && entry.call->seq >= 0)
          (entry.call->seq == *seqs.begin() ? low : high).push_back(&entry);
      if (low.empty() || high.empty()) continue;
      set_call(*low[0]->call, group.of.description);
      out_.hang.waiting = ranks_of(high);
      for (const auto* side : {&low, &high})
        for (const RankState* entry : *side) quote(*entry);
      const int64_t ahead = *std::next(seqs.begin());
      // A rank can finish one operation before its peers, but not the next operation.
      const bool by_calls = ahead > *seqs.begin() + 1 || std::ranges::any_of(low, [&](const RankState* s) {
                              return s->counted && s->enqueued < ahead;
                            });
      by_calls ? called_apart(group, low, high) : finished_apart(group, low, high);
      return true;
    }
    return false;
  }
  using Side = std::vector<const RankState*>;

  void called_apart(const Group& group, const Side& low, const Side& high) {
    out_.hang.answer = HangAnswer::kMismatch;
    out_.hang.waited_for = ranks_of(low);
    out_.title = fmt::format("Ranks of {} wait in different operations: {} in {}, {} in {}", group.title(),
                             shown_ranks(ranks_of(low)), shown_op(*low[0]->call), shown_ranks(ranks_of(high)),
                             shown_op(*high[0]->call));
    out_.why.emplace_back(
        "ranks that call the same operations cannot be that far apart: their calls differ "
        "earlier than what is seen here");
    out_.confidence = 0.6;
    tell_loop({ranks_of(low), *low[0]->call}, {ranks_of(high), *high[0]->call});
  }
  // The ranks that are behind enqueued the later operation too, or may have. Their program is not behind:
  // data did not arrive. A majority of ranks is not blamed.
  void finished_apart(const Group& group, const Side& low, const Side& high) {
    out_.hang.answer = HangAnswer::kUnfinished;
    if (low.size() <= high.size()) out_.hang.waited_for = ranks_of(low);
    out_.title =
        fmt::format("{} did not finish {} of {}, which {} finished: the network, or devices, stand still",
                    capital(shown_ranks(ranks_of(low))), shown_op(*low[0]->call), group.title(),
                    shown_ranks(ranks_of(high)));
    const bool claim = std::ranges::all_of(low, [](const RankState* s) { return s->counted; });
    out_.why.emplace_back(
        claim ? "the ranks that are behind have enqueued the later operation too"
              : "nothing shows that the ranks that are behind did not enqueue the later operation");
    out_.missing.emplace_back(kWhichDevice);
    out_.certain = claim;
    out_.confidence = claim ? 0.65 : 0.5;
  }

  // Number of ranks in the group; 0: unknown.
  size_t size_of(const Group& group) const {
    if (!group.of.members.empty()) return group.of.members.size();
    if (group.of.size > 0) return group.of.size;
    const bool whole = group.of.key == "0" || group.of.description == "default_pg";
    return whole ? in_.world : 0;
  }
  std::vector<uint32_t> members_of(const Group& group) const {
    std::vector<uint32_t> out = group.of.members.all();
    if (out.empty() && size_of(group) == in_.world)
      for (uint32_t rank = 0; rank < in_.world; ++rank) out.push_back(rank);
    return out;
  }

  // A barrier among the first operations of a group, any of these operations while a preparation progress bar
  // is incomplete, or a wait for a store key. `lasting`: require the progress bar, which is stronger evidence
  // than a rank's silence.
  bool by_barrier(bool lasting = false) {
    if (in_.iterated || !in_.exits.empty()) return false;
    for (const Group& group : groups_)
      for (const RankState& entry : group.rank_states) {
        if (!entry.call || !entry.call->entered) continue;
        const bool early = entry.call->seq <= kEarly;
        const bool store =
            plain_op(entry.call->op) == "store" && (in_.preparing || entry.waited_ns >= kLongForAKey);
        const bool during = early && in_.preparing && in_.preparing->lasts(entry.waited_ns);
        if (lasting && !during) continue;
        if (!store && !during && !(is_barrier(*entry.call) && early && entry.call->seq >= 0)) continue;
        std::vector<const RankState*> in;
        for (const RankState& other : group.rank_states)
          if (other.waits_at(entry.call->seq)) in.push_back(&other);
        out_.hang.waiting = ranks_of(in);
        missing_ranks(preparing_rank(), *entry.call, group.of.description);
        out_.title = store ? fmt::format("{} wait for a rank that still prepares", who(in))
                           : fmt::format("{} wait in a barrier, {}, for a rank that still works", who(in),
                                         shown_op(*entry.call));
        if (in_.preparing)
          tell_preparing(entry.waited_ns);
        else {
          out_.why.emplace_back(
              store
                  ? "a key of the store is set by the program of a rank: no device takes part"
                  : "one element among the first operations of a group is a barrier: ranks meet after one of "
                    "them prepared something on the host");
          out_.missing.push_back("what the late rank did: its stack, or its own lines");
        }
        for (const RankState* other : in) quote(*other);
        out_.by_host_code = true;
        out_.confidence = in_.preparing ? 0.7 : 0.55;
        return true;
      }
    return false;
  }
  // The rank of the progress bar: its writer if not waiting; else the only non-waiting rank up to the last
  // rank.
  std::vector<uint32_t> preparing_rank() const {
    if (!in_.preparing) return {};
    if (const auto rank = in_.preparing->rank; rank && !facts_.waits.contains(*rank)) return {*rank};
    const uint32_t end = std::max(in_.world, facts_.waits.empty() ? 0 : *facts_.waits.rbegin() + 1);
    std::vector<uint32_t> others;
    for (uint32_t rank = 0; rank < end && others.size() < 2; ++rank)
      if (!facts_.waits.contains(rank)) others.push_back(rank);
    if (others.size() != 1) others.clear();
    return others;
  }
  void tell_preparing(TimeNs limit) {
    const Preparing& p = *in_.preparing;
    out_.prepares = true;
    out_.why.push_back("the last work before it: " + shorten(p.text, 120));
    if (p.percent < 0) {
      out_.title += ": " + shorten(p.text, 60);
      return;
    }
    const std::vector<uint32_t>& late = out_.hang.waited_for;
    out_.title = preparing_title(p, late.size() == 1 ? name_of(late[0]) : std::string("A rank"), limit);
  }

  // `known`: only ranks that are known to have exited and wait nowhere.
  bool by_exit(bool known) {
    const RankExit* exited = nullptr;
    for (const RankExit& one : in_.exits) {
      if (known && (!one.rank || waits(*one.rank))) continue;
      // Only a watchdog line says why a rank left. Not answering is common to all ranks that their launcher
      // ended.
      const bool claim = exited && exited->source == ObservationSource::kWatchdog;
      if (claim && one.source != ObservationSource::kWatchdog) continue;
      if (!exited || (one.at_ns != kNoTime && one.at_ns < exited->at_ns)) exited = &one;
    }
    if (!exited) return false;
    out_.hang.answer = HangAnswer::kLeft;
    const auto rank = exited->rank ? exited->rank : exited->by_peers ? silent_rank(in_.logged) : std::nullopt;
    if (rank) out_.hang.waited_for = {*rank};
    if (rank && !exited->rank)
      out_.why.push_back(
          fmt::format("its peers name it by its address, and of ranks 0 to {} only it logged nothing",
                      *in_.logged.rbegin()));
    const std::string subject = rank           ? name_of(*rank)
                                : exited->host ? "A rank on " + *exited->host
                                               : "A rank";
    out_.title = exited->kind == ExitKind::kException
                     ? fmt::format("{} raised an exception: {}", subject, exited->reason)
                     : fmt::format("{} left: {}", subject,
                                   exited->reason.empty() ? "its process is gone" : exited->reason);
    waiting_anywhere();
    prove(exited->evidence, 0.5);
    out_.certain = known;
    out_.by_process = exited->source != ObservationSource::kWatchdog;
    out_.by_silence = rank && !exited->rank;
    return true;
  }

  // A stack of a process that exited or was stopped shows its last position.
  bool waits(uint32_t rank) const {
    return std::ranges::any_of(groups_, [&](const Group& group) {
      return group.source != ObservationSource::kStack &&
             std::ranges::any_of(group.rank_states,
                                 [&](const RankState& s) { return s.rank == rank && s.call; });
    });
  }

  void unknown() {
    waiting_anywhere();
    if (groups_.empty()) return;
    if (const auto rank = silent_rank(in_.logged); rank && !out_.hang.waiting.empty())
      out_.missing.push_back(fmt::format("what rank {} does: of ranks 0 to {} only it logged nothing", *rank,
                                         *in_.logged.rbegin()));
    const std::string late =
        out_.hang.waiting.empty()
            ? std::string("stacks of all ranks")
            : fmt::format("stacks or dumps of the ranks other than {}", shown_ranks(out_.hang.waiting));
    out_.missing.push_back("who did not come, and why: only ranks that wait print; needed are " + late);
    out_.confidence = 0.5;
  }
  void waiting_anywhere() {
    std::vector<const RankState*> in;
    const RankState* first = nullptr;
    for (const Group& group : groups_)
      for (const RankState& entry : group.rank_states) {
        if (!entry.call) continue;
        if (!first) first = &entry, set_call(*entry.call, group.of.description);
        in.push_back(&entry);
        quote(entry);
      }
    if (!first) return;
    out_.hang.waiting = ranks_of(in);
    if (out_.title.empty())
      out_.title =
          fmt::format("{} wait in {}, and the lines do not say for whom", who(in), shown_op(*first->call));
  }

  // --- words ---

  void missing_ranks(std::vector<uint32_t> ranks, const ObservedCall& call, const std::string& group) {
    out_.hang.answer = HangAnswer::kMissing;
    set_call(call, group);
    const std::string of = group.empty() ? std::string() : " of group " + group;
    const std::string subject = ranks.size() == 1 ? name_of(ranks[0])
                                : ranks.empty()   ? std::string("A rank")
                                                  : capital(shown_ranks(ranks));
    out_.title = fmt::format("{} never joined {}{}", subject, shown_op(call), of);
    out_.hang.waited_for = std::move(ranks);
  }
  void set_call(const ObservedCall& call, const std::string& group) {
    out_.hang.op = call.op;
    out_.hang.seq = call.seq;
    out_.hang.group = group;
  }
  std::string name_of(uint32_t rank) const { return name_ ? name_(rank) : fmt::format("Rank {}", rank); }
  std::string named(const RankState& entry) const {
    return entry.rank ? fmt::format("rank {}", *entry.rank) : std::string("it");
  }
  std::string who(const std::vector<const RankState*>& in) const {
    const std::vector<uint32_t> ranks = ranks_of(in);
    if (ranks.empty()) return "Ranks";
    return ranks.size() == 1 ? fmt::format("Rank {} and others", ranks[0]) : counted(ranks.size(), "rank");
  }
  static std::string capital(std::string text) {
    if (!text.empty() && text[0] >= 'a' && text[0] <= 'z') text[0] = static_cast<char>(text[0] - 0x20);
    return text;
  }
  static std::vector<uint32_t> ranks_of(const std::vector<const RankState*>& rank_states) {
    std::set<uint32_t> out;
    for (const RankState* entry : rank_states)
      if (entry->rank) out.insert(*entry->rank);
    return {out.begin(), out.end()};
  }
  void quote(const RankState& entry) {
    if (entry.evidence && out_.evidence.size() < kQuotes) out_.evidence.push_back(*entry.evidence);
  }
  void prove(const Evidence& evidence, double confidence) {
    if (out_.evidence.empty() && !evidence.text.empty()) out_.evidence.push_back(evidence);
    out_.certain = true;
    out_.confidence = confidence;
  }

  // --- the table and the sentence ---

  void finish() {
    std::ranges::sort(out_.hang.waited_for);
    std::map<std::tuple<std::string, std::string, int64_t, CallPlace, std::string>, std::set<uint32_t>> rows;
    std::map<std::string, std::string> spelled;  // the spelling of an operation differs between sources
    for (const Group& group : groups_)
      for (const RankState& entry : group.rank_states) {
        if (!entry.rank) continue;
        const std::string title = group.of.description.empty() ? group.of.key : group.of.description;
        const bool elsewhere =
            entry.state != ObservedState::kUnknown && entry.state != ObservedState::kInCall;
        const CallPlace place = elsewhere    ? CallPlace::kElsewhere
                                : entry.call ? CallPlace::kWaits
                                : entry.enqueued >= 0 && entry.completed >= entry.enqueued
                                    ? CallPlace::kFinished
                                    : CallPlace::kUnknown;
        const int64_t seq = entry.call ? entry.call->seq : entry.enqueued;
        const std::string op = entry.call ? plain_op(entry.call->op) : std::string();
        if (entry.call) spelled.try_emplace(op, entry.call->op);
        rows[{title, op, seq, place, entry.doing}].insert(*entry.rank);
      }
    for (const RankExit& exited : in_.exits)
      if (exited.rank)
        rows[{exited.group.description, "", -1, CallPlace::kLeft, exited.reason}].insert(*exited.rank);
    for (const auto& [key, ranks] : rows) {
      const auto& [group, op, seq, place, doing] = key;
      out_.hang.hang_state.push_back({group, spelled[op], seq, place, doing, {ranks.begin(), ranks.end()}});
    }
    std::ranges::stable_sort(out_.hang.hang_state, std::ranges::greater{},
                             [](const HangStateRow& row) { return row.ranks.size(); });
    if (out_.hang.hang_state.size() > kHangStateRows) out_.hang.hang_state.resize(kHangStateRows);
    out_.hang.sentence = out_.title;
    if (out_.title.empty() || out_.hang.waiting.empty() || out_.hang.answer == HangAnswer::kUnknown) return;
    out_.hang.sentence += waiting_words(out_.hang);
  }

  const HangInput& in_;
  const NameOfRank& name_;
  std::vector<Group> groups_;
  RankFacts facts_;
  std::set<uint32_t> alive_;
  std::vector<End> ends_;
  HangJudgement out_;
};

}  // namespace

HangClaim stated_by(ObservationSource source, HangAnswer answer, Finding finding) {
  HangClaim out;
  out.answer = answer;
  out.source = source;
  out.title = finding.title;
  out.why = finding.why;
  out.confidence = finding.confidence;
  if (!finding.evidence.empty()) out.evidence = finding.evidence[0];
  std::set<uint32_t> ranks;
  for (const FindingSubject& subject : finding.subjects)
    if (subject.rank) ranks.insert(*subject.rank);
  out.ranks.assign(ranks.begin(), ranks.end());
  out.as = std::move(finding);
  return out;
}

std::optional<uint32_t> silent_rank(const std::set<uint32_t>& logged) {
  if (logged.size() < 2 || *logged.rbegin() != logged.size()) return std::nullopt;
  uint32_t rank = 0;
  while (logged.contains(rank)) ++rank;
  return rank;
}

HangJudgement answer(const HangInput& input, const NameOfRank& name) {
  return RankStateJudge(input, name).run();
}

}  // namespace culprit::hang
