#include "sim/hang_fault.h"

#include <algorithm>

#include <fmt/format.h>

namespace culprit::sim {
namespace {

constexpr const char* kHangMismatch = "program mismatch";
constexpr const char* kHangHostCode = "rank stuck: host code";
constexpr const char* kHangDevice = "device or network";

class HangFaultMaker {
 public:
  HangFaultMaker(const HangSite& site, std::string_view kind, Random random) : s_(site), random_(random) {
    f_.kind = kind;
  }

  Result<HangFault> make() {
    if (f_.kind == "network" && s_.hosts < 2)
      return fail(ErrorCode::kInvalid, "kind: network: the job has one host");
    if (!(stuck_host() || phase() || departed() || device() || mismatch()))
      return fail(ErrorCode::kInvalid, fmt::format("kind: {}: unknown; see --list", f_.kind));
    std::sort(f_.ranks.begin(), f_.ranks.end());
    for (uint32_t rank : f_.ranks) f_.hosts.push_back(s_.host_of(rank));
    std::sort(f_.hosts.begin(), f_.hosts.end());
    f_.hosts.erase(std::unique(f_.hosts.begin(), f_.hosts.end()), f_.hosts.end());
    return std::move(f_);
  }

 private:
  const HangProgram* keep(HangProgram program) {
    f_.programs.push_back(std::make_unique<const HangProgram>(std::move(program)));
    return f_.programs.back().get();
  }

  // Builds programs of two steps: the previous step, then the step of the fault, or `phase` instead of it.
  void train(const HangProgram* phase = nullptr) {
    std::vector<const HangProgram*> by_stage;
    for (uint32_t stage = 0; stage < s_.pp; ++stage) {
      HangProgram program = hang_step(s_, stage, 0);
      const HangProgram next = phase ? *phase : hang_step(s_, stage, 1);
      program.insert(program.end(), next.begin(), next.end());
      by_stage.push_back(keep(std::move(program)));
    }
    for (uint32_t r = 0; r < s_.world; ++r) f_.program_of.push_back(by_stage[s_.stage_of(r)]);
  }

  // Indexes of the acts of part 1 that satisfy `wanted`.
  template <class Wanted>
  std::vector<uint32_t> acts(uint32_t rank, Wanted wanted) const {
    std::vector<uint32_t> out;
    const HangProgram& program = *f_.program_of[rank];
    for (uint32_t i = 0; i < program.size(); ++i)
      if (program[i].part == 1 && wanted(program[i])) out.push_back(i);
    return out;
  }
  std::vector<uint32_t> calls(uint32_t rank, uint32_t members_min, bool p2p) const {
    return acts(rank, [&](const HangAct& act) {
      return act.what == HangAct::What::kCall && s_.group_size(act.group) >= members_min &&
             (p2p || !act.is_p2p());
    });
  }
  uint32_t any_of(const std::vector<uint32_t>& list) { return list[random_.below(list.size())]; }
  uint32_t any_rank() { return static_cast<uint32_t>(random_.below(s_.world)); }

  void set_operation(uint32_t rank, uint32_t from) {
    const std::vector<uint32_t> all = calls(rank, 2, true);
    const auto next = std::lower_bound(all.begin(), all.end(), from);
    if (next == all.end()) return;
    f_.has_operation = true;
    f_.operation_rank = rank;
    f_.operation_act = *next;
  }
  void stop_host(uint32_t rank, uint32_t at) {
    HangDeviation one;
    one.rank = rank;
    one.host_stops_at = at;
    f_.deviations.push_back(one);
  }
  void blame(uint32_t rank, HangPlace place) {
    f_.ranks.push_back(rank);
    f_.place = place;
    f_.own_place = true;
  }

  bool stuck_host() {
    if (f_.kind != "loader" && f_.kind != "lock" && f_.kind != "gc") return false;
    f_.class_name = kHangHostCode;
    train();
    const uint32_t rank = any_rank();
    uint32_t at = any_of(calls(rank, 2, true));
    if (f_.kind == "loader")
      at = acts(rank, [](const HangAct& act) { return act.place == HangPlace::kLoader; }).front();
    stop_host(rank, at);
    blame(rank, f_.kind == "loader" ? HangPlace::kLoader
                : f_.kind == "lock" ? HangPlace::kLock
                                    : HangPlace::kGarbage);
    set_operation(rank, at);
    return true;
  }

