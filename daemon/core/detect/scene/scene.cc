#include "core/detect/scene/scene.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "base/text.h"
#include "core/detect/scene/calls.h"
#include "core/detect/scene/loop.h"
#include "core/detect/scene/numbered_calls.h"
#include "core/detect/scene/stands.h"
#include "core/detect/scene/wait_graph.h"
#include "core/detect/scene/watchdog_lines.h"

namespace culprit::scene {
namespace {

// Operations of a group that are its start: its first barriers stand round preparation.
constexpr int64_t kEarly = 50;
// No device takes part in a wait for a key of the store, and a start needs seconds.
constexpr TimeNs kLongForAKey = 600 * kNsPerSecond;
constexpr size_t kQuotes = 16;
constexpr size_t kSceneRows = 200;
constexpr const char* kWhichDevice =
    "which device or link stands still: the kernel's logs of the hosts, the counters of their network "
    "adapters, "
    "stacks of the ranks";

class SceneJudge {
 public:
  SceneJudge(const SceneInput& input, const NameOfRank& name)
      : in_(input), name_(name), groups_(groups_of(input.sights)) {}

  SceneAnswer run() {
    out_.hang.since_ns = since();
    follow();
    const bool found = stated(HangAnswer::kMismatch) || by_mismatch() || stated(HangAnswer::kUnfinished) ||
                       by_waits(WaitEnd::kDevice) || by_departure(true) || stated(HangAnswer::kNoSingle) ||
                       stated(HangAnswer::kMissing) || by_barrier(true) || by_waits(WaitEnd::kIdle) ||
                       by_waits(WaitEnd::kCircle) || by_loop() || by_waits(WaitEnd::kAllIn) ||
                       by_distance() || stated(HangAnswer::kMissing, true) || by_waits(WaitEnd::kAbsent) ||
                       by_barrier() || by_departure(false);
    if (!found) unknown();
    finish();
    return std::move(out_);
  }

 private:
  // --- gathering ---

  TimeNs since() const {
    TimeNs first = kNoTime;
    for (const Group& group : groups_)
      for (const Stand& stand : group.stands)
        if (stand.since_ns != kNoTime && (first == kNoTime || stand.since_ns < first)) first = stand.since_ns;
    return first;
  }

  struct End {
    WaitAnswer said;
    const Group* group;
    std::vector<const Group*> of = {};  // by the indices of `said`
  };

  // --- the answers ---

  bool stated(HangAnswer answer, bool weak = false) {
    std::optional<size_t> lead;
    for (size_t i = 0; i < in_.statements.size(); ++i) {
      const Statement& said = in_.statements[i];
      if (said.answer != answer || said.weak != weak || contradicted(said)) continue;
      if (!lead || rank_of(said.source) < rank_of(in_.statements[*lead].source)) lead = i;
    }
    if (!lead) return false;
    const Statement& said = in_.statements[*lead];
    out_.led = lead;
    if (answer == HangAnswer::kMismatch)
      mismatch_by(said);
    else if (answer == HangAnswer::kMissing)
      missing_by(said);
    else
      waiting_anywhere();
    out_.hang.answer = answer;
    if (answer == HangAnswer::kUnfinished || answer == HangAnswer::kNoSingle)
      out_.hang.waited_for = said.ranks;
    if (!said.title.empty()) out_.title = said.title;
    out_.why.insert(out_.why.end(), said.why.begin(), said.why.end());
    prove(said.evidence, said.confidence > 0               ? said.confidence
                         : answer == HangAnswer::kMismatch ? 0.9
                                                           : 0.85);
    if (const auto sides =
            answer == HangAnswer::kMismatch ? stated_sides(groups_, said.source, said.ranks) : std::nullopt)
      tell_loop(sides->first, sides->second);
    weigh(*lead);
    return true;
  }
  // A rank whose own watchdog gave up waits itself: where its program is by now is not what peers wait for.
  bool contradicted(const Statement& said) const {
    if (said.source != SightSource::kStack || said.answer != HangAnswer::kMissing || said.ranks.empty())
      return false;
    return std::ranges::all_of(said.ranks, [&](uint32_t rank) { return waits_by_own_words(rank); });
  }
  bool waits_by_own_words(uint32_t rank) const {
    return std::ranges::any_of(groups_, [&](const Group& group) {
      return group.source == SightSource::kWatchdog &&
             std::ranges::any_of(group.stands, [&](const Stand& stand) {
               return stand.rank == rank && stand.call && stand.call->entered;
             });
    });
  }
  // Dumps number each operation of each rank; reports of the library compare ranks; a stack is one moment.
  static std::ptrdiff_t rank_of(SightSource source) {
    constexpr std::array kByProof = {SightSource::kFlight, SightSource::kWatchdog, SightSource::kRecords,
                                     SightSource::kStack, SightSource::kRas};
    return std::ranges::find(kByProof, source) - kByProof.begin();
  }

