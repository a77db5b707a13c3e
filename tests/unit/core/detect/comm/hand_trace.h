// Traces of a few ranks, specified by a test: it gives work and transfers in milliseconds, and times follow
// from the waiting between ranks. The parts of the analysis run one by one, without a CommTrace. For the unit
// tests of this folder; one thread.
#pragma once

#include <algorithm>
#include <deque>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "core/detect/comm/network.h"
#include "core/detect/comm/step.h"

namespace culprit::comm::hand {

using Ranks = std::vector<uint32_t>;

struct Call {
  Ranks group;
  double ms = 1;  // from the last entry to the common exit
  CommOp op = CommOp::kAllReduce;
  CommGroup kind = CommGroup::kUnknown;
  bool background = false;  // its ranks continue while it runs
};

// Ranks 0 to n - 1, `ranks_per_host` of them on each of node-0, node-1, ... Step 0 is one barrier, so that
// all ranks begin step 1 at the same time.
class Trace {
 public:
  explicit Trace(uint32_t ranks, uint32_t ranks_per_host = 1) : ranks_per_host_(ranks_per_host) {
    at_.assign(ranks, 1e6);
    ended_.assign(ranks, 0);
    for (uint32_t r = 0; r < ranks; ++r) all_.push_back(r);
    collective({.group = all_, .op = CommOp::kBarrier});
    end_step();
  }

  const Ranks& all() const { return all_; }
  uint32_t host(uint32_t rank) const { return rank / ranks_per_host_; }
  // The clock of a host is ahead by this much.
  void skew(uint32_t host, double ms) {
    skew_[host] += ms;
    for (CommRecord& r : records_)
      if (this->host(r.rank) == host) r.start_ns += ns(ms), r.end_ns += ns(ms);
  }

  void work(uint32_t rank, double ms) { at_[rank] += ms; }
  // By rank, from rank 0 on.
  void work(const std::vector<double>& ms) {
    for (uint32_t r = 0; r < ms.size(); ++r) work(r, ms[r]);
  }
  void work_all(double ms) { work(std::vector<double>(at_.size(), ms)); }

  void collective(const Call& call) {
    double last = 0;
    for (const uint32_t r : call.group) last = std::max(last, at_[r]);
    CommRecord record = record_of(call);
    for (const uint32_t r : call.group) {
      record.rank = r;
      write(record, at_[r], last + call.ms);
      ended_[r] = last + call.ms;
      if (!call.background) at_[r] = ended_[r];
    }
  }
  // Waits until the rank's last operation has ended.
  void wait(uint32_t rank) { at_[rank] = std::max(at_[rank], ended_[rank]); }

  // The sender continues after `ms` without a wait; the receiver `ms` after both have entered.
  void send(uint32_t from, uint32_t to, double ms) {
    CommRecord record = record_of({.group = {from, to}, .op = CommOp::kSend, .kind = CommGroup::kPp});
    record.seq = sent_[{from, to}]++;
    record.rank = from, record.peer = to;
    const double sent = at_[from] + ms;
    write(record, at_[from], sent);
    record.op = CommOp::kRecv, record.rank = to, record.peer = from;
    const double received = std::max(at_[from], at_[to]) + ms;
    write(record, at_[to], received);
    at_[from] = sent, at_[to] = received;
  }

  // The rank's last record is lost.
  void lose_last(uint32_t rank) {
    const auto of_rank = [rank](const CommRecord& r) { return r.rank == rank; };
    const auto at = std::find_if(records_.rbegin(), records_.rend(), of_rank);
    records_.erase(std::next(at).base());
  }
  // The rank's last record has a later exit than those of its peers, and the rank continues from there.
  void leave_late(uint32_t rank, double ms) {
    const auto of_rank = [rank](const CommRecord& r) { return r.rank == rank; };
    std::find_if(records_.rbegin(), records_.rend(), of_rank)->end_ns += ns(ms);
    at_[rank] += ms;
  }

  void end_step() { ++step_; }
  uint32_t steps() const { return step_; }
  const std::vector<CommRecord>& records() const { return records_; }

 private:
  static uint64_t ns(double ms) { return static_cast<uint64_t>(static_cast<int64_t>(ms * 1e6)); }

