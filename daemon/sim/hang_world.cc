#include "sim/hang_world.h"

#include <algorithm>

#include "base/hash.h"

namespace culprit::sim {
namespace {

constexpr uint64_t kEnqueueNs = 40'000;
constexpr uint64_t kLoaderNs = 90'000'000;
constexpr uint64_t kPhaseNs = 4'000'000'000;

class HangStep {
 public:
  HangStep(const HangSite& site, uint32_t stage, uint32_t part) : s_(site), stage_(stage), part_(part) {}

  HangProgram make() {
    add({.what = HangAct::What::kHost, .place = HangPlace::kLoader});
    for (uint32_t i = 0; i < s_.micro_batches; ++i) {
      if (stage_ > 0) transfer(HangOp::kRecv, HangPlace::kRecvForward, false);
      tensor(HangPlace::kForward);
      if (stage_ + 1 < s_.pp) transfer(HangOp::kSend, HangPlace::kSendForward, true);
    }
    for (uint32_t i = 0; i < s_.micro_batches; ++i) {
      if (stage_ + 1 < s_.pp) transfer(HangOp::kRecv, HangPlace::kRecvBackward, true);
      tensor(HangPlace::kBackward);
      if (stage_ > 0) transfer(HangOp::kSend, HangPlace::kSendBackward, false);
    }
    for (uint32_t i = 0; i < s_.buckets; ++i) data(HangOp::kReduceScatter, HangPlace::kGradReduce, i);
    add({.group = HangGroup::kWorld, .op = HangOp::kAllReduce, .place = HangPlace::kNorm, .in = 1, .out = 1});
    add({.what = HangAct::What::kSync, .place = HangPlace::kNorm});
    for (uint32_t i = 0; i < s_.buckets; ++i) data(HangOp::kAllGather, HangPlace::kParamGather, i);
    return std::move(out_);
  }

