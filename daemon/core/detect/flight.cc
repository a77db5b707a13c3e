#include "core/detect/flight.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>

#include "base/text.h"
#include "core/detect/flight_teams.h"

namespace culprit::detect {
namespace {

// Of a rank: what speaks against it, best told sentence last.
struct Accused {
  std::string why;
  double score = 0;
};
using Accusations = std::map<uint32_t, Accused>;  // by rank

// What a rank has under way.
struct Under {
  bool collective = false, receive = false, send = false;
  uint32_t first = UINT32_MAX;  // index of the operation in which it waits
  bool none() const { return !collective && !receive && !send; }
};

std::string rank_list(const std::set<uint32_t>& ranks) {
  constexpr size_t kShown = 8;
  std::string out = ranks.size() == 1 ? "rank " : "ranks ";
  size_t n = 0;
  for (const uint32_t rank : ranks) {
    if (n++ == kShown) return out + fmt::format(" and {} more", ranks.size() - kShown);
    out += fmt::format("{}{}", n > 1 ? ", " : "", rank);
  }
  return out;
}

class Inquiry {
 public:
  Inquiry(std::span<const FlightDump> dumps, const PlaceOfRank& place)
      : dumps_(dumps), place_(place), under_(dumps.size()), older_(dumps.size(), false) {}

  FlightAnswer run() {
    look_over();
    if (!anything_) return std::move(out_);
    teams_ = teams_of(dumps_);
    std::erase_if(teams_, [](const FlightTeam& t) { return t.pipeline || t.standings.empty(); });
    find_older();
    if (snapshot_of_work()) return std::move(out_);
    Accusations odd = find_mismatches();
    Accusations devices = find_devices();
    Accusations hosts = find_hosts(false);
    if (hosts.empty() && devices.empty()) hosts = find_hosts(true);
    if (hosts.empty() && devices.empty()) hosts = find_silent_sources();
    Accusations absent;
    if (hosts.empty() && devices.empty()) absent = find_absent();
    tell_absent(absent);
    tell(odd, devices, hosts, absent);
    return std::move(out_);
  }

 private:
  void look_over() {
    for (uint32_t d = 0; d < dumps_.size(); ++d) {
      const FlightDump& dump = dumps_[d];
      Under& under = under_[d];
      for (uint32_t i = 0; i < dump.ops.size(); ++i) {
        const FlightOp& op = dump.ops[i];
        if (op.done) continue;
        const bool send = op.p2p && dump.words[op.name].starts_with("send");
        (!op.p2p ? under.collective : send ? under.send : under.receive) = true;
        if (!send && under.first == UINT32_MAX) under.first = i;
      }
      for (const FlightGroup& g : dump.groups)
        if (dump.ops.empty() && g.enqueued && g.completed && *g.completed < *g.enqueued)
          under.collective = true;
      anything_ = anything_ || !under.none();
    }
  }

  // A rank cannot have left an operation that another had not entered: then the other's dump was written
  // earlier, and says nothing of where it is now.
  void find_older() {
    for (const FlightTeam& team : teams_) {
      const auto most =
          std::max_element(team.standings.begin(), team.standings.end(),
                           [](const Standing& a, const Standing& b) { return a.completed < b.completed; });
      for (const Standing& at : team.standings)
        if (at.enqueued < most->completed && any_synchronises(*most, at.enqueued, most->completed))
          older_[at.dump] = true;
    }
    for (uint32_t d = 0; d < dumps_.size(); ++d)
      if (older_[d])
        out_.problems.push_back({dumps_[d].file, std::nullopt,
                                 "was written at another time than the dumps of its peers, which have "
                                 "completed what it had not enqueued: it says nothing of the hang"});
    for (FlightTeam& team : teams_)
      std::erase_if(team.standings, [&](const Standing& at) { return older_[at.dump]; });
  }