  CommRecord record_of(const Call& call) {
    const auto [at, fresh] = groups_.try_emplace(call.group);
    if (fresh) at->second.comm = groups_.size();
    CommRecord record;
    record.comm = at->second.comm;
    record.seq = is_p2p(call.op) ? 0 : at->second.seq++;
    record.bytes = call.op == CommOp::kBarrier ? 0 : 1 << 20;
    record.step = step_;
    record.comm_size = static_cast<uint32_t>(call.group.size());
    record.op = call.op;
    record.group = call.kind;
    return record;
  }

  void write(CommRecord record, double from_ms, double to_ms) {
    const double skew_ms = skew_[host(record.rank)];
    record.start_ns = ns(from_ms + skew_ms);
    record.end_ns = ns(to_ms + skew_ms);
    record.device = record.rank % ranks_per_host_;
    records_.push_back(record);
  }

  struct Group {
    uint64_t comm = 0, seq = 0;
  };
  uint32_t ranks_per_host_, step_ = 0;
  Ranks all_;
  std::vector<double> at_, ended_;  // by rank, ms: present time; end of its last operation
  std::map<uint32_t, double> skew_;
  std::map<Ranks, Group> groups_;
  std::map<std::pair<uint32_t, uint32_t>, uint64_t> sent_;
  std::vector<CommRecord> records_;
};

// All parts of the analysis in order, step after step. `before_replay` may change a step after its path is
// known.
class Analysis {
 public:
  explicit Analysis(const Trace& trace, const std::function<void(Step&)>& before_replay = {})
      : cluster_(&job_) {
    for (const CommRecord& r : trace.records()) {
      const uint32_t host = cluster_.host_index("node-" + std::to_string(trace.host(r.rank)));
      const uint32_t rank = cluster_.rank_index(r, host);
      cluster_.note(rank, cluster_.slot_of(rank, r), r.seq, r.end_ns != 0);
    }
    cluster_.settle();
    for (uint32_t number = 0; number < trace.steps(); ++number) {
      SortedRecords records;
      for (const CommRecord& r : trace.records()) {
        const uint32_t rank = cluster_.find_rank(r.rank);
        if (r.step == number) records.add({rank, cluster_.slot_of(rank, r), r});
      }
      analyse(number, records, before_replay);
    }
  }

  const Cluster& cluster() const { return cluster_; }
  const std::deque<StepResult>& steps() const { return results_; }
  const Step& step() const { return step_; }  // the last one
  // Of the last step.
  const StepResult& result() const { return results_.back(); }
  const RankStep& rank(uint32_t rank) const {
    const auto is = [&](const RankStep& r) { return cluster_.ranks()[r.rank].rank == rank; };
    return *std::find_if(result().ranks.begin(), result().ranks.end(), is);
  }
  // The operations of a group, or those from one rank to another, in the last step.
  std::vector<Instance> operations(const Ranks& group) const {
    std::vector<Instance> out;
    for (const Instance& i : step_.instances) {
      const Channel& channel = cluster_.channels()[i.channel];
      Ranks ranks;
      for (const uint32_t m : cluster_.comms()[channel.comm].members) ranks.push_back(rank_number(m));
      if (channel.sender != kNone) ranks = {rank_number(channel.sender), rank_number(channel.receiver)};
      if (ranks == group) out.push_back(i);
    }
    return out;
  }

 private:
  uint32_t rank_number(uint32_t index) const { return cluster_.ranks()[index].rank; }

  void analyse(int64_t number, const SortedRecords& records,
               const std::function<void(Step&)>& before_replay) {
    build_step(cluster_, number, records, step_);
    measure_gaps(cluster_, step_);
    align_clocks(cluster_, step_);
    compare_peers(cluster_, step_);
    Network::measure(cluster_, step_);
    network_.learn(step_);
    Network::compare(step_);
    const std::vector<double> on_path = walk_path(cluster_, step_);
    Network::explain(cluster_, on_path, step_);
    if (before_replay) before_replay(step_);
    replay_costs(cluster_, step_);
    results_.push_back(step_.result);
  }

  JobFile job_;
  Cluster cluster_;
  Network network_;
  Step step_;
  std::deque<StepResult> results_;
};

}  // namespace culprit::comm::hand