 private:
  void add(HangAct act) {
    act.part = part_;
    out_.push_back(act);
  }
  void tensor(HangPlace place) {
    if (s_.tp == 1) return;
    for (uint32_t i = 0; i < s_.layers; ++i)
      add({.group = HangGroup::kTensor,
           .op = HangOp::kAllReduce,
           .place = place,
           .in = s_.token_elements,
           .out = s_.token_elements});
  }
  void transfer(HangOp op, HangPlace place, bool with_next) {
    add({.group = HangGroup::kPipeline,
         .op = op,
         .place = place,
         .in = s_.token_elements,
         .out = s_.token_elements,
         .with_next = with_next});
    if (op == HangOp::kRecv && s_.sync_p2p) add({.what = HangAct::What::kSync, .place = place});
  }
  void data(HangOp op, HangPlace place, uint32_t bucket) {
    const uint64_t part = (s_.bucket_elements + bucket * 4'096) / s_.dp, whole = part * s_.dp;
    const bool scatter = op == HangOp::kReduceScatter;
    add({.group = HangGroup::kData,
         .op = op,
         .place = place,
         .in = scatter ? whole : part,
         .out = scatter ? part : whole});
  }

  const HangSite& s_;
  const uint32_t stage_, part_;
  HangProgram out_;
};

}  // namespace

HangProgram hang_step(const HangSite& site, uint32_t stage, uint32_t part) {
  return HangStep(site, stage, part).make();
}

HangProgram hang_barrier(HangPlace host, HangPlace barrier) {
  using What = HangAct::What;
  return {
      {.what = What::kHost, .place = host, .part = 1},
      {.group = HangGroup::kWorld, .op = HangOp::kAllReduce, .place = barrier, .part = 1, .in = 1, .out = 1},
      {.what = What::kSync, .place = barrier, .part = 1}};
}

HangWorld::HangWorld(const HangSite& site, const std::vector<const HangProgram*>& programs,
                     const std::vector<HangDeviation>& deviations, HangCut cut)
    : site_(site), cut_(std::move(cut)), ranks_(site.world), channels_(2 * size_t{site.world}) {
  for (uint32_t stage = 0; stage < site.pp; ++stage) steps_.push_back(hang_step(site, stage, 0));
  for (HangGroup kind : kAllHangGroups) meetings_[static_cast<size_t>(kind)].resize(site.group_count(kind));
  for (uint32_t r = 0; r < site.world; ++r) {
    HangRank& rank = ranks_[r];
    rank.program = programs[r];
    rank.host_ns = rank.device_ns = site.start_ns + mix64(site.seed, r) % 60'000'000;
    rank.deviation.rank = r;
    for (HangGroup kind : kAllHangGroups) {
      const auto k = static_cast<size_t>(kind);
      rank.enqueued[k] = rank.completed[k] = calls_before(r, kind);
    }
  }
  for (const HangDeviation& one : deviations) ranks_[one.rank].deviation = one;
}

uint32_t HangWorld::calls_before(uint32_t rank, HangGroup group) const {
  const HangProgram& step = steps_[site_.stage_of(rank)];
  const auto n = std::count_if(step.begin(), step.end(), [&](const HangAct& act) {
    return act.what == HangAct::What::kCall && act.group == group;
  });
  return static_cast<uint32_t>(n) * site_.steps_done;
}

uint32_t HangWorld::launches_before(uint32_t rank, HangGroup group, HangOp op) const {
  const HangProgram& step = steps_[site_.stage_of(rank)];
  const auto n = std::count_if(step.begin(), step.end(), [&](const HangAct& act) {
    return act.what == HangAct::What::kCall && act.group == group && act.op == op;
  });
  return static_cast<uint32_t>(n) * site_.steps_done;
}

uint64_t HangWorld::duration(const HangAct& act) const {
  return act.in <= 1 ? 60'000 : site_.step_ns / (steps_[0].size() + 4);
}

void HangWorld::run() {
  for (uint32_t r = site_.world; r > 0; --r) ready_.push_back(r - 1);
  while (!ready_.empty()) {
    const uint32_t rank = ready_.back();
    ready_.pop_back();
    run_host(rank);
    run_device(rank);
  }
}

void HangWorld::run_host(uint32_t r) {
  HangRank& rank = ranks_[r];
  while (rank.at < rank.program->size() && rank.at != rank.deviation.host_stops_at) {
    const HangAct& act = (*rank.program)[rank.at];
    if (act.what == HangAct::What::kSync) {
      if (rank.waits()) return;
      rank.host_ns = std::max(rank.host_ns, rank.device_ns);
    } else if (act.what == HangAct::What::kHost) {
      const uint64_t base = act.place == HangPlace::kLoader ? kLoaderNs : kPhaseNs;
      rank.host_ns += base / 2 + mix64(site_.seed + rank.at, r) % base;
    } else {
      if (site_.group_size(act.group) > 1) {
        const uint32_t seq = ++rank.enqueued[static_cast<size_t>(act.group)];
        rank.calls.push_back({rank.at, seq, rank.host_ns, 0});
      }
      rank.host_ns += kEnqueueNs + mix64(site_.seed + rank.at, r) % kEnqueueNs;
    }
    ++rank.at;
  }
}

void HangWorld::run_device(uint32_t r) {
  HangRank& rank = ranks_[r];
  if (!rank.waits() || rank.arrived) return;
  const HangCall& call = rank.calls[rank.device];
  if (call.act == rank.deviation.device_stops_at) return;
  const HangAct& act = rank.act_of(call);
  rank.arrived = true;
  const uint64_t at = std::max(rank.device_ns, call.created_ns) + duration(act);
  if (act.is_p2p())
    transfer(r, act, at);
  else
    meet(r, act, at);
}

void HangWorld::meet(uint32_t r, const HangAct& act, uint64_t at) {
  const uint32_t group = site_.group_of(act.group, r);
  Meeting& meeting = meetings_[static_cast<size_t>(act.group)][group];
  if (meeting.count++ == 0) meeting = {1, 0, &act, false};
  meeting.latest = std::max(meeting.latest, at);
  meeting.differs = meeting.differs || meeting.first->op != act.op || meeting.first->in != act.in ||
                    meeting.first->out != act.out;
  const uint32_t size = site_.group_size(act.group);
  if (meeting.count < size || meeting.differs) return;
  if (act.part > 0 && cut_.count({act.group, group}) != 0) return;
  const uint64_t end = meeting.latest + 20'000;
  const HangGroup kind = act.group;
  meeting = {};
  for (uint32_t i = 0; i < size; ++i) complete(site_.member(kind, group, i), end);
}

void HangWorld::transfer(uint32_t r, const HangAct& act, uint64_t at) {
  const uint32_t stride = site_.tp * site_.dp, other = act.with_next ? r + stride : r - stride;
  const bool sends = act.op == HangOp::kSend;
  Channel& one = channel(sends ? r : other, sends == act.with_next);
  (sends ? one.sender : one.receiver) = true;
  one.latest = std::max(one.latest, at);
  if (!one.sender || !one.receiver) return;
  if (act.part > 0 && cut_.count({act.group, site_.group_of(act.group, r)}) != 0) return;
  const uint64_t end = one.latest + 20'000;
  one = {};
  complete(r, end);
  complete(other, end);
}

void HangWorld::complete(uint32_t r, uint64_t end) {
  HangRank& rank = ranks_[r];
  HangCall& call = rank.calls[rank.device];
  rank.device_ns = end;
  if (call.act == rank.deviation.device_sticks_at) return;  // arrived for ever
  call.done_ns = end;
  rank.completed[static_cast<size_t>(rank.act_of(call).group)] = call.seq;
  ++rank.device;
  rank.arrived = false;
  ready_.push_back(r);
}

}  // namespace culprit::sim