  // Of the operations (after, to] of which the dump has entries; true where it has none.
  bool any_synchronises(const Standing& at, int64_t after, int64_t to) const {
    bool seen = false;
    for (const FlightOp& op : dumps_[at.dump].ops) {
      if (op.group != at.group || op.p2p || op.seq <= after || op.seq > to) continue;
      seen = true;
      if (synchronises(dumps_[at.dump].words[op.name])) return true;
    }
    return !seen;
  }

  // Dumps that were taken of a job at work: everything under way was a second old at most when it was
  // written. Files that were copied have other times, and tell nothing here.
  bool snapshot_of_work() const {
    constexpr TimeNs kBrief = kNsPerSecond;
    for (uint32_t d = 0; d < dumps_.size(); ++d) {
      if (under_[d].none() || older_[d]) continue;
      if (dumps_[d].written_ns == kNoTime) return false;
      for (const FlightOp& op : dumps_[d].ops) {
        if (op.done) continue;
        const TimeNs age = dumps_[d].written_ns - op.created_ns;
        if (op.created_ns == kNoTime || age < 0 || age > kBrief) return false;
      }
    }
    return true;
  }

  size_t told() const {
    return dumps_.size() - static_cast<size_t>(std::count(older_.begin(), older_.end(), true));
  }
  // One of many is the culprit; most of them are not.
  bool too_many(size_t accused) const { return told() > 2 && 2 * accused > told(); }

  struct Call {
    int64_t seq;
    uint32_t dump;
    const FlightOp* op;
  };

  // What a rank said of an operation, as far as it must be alike on all ranks.
  std::string call_of(const Call& call) const {
    const std::vector<std::string>& words = dumps_[call.dump].words;
    const std::string& name = words[call.op->name];
    std::string out = name;
    const bool alike = name.find("all_to_all") == name.npos && name.find("alltoall") == name.npos;
    // Lists of tensors may be uneven; what has one tensor a rank may not.
    const bool flat = name.starts_with("all_reduce") || name.starts_with("allreduce") ||
                      name.starts_with("broadcast") || name.find("_base") != name.npos || name == "reduce";
    if (alike && flat && call.op->in_sizes) out += " of " + words[call.op->in_sizes];
    if (alike && call.op->dtypes) out += " " + words[call.op->dtypes];
    return out;
  }

  Accusations find_mismatches() {
    Accusations out;
    for (const FlightTeam& team : teams_) {
      std::vector<Call> calls;
      for (const Standing& at : team.standings) {
        for (const FlightOp& op : dumps_[at.dump].ops)
          if (op.group == at.group && !op.p2p) calls.push_back({op.seq, at.dump, &op});
      }
      std::stable_sort(calls.begin(), calls.end(),
                       [](const Call& a, const Call& b) { return a.seq < b.seq; });
      for (size_t i = 0; i < calls.size();) {
        size_t end = i;
        while (end < calls.size() && calls[end].seq == calls[i].seq) ++end;
        if (compare(team, {calls.data() + i, end - i}, out)) break;
        i = end;
      }
    }
    return out;
  }

  // Whether ranks that are not done with it called different things. What completed everywhere did no harm.
  bool compare(const FlightTeam& team, std::span<const Call> calls, Accusations& out) {
    if (std::all_of(calls.begin(), calls.end(), [](const Call& c) { return c.op->done; })) return false;
    std::map<std::string, std::set<uint32_t>> by_call;
    std::set<uint32_t> dumps;
    for (const Call& c : calls) {
      if (!dumps.insert(c.dump).second) return false;  // several operations coalesced under one number
      by_call[call_of(c)].insert(dumps_[c.dump].rank);
    }
    if (by_call.size() < 2) return false;
    const auto most = std::max_element(by_call.begin(), by_call.end(), [](const auto& a, const auto& b) {
      return a.second.size() < b.second.size();
    });
    const bool majority = 2 * most->second.size() > dumps.size();
    for (const auto& [call, ranks] : by_call) {
      if (majority && call == most->first) continue;
      const std::string others = majority ? most->first : "another operation";
      const std::string why =
          fmt::format("{} called {} as operation {} of {}, where {} called {}", rank_list(ranks), call,
                      calls[0].seq, team.title(), majority ? rank_list(most->second) : "others", others);
      for (const uint32_t rank : ranks) out.try_emplace(rank, Accused{why, majority ? 0.9 : 0.5});
    }
    return true;
  }