  // Other statements of the same ranks raise the confidence, those of other ranks lower it.
  void weigh(std::optional<size_t> lead) {
    constexpr double kAgree = 0.05, kDisagree = 0.1, kMost = 0.97;
    for (size_t i = 0; i < in_.statements.size(); ++i) {
      const Statement& said = in_.statements[i];
      if (lead == i || said.ranks.empty() || out_.hang.waited_for.empty()) continue;
      const bool same = std::ranges::any_of(said.ranks, [&](uint32_t rank) {
        return std::ranges::find(out_.hang.waited_for, rank) != out_.hang.waited_for.end();
      });
      if (same) out_.agree.push_back(i);
      if (lead && in_.statements[*lead].source == said.source) continue;
      out_.confidence += same ? kAgree : said.weak ? 0 : -kDisagree;
    }
    // Where most are in the file system, other sources show that they do not just save.
    if (out_.hang.answer == HangAnswer::kNoSingle)
      out_.confidence = std::max(out_.confidence, facts_.lives.empty() ? 0.5 : 0.7);
    out_.confidence = std::clamp(out_.confidence, 0.1, kMost);
  }

  void mismatch_by(const Statement& said) {
    waiting_anywhere();
    out_.hang.waited_for = said.ranks;
    if (said.call.seq >= 0 || !said.call.op.empty()) set_call(said.call, said.group.description);
    if (!said.title.empty()) return;
    std::string calls;
    for (size_t i = 0; i < said.calls.size() && i < said.ranks.size(); ++i)
      calls += fmt::format("{}rank {} calls {}", i ? ", " : "", said.ranks[i], shown_call(said.calls[i]));
    out_.title = "Ranks call different collectives: " + calls;
    out_.why.push_back("a check of the program's own library compared the calls of the ranks");
  }

