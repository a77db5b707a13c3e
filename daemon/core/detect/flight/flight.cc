#include "core/detect/flight/flight.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "core/detect/flight/cycle.h"
#include "core/detect/flight/rules.h"
#include "core/detect/flight/scene_rows.h"
#include "core/detect/flight/sights.h"

namespace culprit::flight {
namespace {

class Inquiry {
 public:
  Inquiry(std::span<const FlightDump> dumps, const PlaceOfRank& place)
      : dumps_(dumps), place_(place), scene_(dumps, out_.problems) {}

  FlightAnswer run() {
    if (!scene_.anything() || scene_.snapshot_of_work()) return std::move(out_);
    const FlightAccusations odd = find_mismatches(scene_);
    const FlightAccusations devices = find_stuck_devices(scene_, many_);
    FlightAccusations hosts = find_stuck_hosts(scene_, false, many_);
    if (hosts.empty() && devices.empty()) hosts = find_stuck_hosts(scene_, true, many_);
    if (hosts.empty() && devices.empty()) hosts = find_silent_sources(scene_);
    const FlightAccusations absent = find_absent(scene_);
    report_absent(hosts.empty() && devices.empty() ? absent : FlightAccusations());
    report(odd, devices, hosts, absent);
    out_.sights = sights_of(scene_, place_);
    return std::move(out_);
  }

 private:
  void report_absent(const FlightAccusations& accused) {
    std::set<uint32_t> absent;
    for (const FlightTeam& team : scene_.teams())
      for (const uint32_t rank : absent_of(scene_, team))
        if (!accused.contains(rank)) absent.insert(rank);
    for (const FlightDump& dump : dumps_) absent.erase(dump.rank);
    if (!absent.empty())
      out_.missing.push_back(fmt::format("the Flight Recorder dumps of {}", rank_list(absent)));
  }

  // --- report ---

  TimeNs since() const {
    TimeNs first = kNoTime;
    for (const bool collectives : {true, false}) {
      for (uint32_t d = 0; d < dumps_.size() && (collectives || first == kNoTime); ++d)
        for (const FlightOp& op : dumps_[d].ops)
          if (!op.done && !scene_.older(d) && op.p2p != collectives && op.created_ns != kNoTime &&
              (first == kNoTime || op.created_ns < first))
            first = op.created_ns;
    }
    return first;
  }