  Accusations find_devices() {
    Accusations out;
    for (const FlightTeam& team : teams_) {
      for (const Standing& at : team.standings) {
        if (!at.waits()) continue;
        std::set<uint32_t> ahead;
        int64_t most = at.completed;
        for (const Standing& peer : team.standings) {
          if (peer.completed <= at.completed) continue;
          ahead.insert(dumps_[peer.dump].rank);
          most = std::max(most, peer.completed);
        }
        if (ahead.empty() || !any_synchronises(at, at.completed, std::min(most, at.enqueued))) continue;
        Accused& accused = out[dumps_[at.dump].rank];
        if (accused.score > 0) continue;
        accused = {fmt::format("rank {} has not completed {} {} of {}, which {} {}", dumps_[at.dump].rank,
                               op_name(dumps_, team, at.awaited()), at.awaited(), team.title(),
                               rank_list(ahead), ahead.size() == 1 ? "has" : "have"),
                   0.9};
      }
    }
    if (too_many(out.size())) {
      many_ = fmt::format(
          "{} of {} ranks are behind others: the dumps may be of a job at work, taken one "
          "after the other",
          out.size(), told());
      out.clear();
    }
    return out;
  }

  // Whom others wait for, of those that have nothing under way; `sends`: but sends, which nobody may have
  // asked for yet.
  Accusations find_hosts(bool sends) {
    struct Late {
      size_t late = SIZE_MAX, waiting = 0;
      std::string why;
    };
    std::map<uint32_t, Late> late;
    for (const FlightTeam& team : teams_) {
      std::vector<int64_t> awaited;
      for (const Standing& at : team.standings)
        if (at.waits()) awaited.push_back(at.awaited());
      if (awaited.empty()) continue;
      std::sort(awaited.begin(), awaited.end());
      const auto waiting_for = [&](const Standing& at) {
        return static_cast<size_t>(awaited.end() -
                                   std::upper_bound(awaited.begin(), awaited.end(), at.enqueued));
      };
      const auto behind =
          static_cast<size_t>(std::count_if(team.standings.begin(), team.standings.end(),
                                            [&](const Standing& a) { return waiting_for(a) > 0; }));
      for (const Standing& at : team.standings) {
        const size_t waiting = waiting_for(at);
        const Under& under = under_[at.dump];
        if (waiting == 0 || under.collective || under.receive || (under.send && !sends)) continue;
        // The group in which fewest are late says most.
        Late& l = late[dumps_[at.dump].rank];
        if (std::pair(behind, l.waiting) >= std::pair(l.late, waiting)) continue;
        const int64_t seq = *std::upper_bound(awaited.begin(), awaited.end(), at.enqueued);
        l = {behind, waiting,
             fmt::format("rank {} has not enqueued {} {} of {}, in which {}, and waits for nobody itself",
                         dumps_[at.dump].rank, op_name(dumps_, team, seq), seq, team.title(),
                         waiting == 1 ? "1 rank waits" : fmt::format("{} ranks wait", waiting))};
      }
    }
    Accusations out;
    for (auto& [rank, l] : late) out[rank] = {std::move(l.why), sends ? 0.7 : 0.9};
    if (too_many(out.size())) {
      many_ = fmt::format("{} of {} ranks have not enqueued what the others wait in", out.size(), told());
      out.clear();
    }
    return out;
  }