  void missing_by(const Statement& lead) {
    std::set<uint32_t> behind, waiting;
    SightCall call = lead.call;
    for (const Statement& said : in_.statements) {
      if (said.answer != HangAnswer::kMissing || said.weak != lead.weak || said.source != lead.source)
        continue;
      behind.insert(said.ranks.begin(), said.ranks.end());
      if (call.seq < 0) call = said.call;
      if (lead.title.empty()) out_.evidence.push_back(said.evidence);
    }
    for (const Group& of : groups_)
      for (const Stand& stand : of.stands)
        if (stand.rank && stand.call && !behind.contains(*stand.rank)) {
          waiting.insert(*stand.rank);
          if (call.op.empty()) call = *stand.call;
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

  // Of a rank that a source sees, what it says of its life: a stack or counts of another process do not.
  void follow() {
    alive_ = in_.alive;
    facts_.ranks_per_host = in_.ranks_per_host;
    for (const Group& group : groups_)
      for (const Stand& stand : group.stands) {
        if (!stand.rank) continue;
        const bool out = stand.state != SightState::kUnknown && stand.state != SightState::kInCall;
        if (out && stand.state != SightState::kDeviceCall) facts_.elsewhere.insert(*stand.rank);
        if (stand.state == SightState::kInCall || waits(stand)) facts_.waits.insert(*stand.rank);
        if (group.source != SightSource::kStack) facts_.lives.insert(*stand.rank);
        alive_.insert(*stand.rank);
      }
    for (const Departure& gone : in_.departures)
      if (gone.rank && !waits(*gone.rank)) {
        facts_.waits.erase(*gone.rank);
        facts_.lives.erase(*gone.rank);
        alive_.erase(*gone.rank);
      }
    for (const SightSource source : {SightSource::kFlight, SightSource::kWatchdog}) {
      std::vector<WaitGroup> graph;
      std::vector<const Group*> of;
      for (const Group& group : groups_)
        if (group.source == source && !group.of.key.empty()) {
          graph.push_back(wait_group(group));
          graph.back().exact = source == SightSource::kFlight;
          of.push_back(&group);
        }
      WaitAnswer said = follow_waits(graph, facts_);
      if (said.end == WaitEnd::kNothing) continue;
      const Group* const group = of[said.group];
      ends_.push_back({std::move(said), group, of});
    }
  }
  static bool waits(const Stand& stand) {
    return (stand.call && stand.call->entered) || (stand.counted && stand.completed < stand.enqueued);
  }
  WaitGroup wait_group(const Group& group) const {
    WaitGroup out;
    out.members = members_of(group);
    for (const Stand& stand : group.stands) {
      if (!stand.rank) continue;
      WaitPlace at;
      at.rank = *stand.rank;
      at.enqueued = stand.enqueued;
      at.completed = stand.completed;
      at.since_ns = stand.since_ns;
      at.order = stand.order;
      if (stand.call) at.started = stand.call->started;
      if (stand.call && stand.call->entered) {
        const std::string op = plain_op(stand.call->op);
        at.waits_at = stand.call->seq;
        at.synchronises = synchronises(op);
        out.pairs = out.pairs || op == "send" || op == "recv" || op == "coalesced";
      } else if (stand.counted && stand.completed < stand.enqueued) {
        at.waits_at = stand.completed + 1;
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
      if (one.said.end == end) return tell(one), true;
    return false;
  }
  void tell(const End& end) {
    const WaitAnswer& said = end.said;
    const Group& group = *end.group;
    const SightCall call = call_at(group, said.seq);
    out_.hang.waiting = said.waiting;
    if (!said.circle.empty()) return tell_circle(end, call);
    for (const Stand& stand : group.stands)
      if (stand.waits_at(said.seq)) quote(stand);
    set_call(call, group.of.description);
    for (const Group& of : groups_)
      for (const Stand& stand : of.stands)
        if (stand.rank && std::ranges::binary_search(said.ranks, *stand.rank)) {
          quote(stand);
          if (!stand.doing.empty()) out_.why.push_back(fmt::format("{} is {}", named(stand), stand.doing));
        }
    conclude(said, group, call);
    weigh(std::nullopt);
  }

  static SightCall call_at(const Group& group, int64_t seq) {
    SightCall call;
    call.seq = seq;
    for (const Stand& stand : group.stands)
      if (stand.waits_at(seq)) call = *stand.call;
    return call;
  }

  // Two sides of a circle tell it: who waits where, with the lines of two ranks of each.
  void tell_circle(const End& end, const SightCall& call) {
    constexpr size_t kSides = 2, kOfSide = 2;
    const WaitAnswer& said = end.said;
    set_call(call, end.group->of.description);
    out_.hang.answer = HangAnswer::kMismatch;
    out_.hang.waited_for = said.ranks;
    std::string sides;
    for (size_t i = 0; i < std::min(said.circle.size(), kSides); ++i) {
      const WaitAnswer::Held& side = said.circle[i];
      const Group& of = *end.of[side.group];
      const std::string in = fmt::format("{} of {}", shown_op(call_at(of, side.seq)), of.title());
      sides += fmt::format("{}{} in {}", i ? ", " : "", shown_ranks(side.ranks), in);
      size_t quoted = 0;
      for (const Stand& stand : of.stands)
        if (quoted < kOfSide && stand.waits_at(side.seq) && stand.evidence && stand.rank &&
            std::ranges::binary_search(side.ranks, *stand.rank))
          quote(stand), ++quoted;
    }
    if (said.circle.size() > kSides)
      sides += fmt::format(", and others in {} more operations", said.circle.size() - kSides);
    out_.title = "Ranks wait for each other, each in another group: " + sides;
    if (!said.ranks.empty())
      out_.why.push_back(fmt::format("{} {} the smaller side", shown_ranks(said.ranks),
                                     said.ranks.size() == 1 ? "is" : "are"));
    out_.why.emplace_back(
        "each side waits in a group for ranks that wait in another group: they call their groups in "
        "another order, or one side left a loop earlier");
    if (said.circle.size() == 2) tell_loop(side_of(end, 0), side_of(end, 1));
    out_.certain = true;
    out_.confidence = 0.75;
    weigh(std::nullopt);
  }

  static LoopSide side_of(const End& end, size_t i) {
    const WaitAnswer::Held& held = end.said.circle[i];
    return {held.ranks, call_at(*end.of[held.group], held.seq)};
  }
  void tell_loop(const LoopSide& a, const LoopSide& b) {
    const bool begun = in_.iterated || std::max(a.call.seq, b.call.seq) > kEarly;
    auto said = loop_answer(a, b, begun, name_);
    if (!said) return;
    out_.why.push_back(std::move(said->why));
    if (said->title.empty()) return;
    out_.title = std::move(said->title);
    out_.hang.waited_for = std::move(said->few);
    out_.hang.waiting = std::move(said->many);
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
    for (const Stand* stand : wait->stands) quote(*stand);
    out_.confidence = 0.65;
    weigh(std::nullopt);
    return true;
  }

  void conclude(const WaitAnswer& said, const Group& group, const SightCall& call) {
    const std::string where = shown_op(call) + " of " + group.title();
    switch (said.end) {
      case WaitEnd::kDevice:
        out_.hang.answer = HangAnswer::kUnfinished;
        out_.hang.waited_for = said.ranks;
        out_.title =
            fmt::format("{} did not finish {}, which {} peers finished: a device or link stands still",
                        capital(shown_ranks(said.ranks)), where, said.ranks.size() == 1 ? "its" : "their");
        out_.why.emplace_back(
            said.by_members ? "the last numbers that the ranks print: the peers are beyond it"
                            : "its peers in this group print no wait in it, but in a later operation that "
                              "all ranks entered");
        out_.certain = true;
        out_.confidence = said.by_members ? 0.8 : 0.65;
        break;
      case WaitEnd::kIdle:
        missing_ranks(said.ranks, call, group.of.description);
        out_.why.push_back(said.by_members
                               ? "they live, and wait for no other rank"
                               : "of all ranks that tell something, only they wait for no other rank");
        out_.by_host_code = true;
        out_.certain = said.by_members;
        out_.confidence = said.by_members ? 0.75 : 0.6;
        break;
      case WaitEnd::kAllIn:
        out_.hang.answer = HangAnswer::kUnfinished;
        out_.hang.waited_for = said.ranks;
        out_.title = fmt::format("All {} of {} entered {}, and none finished it: a device or the network",
                                 counted(said.waiting.size() + said.ranks.size(), "rank"), group.title(),
                                 shown_op(call));
        if (!said.ranks.empty())
          out_.title = fmt::format("The device of {} did not begin {}, which its peers began",
                                   shown_ranks(said.ranks), where);
        out_.certain = !said.ranks.empty();
        if (said.ranks.empty()) out_.missing.push_back(kWhichDevice);
        out_.confidence = said.ranks.empty() ? 0.5 : 0.7;
        break;
      case WaitEnd::kAbsent:
        missing_ranks(said.ranks, call, group.of.description);
        out_.why.push_back(fmt::format("all other members of {} wait in it; {} nothing", group.title(),
                                       said.ranks.size() == 1 ? "this rank tells" : "these ranks tell"));
        out_.missing.push_back(fmt::format("why {} did not come: stacks, the state of the process, its log",
                                           shown_ranks(said.ranks)));
        out_.by_host_code =
            std::ranges::all_of(said.ranks, [&](uint32_t rank) { return alive_.contains(rank); });
        out_.confidence = said.ranks.size() == 1 ? 0.6 : 0.5;
        break;
      case WaitEnd::kCircle:
      case WaitEnd::kNothing:
        break;
    }
  }

  // Ranks of one group that wait under one number, in different calls.
  bool by_mismatch() {
    for (const Group& group : groups_) {
      const bool apart = !comparable(group);
      for (const int64_t seq : awaited(group)) {
        NumberedCalls calls;
        const Stand* first = nullptr;
        bool found = false;
        for (const Stand& stand : group.stands) {
          if (!stand.waits_at(seq) || stand.call->op.empty()) continue;
          if (!first) first = &stand;
          found = found || differ(*first->call, *stand.call);
          calls[call_key(*stand.call)].push_back(&stand);
        }
        if (found && (apart ? one_data(calls) : proves(group, calls))) return mismatch(group, calls), true;
      }
    }
    return false;
  }
  // Without the name of the group, equal numbers may be of different groups: then all waiting ranks have to
  // be at one number.
  static bool comparable(const Group& group) { return !group.of.key.empty() || awaited(group).size() == 1; }
  static std::set<int64_t> awaited(const Group& group) {
    std::set<int64_t> out;
    for (const Stand& stand : group.stands)
      if (stand.call && stand.call->seq >= 0) out.insert(stand.call->seq);
    return out;
  }

  void mismatch(const Group& group, const NumberedCalls& calls) {
    const auto most =
        std::ranges::max_element(calls, {}, [](const auto& entry) { return entry.second.size(); });
    size_t all = 0;
    for (const auto& [key, stands] : calls) all += stands.size();
    const bool majority = 2 * most->second.size() > all;
    std::string others;
    for (const auto& [key, stands] : calls) {
      const std::vector<uint32_t> ranks = ranks_of(stands);
      const SightCall& call = *stands[0]->call;
      out_.why.push_back(
          fmt::format("{} called {}", ranks.empty() ? "a rank" : shown_ranks(ranks), shown_call(call)));
      for (const Stand* stand : stands) quote(*stand);
      if (majority && key == most->first) {
        out_.hang.waiting = ranks;
        continue;
      }
      out_.hang.waited_for.insert(out_.hang.waited_for.end(), ranks.begin(), ranks.end());
    }
    const SightCall& call = *most->second[0]->call;
    out_.hang.answer = HangAnswer::kMismatch;
    set_call(call, group.of.description);
    const std::vector<uint32_t>& odd = out_.hang.waited_for;
    const std::string who = odd.empty() ? std::string("Ranks") : capital(shown_ranks(odd));
    out_.title = majority ? fmt::format("{} called another operation or size than {} as #{} of {}", who,
                                        counted(most->second.size(), "peer"), call.seq, group.title())
                          : fmt::format("{} called different operations or sizes as #{} of {}", who, call.seq,
                                        group.title());
    if (majority && calls.size() == 2)
      for (const auto& [key, stands] : calls)
        if (key != most->first) tell_loop({odd, *stands[0]->call}, {out_.hang.waiting, call});
    out_.certain = true;
    out_.confidence = majority || all > 2 ? 0.9 : 0.85;
  }

  bool by_distance() {
    for (const Group& group : groups_) {
      const std::set<int64_t> seqs = awaited(group);
      if (group.of.key.empty() || seqs.size() < 2 || wait_group(group).pairs) continue;
      const bool apart = std::ranges::all_of(group.stands, [](const Stand& s) { return !s.call || s.rank; });
      if (!apart) continue;
      std::vector<const Stand*> low, high;
      for (const Stand& stand : group.stands)
        if (stand.call && stand.call->seq >= 0)
          (stand.call->seq == *seqs.begin() ? low : high).push_back(&stand);
      if (low.empty() || high.empty()) continue;
      set_call(*low[0]->call, group.of.description);
      out_.hang.waiting = ranks_of(high);
      for (const auto* side : {&low, &high})
        for (const Stand* stand : *side) quote(*stand);
      const int64_t ahead = *std::next(seqs.begin());
      // A rank can finish one operation before its peers, and not the next without them.
      const bool by_calls = ahead > *seqs.begin() + 1 || std::ranges::any_of(low, [&](const Stand* s) {
                              return s->counted && s->enqueued < ahead;
                            });
      by_calls ? called_apart(group, low, high) : finished_apart(group, low, high);
      return true;
    }
    return false;
  }
  using Side = std::vector<const Stand*>;

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
  // The ranks that are behind have enqueued the later operation too, or nothing shows that they have not:
  // their program is not behind, and data did not arrive. More than half are not at fault together.
  void finished_apart(const Group& group, const Side& low, const Side& high) {
    out_.hang.answer = HangAnswer::kUnfinished;
    if (low.size() <= high.size()) out_.hang.waited_for = ranks_of(low);
    out_.title =
        fmt::format("{} did not finish {} of {}, which {} finished: the network, or devices, stand still",
                    capital(shown_ranks(ranks_of(low))), shown_op(*low[0]->call), group.title(),
                    shown_ranks(ranks_of(high)));
    const bool said = std::ranges::all_of(low, [](const Stand* s) { return s->counted; });
    out_.why.emplace_back(
        said ? "the ranks that are behind have enqueued the later operation too"
             : "nothing shows that the ranks that are behind did not enqueue the later operation");
    out_.missing.emplace_back(kWhichDevice);
    out_.certain = said;
    out_.confidence = said ? 0.65 : 0.5;
  }

  // Ranks of the group; 0: unknown.
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

  // A barrier among the first operations of a group, or any of them while a bar of the preparation stands.
  // `lasting`: only together with such a bar, which tells more than that its rank says nothing.
  bool by_barrier(bool lasting = false) {
    if (in_.iterated || !in_.departures.empty()) return false;
    for (const Group& group : groups_)
      for (const Stand& stand : group.stands) {
        if (!stand.call || !stand.call->entered) continue;
        const bool early = stand.call->seq <= kEarly;
        const bool store =
            plain_op(stand.call->op) == "store" && (in_.preparing || stand.waited_ns >= kLongForAKey);
        const bool during = early && in_.preparing && in_.preparing->lasts(stand.waited_ns);
        if (lasting && !during) continue;
        if (!store && !during && !(is_barrier(*stand.call) && early && stand.call->seq >= 0)) continue;
        std::vector<const Stand*> in;
        for (const Stand& other : group.stands)
          if (other.waits_at(stand.call->seq)) in.push_back(&other);
        out_.hang.waiting = ranks_of(in);
        missing_ranks(preparing_rank(), *stand.call, group.of.description);
        out_.title = store ? fmt::format("{} wait for a rank that still prepares", who(in))
                           : fmt::format("{} wait in a barrier, {}, for a rank that still works", who(in),
                                         shown_op(*stand.call));
        if (in_.preparing)
          tell_preparing(stand.waited_ns);
        else {
          out_.why.emplace_back(
              store
                  ? "a key of the store is set by the program of a rank: no device takes part"
                  : "one element among the first operations of a group is a barrier: ranks meet after one of "
                    "them prepared something on the host");
          out_.missing.push_back("what the late rank did: its stack, or its own lines");
        }
        for (const Stand* other : in) quote(*other);
        out_.by_host_code = true;
        out_.confidence = in_.preparing ? 0.7 : 0.55;
        return true;
      }
    return false;
  }
  // Whose bar it is: its writer, if that does not wait; else the only rank up to the last one that does not.
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

  // `known`: only a rank that is known to have gone and waits nowhere.
  bool by_departure(bool known) {
    const Departure* gone = nullptr;
    for (const Departure& one : in_.departures) {
      if (known && (!one.rank || waits(*one.rank))) continue;
      // A line says why it left; that it does not answer is the same for all that its launcher ended.
      const bool said = gone && gone->source == SightSource::kWatchdog;
      if (said && one.source != SightSource::kWatchdog) continue;
      if (!gone || (one.at_ns != kNoTime && one.at_ns < gone->at_ns)) gone = &one;
    }
    if (!gone) return false;
    out_.hang.answer = HangAnswer::kLeft;
    const auto rank = gone->rank ? gone->rank : gone->by_peers ? silent_rank(in_.heard) : std::nullopt;
    if (rank) out_.hang.waited_for = {*rank};
    if (rank && !gone->rank)
      out_.why.push_back(
          fmt::format("its peers name it by its address, and of ranks 0 to {} only it logged nothing",
                      *in_.heard.rbegin()));
    const std::string subject = rank ? name_of(*rank) : gone->host ? "A rank on " + *gone->host : "A rank";
    out_.title = gone->kind == DepartureKind::kException
                     ? fmt::format("{} raised an exception: {}", subject, gone->reason)
                     : fmt::format("{} left: {}", subject,
                                   gone->reason.empty() ? "its process is gone" : gone->reason);
    waiting_anywhere();
    prove(gone->evidence, 0.5);
    out_.certain = known;
    out_.by_process = gone->source != SightSource::kWatchdog;
    out_.by_silence = rank && !gone->rank;
    return true;
  }

  // A stack of a process that left, or that was stopped, shows where it was.
  bool waits(uint32_t rank) const {
    return std::ranges::any_of(groups_, [&](const Group& group) {
      return group.source != SightSource::kStack &&
             std::ranges::any_of(group.stands, [&](const Stand& s) { return s.rank == rank && s.call; });
    });
  }

  void unknown() {
    waiting_anywhere();
    if (groups_.empty()) return;
    if (const auto rank = silent_rank(in_.heard); rank && !out_.hang.waiting.empty())
      out_.missing.push_back(fmt::format("what rank {} does: of ranks 0 to {} only it logged nothing", *rank,
                                         *in_.heard.rbegin()));
    const std::string late =
        out_.hang.waiting.empty()
            ? std::string("stacks of all ranks")
            : fmt::format("stacks or dumps of the ranks other than {}", shown_ranks(out_.hang.waiting));
    out_.missing.push_back("who did not come, and why: only ranks that wait print; needed are " + late);
    out_.confidence = 0.5;
  }
  void waiting_anywhere() {
    std::vector<const Stand*> in;
    const Stand* first = nullptr;
    for (const Group& group : groups_)
      for (const Stand& stand : group.stands) {
        if (!stand.call) continue;
        if (!first) first = &stand, set_call(*stand.call, group.of.description);
        in.push_back(&stand);
        quote(stand);
      }
    if (!first) return;
    out_.hang.waiting = ranks_of(in);
    if (out_.title.empty())
      out_.title =
          fmt::format("{} wait in {}, and the lines do not say for whom", who(in), shown_op(*first->call));
  }

  // --- words ---

  void missing_ranks(std::vector<uint32_t> ranks, const SightCall& call, const std::string& group) {
    out_.hang.answer = HangAnswer::kMissing;
    set_call(call, group);
    const std::string of = group.empty() ? std::string() : " of group " + group;
    const std::string subject = ranks.size() == 1 ? name_of(ranks[0])
                                : ranks.empty()   ? std::string("A rank")
                                                  : capital(shown_ranks(ranks));
    out_.title = fmt::format("{} never joined {}{}", subject, shown_op(call), of);
    out_.hang.waited_for = std::move(ranks);
  }
  void set_call(const SightCall& call, const std::string& group) {
    out_.hang.op = call.op;
    out_.hang.seq = call.seq;
    out_.hang.group = group;
  }
  std::string name_of(uint32_t rank) const { return name_ ? name_(rank) : fmt::format("Rank {}", rank); }
  std::string named(const Stand& stand) const {
    return stand.rank ? fmt::format("rank {}", *stand.rank) : std::string("it");
  }
  std::string who(const std::vector<const Stand*>& in) const {
    const std::vector<uint32_t> ranks = ranks_of(in);
    if (ranks.empty()) return "Ranks";
    return ranks.size() == 1 ? fmt::format("Rank {} and others", ranks[0]) : counted(ranks.size(), "rank");
  }
  static std::string capital(std::string text) {
    if (!text.empty() && text[0] >= 'a' && text[0] <= 'z') text[0] = static_cast<char>(text[0] - 0x20);
    return text;
  }
  static std::vector<uint32_t> ranks_of(const std::vector<const Stand*>& stands) {
    std::set<uint32_t> out;
    for (const Stand* stand : stands)
      if (stand->rank) out.insert(*stand->rank);
    return {out.begin(), out.end()};
  }
  void quote(const Stand& stand) {
    if (stand.evidence && out_.evidence.size() < kQuotes) out_.evidence.push_back(*stand.evidence);
  }
  void prove(const Evidence& evidence, double confidence) {
    if (out_.evidence.empty() && !evidence.text.empty()) out_.evidence.push_back(evidence);
    out_.certain = true;
    out_.confidence = confidence;
  }

  // --- the table and the sentence ---

  void finish() {
    std::ranges::sort(out_.hang.waited_for);
    std::map<std::tuple<std::string, std::string, int64_t, ScenePlace, std::string>, std::set<uint32_t>> rows;
    std::map<std::string, std::string> spelled;  // sources spell one operation differently
    for (const Group& group : groups_)
      for (const Stand& stand : group.stands) {
        if (!stand.rank) continue;
        const std::string title = group.of.description.empty() ? group.of.key : group.of.description;
        const bool elsewhere = stand.state != SightState::kUnknown && stand.state != SightState::kInCall;
        const ScenePlace place = elsewhere    ? ScenePlace::kElsewhere
                                 : stand.call ? ScenePlace::kWaits
                                 : stand.enqueued >= 0 && stand.completed >= stand.enqueued
                                     ? ScenePlace::kFinished
                                     : ScenePlace::kUnknown;
        const int64_t seq = stand.call ? stand.call->seq : stand.enqueued;
        const std::string op = stand.call ? plain_op(stand.call->op) : std::string();
        if (stand.call) spelled.try_emplace(op, stand.call->op);
        rows[{title, op, seq, place, stand.doing}].insert(*stand.rank);
      }
    for (const Departure& gone : in_.departures)
      if (gone.rank)
        rows[{gone.group.description, "", -1, ScenePlace::kLeft, gone.reason}].insert(*gone.rank);
    for (const auto& [key, ranks] : rows) {
      const auto& [group, op, seq, place, doing] = key;
      out_.hang.scene.push_back({group, spelled[op], seq, place, doing, {ranks.begin(), ranks.end()}});
    }
    std::ranges::stable_sort(out_.hang.scene, std::ranges::greater{},
                             [](const SceneRow& row) { return row.ranks.size(); });
    if (out_.hang.scene.size() > kSceneRows) out_.hang.scene.resize(kSceneRows);
    out_.hang.sentence = out_.title;
    if (out_.title.empty() || out_.hang.waiting.empty() || out_.hang.answer == HangAnswer::kUnknown) return;
    out_.hang.sentence += waiting_words(out_.hang);
  }

  const SceneInput& in_;
  const NameOfRank& name_;
  std::vector<Group> groups_;
  RankFacts facts_;
  std::set<uint32_t> alive_;
  std::vector<End> ends_;
  SceneAnswer out_;
};

}  // namespace

Statement stated_by(SightSource source, HangAnswer answer, Finding finding) {
  Statement out;
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

std::optional<uint32_t> silent_rank(const std::set<uint32_t>& heard) {
  if (heard.size() < 2 || *heard.rbegin() != heard.size()) return std::nullopt;
  uint32_t rank = 0;
  while (heard.contains(rank)) ++rank;
  return rank;
}

SceneAnswer answer(const SceneInput& input, const NameOfRank& name) { return SceneJudge(input, name).run(); }

}  // namespace culprit::scene