  // Other ranks wait in a barrier for the rank that prepares or saves; with a storage fault, all ranks are
  // late.
  bool phase() {
    if (f_.kind != "tokenize" && f_.kind != "save" && f_.kind != "storage") return false;
    const HangPlace place = f_.kind == "tokenize" ? HangPlace::kTokenize : HangPlace::kSave;
    const HangProgram barrier = hang_barrier(place, HangPlace::kBarrier);
    train(&barrier);
    const auto host_act = [&](uint32_t rank) {
      return acts(rank, [&](const HangAct& act) { return act.what == HangAct::What::kHost; }).front();
    };
    if (f_.kind == "storage") {
      f_.class_name = "storage";
      // In half of the jobs, some ranks have finished and wait.
      const uint64_t done_percent = random_.chance(50) ? 0 : random_.range(5, 30);
      for (uint32_t r = 0; r < s_.world; ++r)
        if (!random_.chance(static_cast<uint32_t>(done_percent))) stop_host(r, host_act(r));
    } else {
      f_.class_name = kHangHostCode;
      const uint32_t rank = random_.chance(60) ? 0 : any_rank() / s_.ranks_per_host * s_.ranks_per_host;
      stop_host(rank, host_act(rank));
      blame(rank, place);
    }
    set_operation(0, 0);
    return true;
  }

  bool departed() {
    f_.end = f_.kind == "killed"      ? HangEnd::kKilled
             : f_.kind == "exception" ? HangEnd::kException
             : f_.kind == "stopped"   ? HangEnd::kStopped
                                      : HangEnd::kAlive;
    if (f_.end == HangEnd::kAlive) return false;
    f_.class_name = f_.end == HangEnd::kKilled      ? "rank missing: killed"
                    : f_.end == HangEnd::kException ? "rank missing: exception"
                                                    : kHangHostCode;
    train();
    const uint32_t rank = any_rank(), at = any_of(calls(rank, 2, true));
    stop_host(rank, at);
    f_.ranks.push_back(rank);
    set_operation(rank, at);
    if (f_.end == HangEnd::kStopped) return true;
    f_.exited.push_back(rank);
    if (s_.launcher != HangLauncher::kTorchrun) return true;
    const uint32_t first = s_.host_of(rank) * s_.ranks_per_host;
    for (uint32_t r = first; r < first + s_.ranks_per_host; ++r)
      if (r != rank) f_.exited.push_back(r);
    return true;
  }

  bool device() {
    if (f_.kind == "network") return network();
    if (f_.kind != "device" && f_.kind != "kernel") return false;
    f_.class_name = kHangDevice;
    train();
    HangDeviation one;
    one.rank = any_rank();
    std::vector<uint32_t> at = calls(one.rank, 2, false);
    at.pop_back();  // peers must have a next one
    const uint32_t act = any_of(at);
    (f_.kind == "device" ? one.device_sticks_at : one.device_stops_at) = act;
    f_.deviations.push_back(one);
    f_.ranks.push_back(one.rank);
    set_operation(one.rank, act);
    return true;
  }

  // All groups with neighbours on the two hosts stall.
  bool network() {
    f_.class_name = kHangDevice;
    train();
    // Picks two neighbours on different hosts; in a job of several hosts, the groups over all ranks always
    // have some.
    const HangGroup first = random_.chance(30) ? HangGroup::kPipeline : HangGroup::kData;
    uint32_t a = 0, b = 0, rank = 0;
    for (HangGroup kind : {first, HangGroup::kData, HangGroup::kPipeline, HangGroup::kWorld}) {
      for (int attempt = 0; attempt < 50 && a == b; ++attempt) {
        rank = any_rank();
        a = s_.host_of(rank);
        b = s_.host_of(next_in(kind, rank));
      }
    }
    for (HangGroup each : kAllHangGroups)
      for (uint32_t group = 0; group < s_.group_count(each); ++group)
        if (crosses(each, group, a, b)) f_.cut.insert({each, group});
    f_.hosts = {a, b};
    for (uint32_t act : calls(rank, 2, true)) {
      const HangGroup group = (*f_.program_of[rank])[act].group;
      if (f_.cut.count({group, s_.group_of(group, rank)}) == 0) continue;
      set_operation(rank, act);
      break;
    }
    return true;
  }
  uint32_t next_in(HangGroup kind, uint32_t rank) const {
    const uint32_t index = (s_.index_in(kind, rank) + 1) % s_.group_size(kind);
    return s_.member(kind, s_.group_of(kind, rank), index);
  }
  bool crosses(HangGroup kind, uint32_t group, uint32_t a, uint32_t b) const {
    const uint32_t size = s_.group_size(kind);
    for (uint32_t i = 0; i < size && size > 1; ++i) {
      const uint32_t x = s_.host_of(s_.member(kind, group, i));
      const uint32_t y = s_.host_of(s_.member(kind, group, (i + 1) % size));
      if ((x == a && y == b) || (x == b && y == a)) return true;
    }
    return false;
  }