  // In a pipeline nothing but receives may be under way: then the rank that should send and has nothing under
  // way itself.
  Accusations find_silent_sources() {
    std::unordered_map<uint32_t, uint32_t> dump_of;
    for (uint32_t d = 0; d < dumps_.size(); ++d)
      if (!older_[d]) dump_of[dumps_[d].rank] = d;
    Accusations out;
    for (const auto& [rank, d] : dump_of)
      for (const FlightOp& op : dumps_[d].ops) {
        const auto source = op.done || !op.p2p ? std::nullopt : source_of_recv(dumps_[d], op);
        const auto from = source ? dump_of.find(*source) : dump_of.end();
        if (from == dump_of.end() || !under_[from->second].none()) continue;
        out.try_emplace(*source, Accused{fmt::format("rank {} waits to receive from rank {}, which waits for "
                                                     "nobody itself",
                                                     rank, *source),
                                         0.7});
      }
    if (too_many(out.size())) out.clear();
    return out;
  }

  std::set<uint32_t> absent_of(const FlightTeam& team) const {
    std::set<uint32_t> out(team.ranks.begin(), team.ranks.end());
    for (const Standing& at : team.standings) out.erase(dumps_[at.dump].rank);
    for (uint32_t d = 0; d < dumps_.size(); ++d)
      if (older_[d]) out.erase(dumps_[d].rank);
    return out;
  }

  // Where all that are there wait in the same operation, the absent are suspected.
  Accusations find_absent() {
    Accusations out;
    for (const FlightTeam& team : teams_) {
      const std::set<uint32_t> absent = absent_of(team);
      if (absent.empty() || absent.size() >= team.standings.size()) continue;
      const int64_t seq = team.standings[0].awaited();
      const bool all = std::all_of(team.standings.begin(), team.standings.end(),
                                   [&](const Standing& at) { return at.waits() && at.awaited() == seq; });
      if (!all) continue;
      for (const uint32_t rank : absent)
        out.try_emplace(
            rank, Accused{fmt::format("rank {} left no dump, and all the others wait in {} {} of {}", rank,
                                      op_name(dumps_, team, seq), seq, team.title()),
                          absent.size() == 1 ? 0.7 : 0.5});
    }
    return out;
  }

  void tell_absent(const Accusations& accused) {
    std::set<uint32_t> absent;
    for (const FlightTeam& team : teams_)
      for (const uint32_t rank : absent_of(team))
        if (!accused.contains(rank)) absent.insert(rank);
    for (const FlightDump& dump : dumps_) absent.erase(dump.rank);
    if (!absent.empty())
      out_.missing.push_back(fmt::format("the Flight Recorder dumps of {}", rank_list(absent)));
  }

  // --- what is told ---

  TimeNs since() const {
    TimeNs first = kNoTime;
    for (const bool collectives : {true, false}) {
      for (uint32_t d = 0; d < dumps_.size() && (collectives || first == kNoTime); ++d)
        for (const FlightOp& op : dumps_[d].ops)
          if (!op.done && !older_[d] && op.p2p != collectives && op.created_ns != kNoTime &&
              (first == kNoTime || op.created_ns < first))
            first = op.created_ns;
    }
    return first;
  }

  std::vector<std::string> frames_of(uint32_t d) const {
    const FlightDump& dump = dumps_[d];
    const Under& under = under_[d];
    if (under.first == UINT32_MAX) return {under.send ? "in a send" : "in no operation of a group"};
    const FlightOp& op = dump.ops[under.first];
    std::vector<std::string> out;
    for (const uint32_t frame : dump.stacks[op.stack]) out.push_back(dump.words[frame]);
    if (!out.empty()) return out;
    const FlightGroup& group = dump.groups[op.group];
    const std::string& name = dump.words[op.name];
    return {fmt::format("{} of {}", op.p2p ? name.substr(0, name.find(' ')) : name,
                        group.description.empty() ? "group " + group.name : group.description)};
  }