  std::vector<std::string> frames_of(uint32_t d) const {
    const FlightDump& dump = dumps_[d];
    const FlightUnder& under = scene_.under(d);
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
      if (scene_.older(d)) continue;
      const bool healthy = !scene_.under(d).none() && !accused.contains(dumps_[d].rank);
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

  void add_suspects(const FlightAccusations& accused, Component component) {
    for (const auto& [rank, a] : accused) {
      if (!reported_.insert(rank).second) continue;
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
      if (component == Component::kUserCode) continue;  // a program fault belongs to no host
      Finding support = about(rank);
      support.why = {a.why};
      support.subjects[0].strength =
          2 * a.score;  // at most 2 on a scale to 3: stronger than a log line, weaker than a driver's report
      out_.findings.push_back(std::move(support));
    }
  }

  RankPlace place_of(uint32_t rank) const { return place_ ? place_(rank) : RankPlace{}; }

  Finding about(uint32_t rank) const {
    const RankPlace place = place_of(rank);
    Finding f;
    f.detector = DetectorKind::kComm;
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

  Finding fault(const FlightAccusations& accused, const char* what) {
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

  void report_odd(const FlightAccusations& odd) {
    if (odd.empty()) return;
    Finding f = fault(odd, odd.size() == 1 ? "calls another collective than its peers"
                                           : "call other collectives than their peers");
    f.by_no_device = true;
    f.category = Category::kUser;
    f.component = Component::kUserCode;
    f.action = ActionKind::kFix;
    f.remedy =
        "Make all ranks of a group call the same collectives in the same order with the same sizes and "
        "types: look for conditions on the rank, on data or on time round them.";
    state(HangAnswer::kMismatch, std::move(f));
  }

  // The rules prove it: the scene of all sources counts with it.
  void state(HangAnswer answer, Finding f) {
    if (f.role == FindingRole::kRoot)
      out_.statements.push_back(scene::stated_by(scene::SightSource::kFlight, answer, f));
    out_.findings.push_back(std::move(f));
  }

  void report_devices(const FlightAccusations& devices) {
    if (devices.empty()) return;
    Finding f = fault(devices, "did not complete what the peers completed: its device or link stands still");
    f.category = Category::kHardware;
    f.component = Component::kGpu;
    // A link that went down looks the same in the dumps.
    f.action = ActionKind::kCheck;
    f.remedy =
        "Read the kernel's log of the host for Xid errors and for links that went down, and run the vendor's "
        "diagnostics on the device; restart the job without the host if one of them shows a fault.";
    state(HangAnswer::kUnfinished, std::move(f));
  }

  void report_hosts(const FlightAccusations& hosts, bool odd) {
    if (hosts.empty()) return;
    Finding f = fault(hosts, "did not come to the operation in which the others wait: the process is stuck");
    // Ranks that call other operations do not enter the common one either.
    if (odd) f.role = FindingRole::kCascade;
    f.action = ActionKind::kCheck;
    f.remedy =
        "Take stacks of the process (py-spy dump, and gdb where it does not answer): a lock, a data "
        "loader, a file system or a device call that does not return. Restart the job without the host "
        "where nothing of the program explains it.";
    state(HangAnswer::kMissing, std::move(f));
  }

  // Each rank waits for the next, in different groups: the fault is in the program, not in a rank.
  bool report_cycle() {
    const std::vector<FlightWait> cycle =
        many_.empty() ? find_cycle(dumps_, scene_.teams()) : std::vector<FlightWait>();
    if (cycle.empty()) return false;
    constexpr size_t kShown = 8;
    Finding f = about(0);
    f.subjects.clear();
    f.kind = FindingKind::kFault;
    f.symptom = Symptom::kHang;
    f.fatal = f.by_no_device = true;
    f.confidence = 0.7;
    f.category = Category::kUser;
    f.component = Component::kUserCode;
    f.action = ActionKind::kFix;
    std::set<uint32_t> ranks;
    for (const FlightWait& wait : cycle) {
      ranks.insert(wait.rank);
      if (f.why.size() >= kShown) continue;
      f.why.push_back(fmt::format("rank {} waits in {} {} of {} for rank {}, which has not enqueued it",
                                  wait.rank, wait.op, wait.seq, wait.group, wait.for_rank));
      f.evidence.push_back(evidence_of(wait.rank, f.why.back()));
    }
    f.lines = cycle.size();
    f.title = rank_list(ranks) + " wait for each other, each in another group";
    f.title[0] = 'R';
    f.remedy =
        "Make all ranks enter the collectives of their groups in the same order: look for groups that some "
        "ranks use before and others after the same point of the step.";
    out_.findings.push_back(std::move(f));
    return true;
  }

  void report_no_rank() {
    Finding f = about(0);
    f.subjects.clear();
    f.kind = FindingKind::kFault;
    f.role = FindingRole::kCascade;
    f.symptom = Symptom::kHang;
    f.component = Component::kNcclComm;
    f.by_no_device = true;
    f.confidence = 0.4;
    size_t waiting = 0;
    for (uint32_t d = 0; d < dumps_.size(); ++d) waiting += !scene_.older(d) && !scene_.under(d).none();
    f.title = fmt::format("{} of {} ranks wait in communication, and none is late", waiting,
                          scene_.informative_dumps());
    f.why.push_back(many_.empty() ? "all ranks that left a dump have enqueued what the others wait in"
                                  : many_);
    f.action = ActionKind::kCheck;
    f.remedy = "Take stacks of the ranks (py-spy dump) and look at the network between them.";
    out_.findings.push_back(std::move(f));
  }

  void report(const FlightAccusations& odd, const FlightAccusations& devices, const FlightAccusations& hosts,
              const FlightAccusations& absent) {
    out_.hang.emplace();
    out_.hang->since_ns = since();
    std::set<uint32_t> accused;
    for (const FlightAccusations* list : {&odd, &devices, &hosts, &absent})
      for (const auto& [rank, a] : *list) accused.insert(rank);
    report_odd(odd);
    report_devices(devices);
    report_hosts(hosts, !odd.empty());
    const bool alone = hosts.empty() && devices.empty();
    if (!absent.empty() && alone) {
      Finding f = fault(absent, "left no dump while all the others wait");
      if (!odd.empty()) f.role = FindingRole::kCascade;
      f.action = ActionKind::kCheck;
      f.remedy = "See whether the process is alive and the host answers; read its logs.";
      out_.findings.push_back(std::move(f));
    }
    if (accused.empty() && !report_cycle()) report_no_rank();
    add_clusters(accused);
    add_suspects(odd, Component::kUserCode);
    add_suspects(devices, Component::kGpu);
    // If calls differ, ranks that wait elsewhere are not separate suspects.
    if (odd.empty()) add_suspects(hosts, Component::kUnknown);
    if (odd.empty()) add_suspects(alone ? absent : second(absent), Component::kUnknown);
    describe(odd, devices, hosts, alone ? absent : FlightAccusations());
    std::stable_sort(out_.hang->suspects.begin(), out_.hang->suspects.end(),
                     [](const Suspect& a, const Suspect& b) { return a.score > b.score; });
  }

  // A rank without a dump comes behind ranks whose dumps prove that they are late.
  static FlightAccusations second(FlightAccusations absent) {
    for (auto& [rank, a] : absent) a.score = std::min(a.score, 0.4);
    return absent;
  }

  void describe(const FlightAccusations& odd, const FlightAccusations& devices,
                const FlightAccusations& hosts, const FlightAccusations& absent) {
    Hang& hang = *out_.hang;
    const FlightAccusations& late = !hosts.empty() ? hosts : absent;
    const FlightAccusations& accused = !odd.empty() ? odd : !devices.empty() ? devices : late;
    hang.answer = !odd.empty()       ? HangAnswer::kMismatch
                  : !devices.empty() ? HangAnswer::kUnfinished
                  : !late.empty()    ? HangAnswer::kMissing
                                     : HangAnswer::kUnknown;
    for (const auto& [rank, a] : accused) hang.waited_for.push_back(rank);
    add_scene(scene_, hang);
    hang.sentence = scene::sentence_of(hang, [&](uint32_t rank) {
      const RankPlace at = place_of(rank);
      if (!at.host) return fmt::format("rank {}", rank);
      return at.device ? fmt::format("rank {} ({}, GPU {})", rank, *at.host, *at.device)
                       : fmt::format("rank {} ({})", rank, *at.host);
    });
  }

  std::span<const FlightDump> dumps_;
  const PlaceOfRank& place_;
  FlightAnswer out_;
  FlightScene scene_;            // after out_: its constructor appends to out_.problems
  std::set<uint32_t> reported_;  // suspects
  std::string many_;             // set if too many ranks qualify: why none is named
};

}  // namespace

FlightAnswer analyse_flight(std::span<const FlightDump> dumps, const PlaceOfRank& place) {
  if (dumps.empty()) return {};
  return Inquiry(dumps, place).run();
}

}  // namespace culprit::flight
