#include "core/detect/flight/flight.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <set>

#include "core/detect/flight/awaited_call.h"
#include "core/detect/flight/observations.h"
#include "core/detect/flight/rules.h"

namespace culprit::flight {
namespace {

class FlightAnalysis {
 public:
  FlightAnalysis(std::span<const FlightDump> dumps, const PlaceOfRank& place)
      : dumps_(dumps), place_(place), view_(dumps, out_.problems) {}

  FlightAnswer run() {
    if (!view_.anything() || view_.snapshot_of_work()) return std::move(out_);
    const FlightAccusations odd = find_mismatches(view_);
    const FlightAccusations devices = find_stuck_devices(view_, many_);
    FlightAccusations hosts = find_stuck_hosts(view_, false, many_);
    if (hosts.empty() && devices.empty()) hosts = find_stuck_hosts(view_, true, many_);
    if (hosts.empty() && devices.empty()) hosts = find_silent_sources(view_);
    out_.waits = true;
    out_.since_ns = since();
    report_absent();
    report_odd(odd);
    report_devices(devices);
    // After a mismatch, results of R1 are not reported: ranks with a different call have not entered the
    // common operation either.
    if (odd.empty()) report_hosts(hosts);
    if (out_.claims.empty()) report_no_rank();
    add_clusters(odd, devices, hosts);
    out_.observations = observations_of(view_, place_);
    return std::move(out_);
  }

 private:
  void report_absent() {
    std::set<uint32_t> absent;
    for (const FlightTeam& team : view_.teams()) absent.merge(absent_of(view_, team));
    for (const FlightDump& dump : dumps_) absent.erase(dump.rank);
    if (!absent.empty())
      out_.missing.push_back(fmt::format("the Flight Recorder dumps of {}", rank_list(absent)));
  }

  TimeNs since() const {
    TimeNs first = kNoTime;
    for (const bool collectives : {true, false}) {
      for (uint32_t d = 0; d < dumps_.size() && (collectives || first == kNoTime); ++d)
        for (const FlightOp& op : dumps_[d].ops)
          if (!op.done && !view_.older(d) && op.p2p != collectives && op.created_ns != kNoTime &&
              (first == kNoTime || op.created_ns < first))
            first = op.created_ns;
    }
    return first;
  }

  std::vector<std::string> frames_of(uint32_t d) const {
    const FlightDump& dump = dumps_[d];
    const FlightUnder& under = view_.under(d);
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

  void add_clusters(const FlightAccusations& odd, const FlightAccusations& devices,
                    const FlightAccusations& hosts) {
    std::map<std::pair<bool, std::vector<std::string>>, std::vector<uint32_t>> clusters;
    for (uint32_t d = 0; d < dumps_.size(); ++d) {
      if (view_.older(d)) continue;
      const uint32_t rank = dumps_[d].rank;
      const bool accused = odd.contains(rank) || devices.contains(rank) || hosts.contains(rank);
      clusters[{!view_.under(d).none() && !accused, frames_of(d)}].push_back(rank);
    }
    for (auto& [key, ranks] : clusters) {
      std::ranges::sort(ranks);
      out_.clusters.push_back({key.second, std::move(ranks), key.first});
    }
    std::ranges::stable_sort(out_.clusters, std::ranges::greater{},
                             [](const StackCluster& c) { return c.ranks.size(); });
  }

  RankPlace place_of(uint32_t rank) const { return place_ ? place_(rank) : RankPlace{}; }

  Finding about(uint32_t rank) const {
    const RankPlace place = place_of(rank);
    Finding f;
    f.detector = DetectorKind::kComm;
    f.first_ns = f.last_ns = out_.since_ns;
    f.subjects.push_back({place.host, rank, place.device, {}, 0});
    return f;
  }

  Evidence evidence_of(uint32_t rank, const std::string& why) const {
    Evidence e;
    e.host = place_of(rank).host;
    e.rank = rank;
    e.text = why;
    e.time_ns = out_.since_ns;
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
    state(HangAnswer::kMismatch, odd, std::move(f));
  }

  void state(HangAnswer answer, const FlightAccusations& accused, Finding f) {
    hang::HangClaim claim = hang::stated_by(hang::ObservationSource::kFlight, answer, std::move(f));
    if (const auto call = awaited_call(view_, accused)) {
      claim.call.op = call->op;
      claim.call.seq = call->seq;
      claim.group.description = call->team;
    }
    out_.claims.push_back(std::move(claim));
  }

  void report_devices(const FlightAccusations& devices) {
    if (devices.empty()) return;
    Finding f =
        fault(devices, devices.size() == 1
                           ? "did not complete what the peers completed: its device or link stands still"
                           : "did not complete what the peers completed: their devices or links stand still");
    f.category = Category::kHardware;
    f.component = Component::kGpu;
    // A failed link has the same symptoms in the dumps, so the action is a check.
    f.action = ActionKind::kCheck;
    f.remedy =
        "Read the kernel's log of the host for Xid errors and for links that went down, and run the vendor's "
        "diagnostics on the device; restart the job without the host if one of them shows a fault.";
    state(HangAnswer::kUnfinished, devices, std::move(f));
  }

  void report_hosts(const FlightAccusations& hosts) {
    if (hosts.empty()) return;
    Finding f =
        fault(hosts, hosts.size() == 1
                         ? "did not come to the operation in which the others wait: the process is stuck"
                         : "did not come to the operation in which the others wait: the processes are stuck");
    f.action = ActionKind::kCheck;
    f.remedy =
        "Take stacks of the process (py-spy dump, and gdb where it does not answer): a lock, a data "
        "loader, a file system or a device call that does not return. Restart the job without the host "
        "where nothing of the program explains it.";
    state(HangAnswer::kMissing, hosts, std::move(f));
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
    for (uint32_t d = 0; d < dumps_.size(); ++d) waiting += !view_.older(d) && !view_.under(d).none();
    f.title = fmt::format("{} of {} ranks wait in communication, and none is late", waiting,
                          view_.informative_dumps());
    f.why.push_back(many_.empty() ? "all ranks that left a dump have enqueued what the others wait in"
                                  : many_);
    f.action = ActionKind::kCheck;
    f.remedy = "Take stacks of the ranks (py-spy dump) and look at the network between them.";
    out_.no_rank = std::move(f);
  }

  std::span<const FlightDump> dumps_;
  const PlaceOfRank& place_;
  FlightAnswer out_;
  FlightView view_;   // declared after out_, because its constructor appends to out_.problems
  std::string many_;  // reason for naming no rank, if too many ranks qualify
};

}  // namespace

FlightAnswer analyse_flight(std::span<const FlightDump> dumps, const PlaceOfRank& place) {
  if (dumps.empty()) return {};
  return FlightAnalysis(dumps, place).run();
}

}  // namespace culprit::flight