  void add_clusters(const std::set<uint32_t>& accused) {
    std::map<std::pair<bool, std::vector<std::string>>, std::vector<uint32_t>> clusters;
    for (uint32_t d = 0; d < dumps_.size(); ++d) {
      if (older_[d]) continue;
      const bool healthy = !under_[d].none() && !accused.contains(dumps_[d].rank);
      clusters[{healthy, frames_of(d)}].push_back(dumps_[d].rank);
    }
    for (auto& [key, ranks] : clusters) {
      std::sort(ranks.begin(), ranks.end());
      out_.hang->clusters.push_back({key.second, std::move(ranks), key.first});
    }
    std::stable_sort(
        out_.hang->clusters.begin(), out_.hang->clusters.end(),
        [](const StackCluster& a, const StackCluster& b) { return a.ranks.size() > b.ranks.size(); });
  }

  void add_suspects(const Accusations& accused, Component component) {
    for (const auto& [rank, a] : accused) {
      if (!told_.insert(rank).second) continue;
      const RankPlace place = place_of(rank);
      Suspect s;
      s.host = place.host;
      s.score = a.score;
      s.ranks = {rank};
      if (place.device) s.devices = {*place.device};
      s.why = {a.why};
      s.single = true;
      s.rank = rank;
      s.device = place.device;
      out_.hang->suspects.push_back(std::move(s));
      if (component == Component::kUserCode) continue;  // sits on no host
      Finding support = about(rank);
      support.why = {a.why};
      support.subjects[0].strength =
          2 * a.score;  // of at most 3: more than a line, less than a driver's word
      out_.findings.push_back(std::move(support));
    }
  }

  RankPlace place_of(uint32_t rank) const { return place_ ? place_(rank) : RankPlace{}; }

  Finding about(uint32_t rank) const {
    const RankPlace place = place_of(rank);
    Finding f;
    f.detector = "comm";
    f.first_ns = f.last_ns = out_.hang->since_ns;
    f.subjects.push_back({place.host, rank, place.device, {}, 0});
    return f;
  }

  Evidence evidence_of(uint32_t rank, const std::string& why) const {
    Evidence e;
    e.host = place_of(rank).host;
    e.rank = rank;
    e.text = why;
    e.time_ns = out_.hang->since_ns;
    const auto own =
        std::find_if(dumps_.begin(), dumps_.end(), [&](const FlightDump& d) { return d.rank == rank; });
    e.file = (own == dumps_.end() ? dumps_[0] : *own).file;
    return e;
  }

  Finding fault(const Accusations& accused, const char* what) {
    Finding f = about(0);
    f.subjects.clear();
    f.kind = FindingKind::kFault;
    f.symptom = Symptom::kHang;
    f.fatal = true;
    std::set<uint32_t> ranks;
    for (const auto& [rank, a] : accused) {
      ranks.insert(rank);
      f.subjects.push_back(about(rank).subjects[0]);
      f.confidence = std::max(f.confidence, a.score);
      if (std::find(f.why.begin(), f.why.end(), a.why) == f.why.end()) f.why.push_back(a.why);
      if (f.evidence.size() < 16) f.evidence.push_back(evidence_of(rank, a.why));
    }
    f.lines = accused.size();
    f.title = fmt::format("{} {}", rank_list(ranks), what);
    f.title[0] = 'R';
    return f;
  }

  void tell_odd(const Accusations& odd) {
    if (odd.empty()) return;
    Finding f = fault(odd, odd.size() == 1 ? "calls another collective than its peers"
                                           : "call other collectives than their peers");
    f.of_nobody = true;
    f.category = Category::kUser;
    f.component = Component::kUserCode;
    f.action = ActionKind::kFix;
    f.remedy =
        "Make all ranks of a group call the same collectives in the same order with the same sizes and "
        "types: look for conditions on the rank, on data or on time round them.";
    out_.findings.push_back(std::move(f));
  }