  bool mismatch() {
    f_.class_name = kHangMismatch;
    if (f_.kind == "collective" || f_.kind == "size") {
      changed_call();
    } else if (f_.kind == "left-early") {
      train();
      const HangProgram end = hang_barrier(HangPlace::kLoader, HangPlace::kEnd);
      replica([&](HangProgram& program) {
        std::erase_if(program, [](const HangAct& act) { return act.part == 1; });
        program.insert(program.end(), end.begin(), end.end());
      });
    } else if (f_.kind == "order") {
      train();
      replica([](HangProgram& program) {
        const auto norm = std::find_if(program.begin(), program.end(), [](const HangAct& act) {
          return act.part == 1 && act.what == HangAct::What::kCall && act.place == HangPlace::kNorm;
        });
        const auto reduce = std::find_if(program.begin(), program.end(), [](const HangAct& act) {
          return act.part == 1 && act.place == HangPlace::kGradReduce;
        });
        std::rotate(reduce, norm, norm + 1);
      });
    } else {
      return false;
    }
    return true;
  }

  void changed_call() {
    train();
    const uint32_t rank = any_rank(), at = any_of(calls(rank, 3, false));
    HangProgram program = *f_.program_of[rank];
    HangAct& act = program[at];
    if (f_.kind == "size") {
      act.in += act.in <= 1 ? 7 : act.in / 8 / s_.dp * s_.dp + s_.dp;
      act.out = act.op == HangOp::kAllGather       ? act.in * s_.group_size(act.group)
                : act.op == HangOp::kReduceScatter ? act.in / s_.group_size(act.group)
                                                   : act.in;
    } else {
      act.op = act.op == HangOp::kAllReduce ? (random_.chance(50) ? HangOp::kBroadcast : HangOp::kAllGather)
                                            : HangOp::kAllReduce;
      act.out = act.op == HangOp::kAllGather ? act.in * s_.group_size(act.group) : act.in;
    }
    f_.program_of[rank] = keep(std::move(program));
    f_.ranks.push_back(rank);
    // The call of the peers; its index is the same in their programs.
    const HangGroup group = act.group;
    const uint32_t number = s_.group_of(group, rank), peer = s_.index_in(group, rank) == 0 ? 1 : 0;
    const uint32_t other = s_.member(group, number, peer);
    set_operation(other, s_.stage_of(other) == s_.stage_of(rank) ? at : norm_of(other));
  }
  uint32_t norm_of(uint32_t rank) const {
    return acts(rank, [](const HangAct& act) { return act.place == HangPlace::kNorm; }).front();
  }

  // Changes the programs of one replica; the other replicas wait for it in their first data-parallel call.
  template <class Change>
  void replica(Change change) {
    const auto chosen = static_cast<uint32_t>(random_.below(s_.dp));
    const uint32_t other = s_.member(HangGroup::kData, 0, chosen == 0 ? 1 : 0);
    std::vector<const HangProgram*> by_stage;
    for (uint32_t stage = 0; stage < s_.pp; ++stage) {
      HangProgram program = *f_.program_of[s_.tp * s_.dp * stage];
      change(program);
      by_stage.push_back(keep(std::move(program)));
    }
    for (uint32_t r = 0; r < s_.world; ++r) {
      if (s_.replica_of(r) != chosen) continue;
      f_.ranks.push_back(r);
      f_.program_of[r] = by_stage[s_.stage_of(r)];
    }
    const auto reduce = acts(other, [](const HangAct& act) { return act.place == HangPlace::kGradReduce; });
    set_operation(other, reduce.front());
  }

  const HangSite& s_;
  Random random_;
  HangFault f_;
};

}  // namespace

bool HangFault::is_at_fault(uint32_t rank) const {
  return std::binary_search(ranks.begin(), ranks.end(), rank);
}

bool HangFault::is_removed(uint32_t rank) const {
  return std::find(exited.begin(), exited.end(), rank) != exited.end();
}

Result<HangFault> make_hang_fault(const HangSite& site, std::string_view kind, Random random) {
  return HangFaultMaker(site, kind, random).make();
}

}  // namespace culprit::sim
