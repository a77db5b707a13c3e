#include "sim/comm_program.h"

#include <bit>

namespace culprit::sim {
namespace {

class Builder {
 public:
  Builder(const CommSite& site, uint32_t stage) : s_(site), stage_(stage) {}

  CommProgram train();
  CommProgram evaluation();
  CommProgram checkpoint();

 private:
  struct Unit {
    uint32_t micro_batch = 0, chunk = 0;
  };

  void add(const CommAct& act);
  void compute(uint64_t ns, Act act, uint32_t micro_batch);
  void collective(CommOp op, CommGroup group, uint64_t bytes, Act act = Act::kEnter);
  void transfer(uint8_t parts, Act act = Act::kTransfer);
  void begin();
  void forward(Unit unit);
  void backward(Unit unit);
  void block(uint64_t times, uint32_t micro_batch, bool back);
  void one_forward_one_backward();
  void interleaved();
  void finish();
  Unit unit_of(uint32_t k, bool back) const;

  const CommSite& s_;
  const uint32_t stage_;
  CommProgram out_;
  uint32_t issued_ = 0, backward_left_ = 0;
};

void Builder::add(const CommAct& act) {
  out_.actions.push_back(act);
  if (act.act == Act::kTransfer || act.act == Act::kPost)
    out_.records += static_cast<uint32_t>(std::popcount(act.parts));
  else if (act.act == Act::kEnter || act.act == Act::kIssue || act.act == Act::kBroadcast)
    ++out_.records;
}

void Builder::compute(uint64_t ns, Act act, uint32_t micro_batch) {
  if (ns == 0) return;
  CommAct one;
  one.act = act;
  one.micro_batch = static_cast<uint16_t>(micro_batch);
  one.amount = ns;
  add(one);
}

void Builder::collective(CommOp op, CommGroup group, uint64_t bytes, Act act) {
  CommAct one;
  one.act = act;
  one.op = op;
  one.group = group;
  one.amount = bytes;
  if (act == Act::kIssue) ++issued_;
  add(one);
}

// The first and last stage of a pipeline have no neighbour on one side, unless chunks form a cycle.
void Builder::transfer(uint8_t parts, Act act) {
  if (s_.virtual_stages == 1 && stage_ == 0) parts &= static_cast<uint8_t>(~(kRecvPrevious | kSendPrevious));
  if (s_.virtual_stages == 1 && stage_ + 1 == s_.pp) parts &= static_cast<uint8_t>(~(kSendNext | kRecvNext));
  if (parts == 0 || s_.pp == 1) return;
  CommAct one;
  one.act = act;
  one.group = CommGroup::kPp;
  one.parts = parts;
  one.amount = s_.token_bytes / (s_.sequence_parallel ? s_.tp : 1);
  if (act == Act::kTransfer && s_.async_sends) {
    const uint8_t sends = parts & (kSendNext | kSendPrevious);
    one.act = Act::kPost;
    one.parts = sends;
    if (sends != 0) add(one);
    one.act = Act::kTransfer;
    one.parts = parts & (kRecvNext | kRecvPrevious);
    if (one.parts != 0) add(one);
    return;
  }
  add(one);
}

// Gathers the parameters that the shards updated; the first micro-batch waits for them.
void Builder::begin() {
  compute(s_.loader_ns, Act::kHost, 0);
  if (s_.sharded && s_.dp * s_.cp > 1) {
    for (uint32_t i = 0; i < s_.buckets; ++i)
      collective(CommOp::kAllGather, CommGroup::kDp, s_.bucket_bytes, Act::kIssue);
    CommAct wait;
    wait.act = Act::kAwait;
    wait.count = issued_;
    add(wait);
  }
  if (s_.broadcast && s_.tp > 1) collective(CommOp::kBroadcast, CommGroup::kTp, 1 << 18, Act::kBroadcast);
}

void Builder::block(uint64_t times, uint32_t micro_batch, bool back) {
  const uint64_t tokens = s_.token_bytes / s_.tp;
  if (s_.cp > 1) collective(back ? CommOp::kReduceScatter : CommOp::kAllGather, CommGroup::kCp, tokens / 4);
  compute(s_.block_ns * times, Act::kCompute, micro_batch);
  if (s_.tp > 1) {
    const CommOp op = !s_.sequence_parallel ? CommOp::kAllReduce
                      : back                ? CommOp::kAllGather
                                            : CommOp::kReduceScatter;
    collective(op, CommGroup::kTp, s_.layer_bytes);
  }
  if (s_.ep == 1) return;
  collective(CommOp::kAllToAll, CommGroup::kEp, tokens);
  compute(s_.expert_ns * times, Act::kExpert, micro_batch);
  collective(CommOp::kAllToAll, CommGroup::kEp, tokens);
}

void Builder::forward(Unit unit) {
  if (stage_ == 0 && unit.chunk == 0) compute(s_.embed_ns, Act::kCompute, unit.micro_batch);
  for (uint32_t i = 0; i < s_.blocks; ++i) block(1, unit.micro_batch, false);
  if (stage_ + 1 == s_.pp && unit.chunk + 1 == s_.virtual_stages)
    compute(s_.head_ns, Act::kCompute, unit.micro_batch);
}

// After its last micro-batch, the gradients of a chunk are complete; they are sent during the remaining
// compute.
void Builder::backward(Unit unit) {
  --backward_left_;
  if (stage_ + 1 == s_.pp && unit.chunk + 1 == s_.virtual_stages)
    compute(2 * s_.head_ns, Act::kCompute, unit.micro_batch);
  const CommOp op = s_.sharded ? CommOp::kReduceScatter : CommOp::kAllReduce;
  for (uint32_t i = 0; i < s_.blocks; ++i) {
    block(2, unit.micro_batch, true);
    if (backward_left_ != 0) continue;
    const uint32_t buckets = s_.buckets / s_.blocks + (i < s_.buckets % s_.blocks);
    for (uint32_t b = 0; b < buckets && s_.dp * s_.cp > 1; ++b)
      collective(op, CommGroup::kDp, s_.bucket_bytes, Act::kIssue);
    if (s_.ep > 1 && s_.dp * s_.cp > s_.ep) collective(op, CommGroup::kEdp, s_.bucket_bytes / 2, Act::kIssue);
  }
  if (stage_ == 0 && unit.chunk == 0) compute(s_.embed_ns, Act::kCompute, unit.micro_batch);
}

void Builder::one_forward_one_backward() {
  const uint32_t warm = std::min(s_.pp - 1 - stage_, s_.micro_batches), rest = s_.micro_batches - warm;
  for (uint32_t i = 0; i < warm; ++i) {
    transfer(kRecvPrevious);
    forward({i, 0});
    transfer(kSendNext);
  }
  if (rest > 0) transfer(kRecvPrevious);
  for (uint32_t i = 0; i < rest; ++i) {
    forward({warm + i, 0});
    transfer(kSendNext | kRecvNext);
    backward({i, 0});
    transfer(i + 1 == rest ? kSendPrevious : kSendPrevious | kRecvPrevious);
  }
  for (uint32_t i = rest; i < s_.micro_batches; ++i) {
    transfer(kRecvNext);
    backward({i, 0});
    transfer(kSendPrevious);
  }
}

Builder::Unit Builder::unit_of(uint32_t k, bool back) const {
  const uint32_t round = s_.pp * s_.virtual_stages, chunk = k % round / s_.pp;
  return {k / round * s_.pp + k % s_.pp, back ? s_.virtual_stages - 1 - chunk : chunk};
}

// Schedule of Megatron-LM: rounds of pp micro-batches through each chunk in turn.
void Builder::interleaved() {
  const uint32_t total = s_.micro_batches * s_.virtual_stages;
  const uint32_t warm = s_.micro_batches == s_.pp
                            ? total
                            : std::min(total, (s_.pp - stage_ - 1) * 2 + (s_.virtual_stages - 1) * s_.pp);
  const auto ahead = [&](uint32_t k) {
    const Unit unit = unit_of(k, false);
    if (stage_ != 0 || unit.chunk != 0) transfer(kRecvPrevious);
    forward(unit);
    if (stage_ + 1 != s_.pp || unit.chunk + 1 != s_.virtual_stages) transfer(kSendNext);
  };
  const auto back = [&](uint32_t k) {
    const Unit unit = unit_of(k, true);
    if (stage_ + 1 != s_.pp || unit.chunk + 1 != s_.virtual_stages) transfer(kRecvNext);
    backward(unit);
    if (stage_ != 0 || unit.chunk != 0) transfer(kSendPrevious);
  };
  for (uint32_t k = 0; k < warm; ++k) ahead(k);
  for (uint32_t k = warm; k < total; ++k) {
    ahead(k);
    back(k - warm);
  }
  for (uint32_t k = total - warm; k < total; ++k) back(k);
}

void Builder::finish() {
  CommAct wait;
  wait.act = Act::kAwait;
  wait.count = issued_;
  if (issued_ != 0) add(wait);
  collective(CommOp::kAllReduce, CommGroup::kWorld, 16);  // of the norm of the gradients
  compute(s_.optimizer_ns, Act::kCompute, 0);
  collective(CommOp::kAllReduce, CommGroup::kWorld, 64);  // of the loss
}

CommProgram Builder::train() {
  backward_left_ = s_.micro_batches * s_.virtual_stages;
  begin();
  if (s_.virtual_stages > 1)
    interleaved();
  else
    one_forward_one_backward();
  finish();
  return out_;
}

CommProgram Builder::evaluation() {
  for (uint32_t i = 0; i < s_.micro_batches; ++i) {
    if (stage_ != 0) transfer(kRecvPrevious);
    forward({i, 0});
    if (stage_ + 1 != s_.pp) transfer(kSendNext);
  }
  collective(CommOp::kAllReduce, CommGroup::kWorld, 64);
  return out_;
}

CommProgram Builder::checkpoint() {
  compute(s_.checkpoint_ns, Act::kHost, 0);
  collective(CommOp::kBarrier, CommGroup::kWorld, 0);
  return out_;
}

}  // namespace

CommProgram train_program(const CommSite& site, uint32_t stage) { return Builder(site, stage).train(); }
CommProgram evaluation_program(const CommSite& site, uint32_t stage) {
  return Builder(site, stage).evaluation();
}
CommProgram checkpoint_program(const CommSite& site) { return Builder(site, 0).checkpoint(); }

}  // namespace culprit::sim