  void tell_devices(const Accusations& devices) {
    if (devices.empty()) return;
    Finding f = fault(devices, "did not complete what the peers completed: the device is stuck");
    f.category = Category::kHardware;
    f.component = Component::kGpu;
    f.action = ActionKind::kIsolate;
    f.remedy =
        "Read the kernel's log of the host for Xid errors and run the vendor's diagnostics on the device; "
        "restart the job without it.";
    out_.findings.push_back(std::move(f));
  }

  void tell_hosts(const Accusations& hosts, bool odd) {
    if (hosts.empty()) return;
    Finding f = fault(hosts, "did not come to the operation in which the others wait: the process is stuck");
    if (odd) f.role = FindingRole::kCascade;  // who calls other things does not come either
    f.action = ActionKind::kCheck;
    f.remedy =
        "Take stacks of the process (py-spy dump, and gdb where it does not answer): a lock, a data "
        "loader, a file system or a device call that does not return. Restart the job without the host "
        "where nothing of the program explains it.";
    out_.findings.push_back(std::move(f));
  }

  void tell_nobody() {
    Finding f = about(0);
    f.subjects.clear();
    f.kind = FindingKind::kFault;
    f.role = FindingRole::kCascade;
    f.symptom = Symptom::kHang;
    f.component = Component::kNcclComm;
    f.of_nobody = true;
    f.confidence = 0.4;
    size_t waiting = 0;
    for (uint32_t d = 0; d < dumps_.size(); ++d) waiting += !older_[d] && !under_[d].none();
    f.title = fmt::format("{} of {} ranks wait in communication, and none is late", waiting, told());
    f.why.push_back(many_.empty() ? "all ranks that left a dump have enqueued what the others wait in"
                                  : many_);
    f.action = ActionKind::kCheck;
    f.remedy = "Take stacks of the ranks (py-spy dump) and look at the network between them.";
    out_.findings.push_back(std::move(f));
  }

  void tell(const Accusations& odd, const Accusations& devices, const Accusations& hosts,
            const Accusations& absent) {
    out_.hang.emplace();
    out_.hang->since_ns = since();
    std::set<uint32_t> accused;
    for (const Accusations* list : {&odd, &devices, &hosts, &absent})
      for (const auto& [rank, a] : *list) accused.insert(rank);
    tell_odd(odd);
    tell_devices(devices);
    tell_hosts(hosts, !odd.empty());
    if (!absent.empty()) {
      Finding f = fault(absent, "left no dump while all the others wait");
      if (!odd.empty()) f.role = FindingRole::kCascade;
      f.action = ActionKind::kCheck;
      f.remedy = "See whether the process is alive and the host answers; read its logs.";
      out_.findings.push_back(std::move(f));
    }
    if (accused.empty()) tell_nobody();
    add_clusters(accused);
    add_suspects(odd, Component::kUserCode);
    add_suspects(devices, Component::kGpu);
    // Where calls differ, those that wait elsewhere are no other suspects.
    if (odd.empty()) add_suspects(hosts, Component::kUnknown);
    if (odd.empty()) add_suspects(absent, Component::kUnknown);
    std::stable_sort(out_.hang->suspects.begin(), out_.hang->suspects.end(),
                     [](const Suspect& a, const Suspect& b) { return a.score > b.score; });
  }

  std::span<const FlightDump> dumps_;
  const PlaceOfRank& place_;
  std::vector<Under> under_;  // by dump
  std::vector<bool> older_;   // by dump: written at another time than the others
  std::vector<FlightTeam> teams_;
  std::set<uint32_t> told_;  // suspects
  bool anything_ = false;
  std::string many_;  // why nobody is named where many could be
  FlightAnswer out_;
};

}  // namespace

FlightAnswer analyse_flight(std::span<const FlightDump> dumps, const PlaceOfRank& place) {
  if (dumps.empty()) return {};
  return Inquiry(dumps, place).run();
}

}  // namespace culprit::detect
