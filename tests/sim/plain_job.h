// A plain job for tests and benches: 1F1B pipelines of tensor groups, data-parallel groups at the end of a
// step, one reduction over all ranks. Each rank runs a program; times follow from waiting for other ranks. It
// has configurable faults and makes records as in formats.md section 3. It models no real job.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <random>
#include <unordered_map>
#include <vector>

#include "base/hash.h"
#include "model/comm.h"

namespace culprit::plain {

struct Layout {
  uint32_t tp = 1, dp = 4, pp = 4, micro = 4, layers = 2;
  uint32_t ranks_per_host = 8;
  uint32_t world() const { return tp * dp * pp; }
};

struct Chance {
  uint64_t seed = 1;
  double noise = 0.01;   // of each piece of work
  double imbalance = 0;  // of each micro-batch, between data-parallel replicas
  double skew_ms = 0;    // largest error of the hosts' clocks
  double lost = 0;       // share of records that are not written
  bool reported_steps = true;
};

// Slowdown factors; 1: sound.
struct Faults {
  std::function<double(uint32_t rank, uint32_t step)> work = [](uint32_t, uint32_t) { return 1.0; };
  // Factor of an operation among these ranks.
  std::function<double(const std::vector<uint32_t>& ranks, uint32_t step)> transfer =
      [](const std::vector<uint32_t>&, uint32_t) { return 1.0; };
  // Added once per step, before the first operation.
  std::function<double(uint32_t rank, uint32_t step)> pause_ms = [](uint32_t, uint32_t) { return 0.0; };
  std::function<double(uint32_t rank)> stage_factor = [](uint32_t) { return 1.0; };
  // A rank that enters no operation after the end of this step; world: no rank.
  uint32_t stuck_rank = 0xffffffff, stuck_step = 0;
};

class Job {
 public:
  Job(const Layout& layout, const Chance& chance, Faults faults = {})
      : l_(layout), c_(chance), f_(std::move(faults)), random_(chance.seed) {
    at_.assign(l_.world(), 1e6);
    const uint32_t hosts = (l_.world() - 1) / l_.ranks_per_host + 1;
    std::uniform_real_distribution<double> skew(-c_.skew_ms, c_.skew_ms);
    for (uint32_t h = 0; h < hosts; ++h) skew_.push_back(skew(random_));
    make_groups();
  }

  uint32_t hosts() const { return static_cast<uint32_t>(skew_.size()); }

  // The records of the next step, by host.
  std::vector<std::vector<CommRecord>> step() {
    out_.assign(hosts(), {});
    programs();
    run();
    ++step_;
    return std::move(out_);
  }

 private:
  struct Group {
    uint64_t id;
    CommGroup kind;
    std::vector<uint32_t> ranks;
    uint64_t seq = 0;
  };
  struct Todo {
    double work;
    uint32_t event;
    CommOp op;
  };
  // An operation and the ranks that entered it.
  struct Event {
    CommOp op;
    uint32_t group, channel_from = 0, channel_to = 0, missing = 0;
    uint64_t seq = 0, bytes = 0;
    double ready = 0, transfer = 0;
    std::vector<std::pair<uint32_t, double>> inside;  // rank, time of entry
  };

  uint32_t rank(uint32_t t, uint32_t d, uint32_t p) const { return t + l_.tp * (d + l_.dp * p); }

  void make_groups() {
    groups_.push_back({1, CommGroup::kWorld, {}});
    for (uint32_t r = 0; r < l_.world(); ++r) groups_[0].ranks.push_back(r);
    tp_of_.resize(l_.world());
    dp_of_.resize(l_.world());
    pp_of_.resize(l_.world());
    const auto add = [this](CommGroup kind, std::vector<uint32_t> ranks, std::vector<uint32_t>& of) {
      for (const uint32_t r : ranks) of[r] = static_cast<uint32_t>(groups_.size());
      groups_.push_back({mix64(groups_.size(), 7), kind, std::move(ranks)});
    };
    for (uint32_t d = 0; d < l_.dp; ++d)
      for (uint32_t p = 0; p < l_.pp; ++p) {
        std::vector<uint32_t> ranks;
        for (uint32_t t = 0; t < l_.tp; ++t) ranks.push_back(rank(t, d, p));
        add(CommGroup::kTp, std::move(ranks), tp_of_);
      }
    for (uint32_t t = 0; t < l_.tp; ++t)
      for (uint32_t p = 0; p < l_.pp; ++p) {
        std::vector<uint32_t> ranks;
        for (uint32_t d = 0; d < l_.dp; ++d) ranks.push_back(rank(t, d, p));
        add(CommGroup::kDp, std::move(ranks), dp_of_);
      }
    for (uint32_t t = 0; t < l_.tp; ++t)
      for (uint32_t d = 0; d < l_.dp; ++d) {
        std::vector<uint32_t> ranks;
        for (uint32_t p = 0; p < l_.pp; ++p) ranks.push_back(rank(t, d, p));
        add(CommGroup::kPp, std::move(ranks), pp_of_);
      }
  }

  double piece(uint32_t r, uint32_t micro, double ms) {
    std::normal_distribution<double> noise(0, c_.noise);
    const uint32_t d = r / l_.tp % l_.dp;
    std::mt19937_64 batch(mix64(mix64(c_.seed, step_), uint64_t{d} << 32 | micro));
    std::lognormal_distribution<double> length(0, c_.imbalance);
    return ms * std::max(0.2, 1 + noise(random_)) * (c_.imbalance > 0 ? length(batch) : 1) *
           f_.work(r, step_) * f_.stage_factor(r);
  }

  // An operation of a whole group: the first rank to reach it creates its event.
  uint32_t shared(uint32_t group, CommOp op, double ms, uint64_t ordinal) {
    const auto [at, fresh] = shared_.try_emplace(mix64(group, ordinal << 8 | static_cast<uint64_t>(op)), 0u);
    if (fresh) {
      at->second = static_cast<uint32_t>(events_.size());
      Group& g = groups_[group];
      events_.push_back({op,
                         group,
                         0,
                         0,
                         static_cast<uint32_t>(g.ranks.size()),
                         g.seq++,
                         1 << 24,
                         0,
                         ms * f_.transfer(g.ranks, step_),
                         {}});
    }
    return at->second;
  }

  uint32_t pair(uint32_t from, uint32_t to, uint64_t ordinal) {
    const auto [at, fresh] = pairs_.try_emplace(mix64(uint64_t{from} << 32 | to, ordinal), 0u);
    if (fresh) {
      at->second = static_cast<uint32_t>(events_.size());
      const uint64_t seq = step_ * uint64_t{l_.micro} + ordinal;
      events_.push_back({CommOp::kSend,
                         pp_of_[from],
                         from,
                         to,
                         2,
                         seq,
                         1 << 22,
                         0,
                         0.5 * f_.transfer({from, to}, step_),
                         {}});
    }
    return at->second;
  }

  void pass(uint32_t r, uint32_t micro, bool forward) {
    const uint32_t stride = l_.tp * l_.dp, p = r / stride;
    const uint32_t before = forward ? r - stride : r + stride, after = forward ? r + stride : r - stride;
    const bool has_before = forward ? p > 0 : p + 1 < l_.pp, has_after = forward ? p + 1 < l_.pp : p > 0;
    auto& todo = todo_[r];
    if (has_before) todo.push_back({0, pair(before, r, micro), CommOp::kRecv});
    const double ms = forward ? 10 : 20;
    double rest = ms;
    if (l_.tp > 1) {
      for (uint32_t k = 0; k < l_.layers; ++k)
        todo.push_back({piece(r, micro, ms / l_.layers),
                        shared(tp_of_[r], CommOp::kAllReduce, 0.3, (micro * 2 + forward) * l_.layers + k),
                        CommOp::kAllReduce});
      rest = 0.1;
    }
    if (has_after)
      todo.push_back({piece(r, micro, rest), pair(r, after, micro), CommOp::kSend});
    else
      carried_[r] += piece(r, micro, rest);
    if (carried_[r] > 0 && has_after) todo.back().work += std::exchange(carried_[r], 0);
  }

  void programs() {
    todo_.assign(l_.world(), {});
    carried_.assign(l_.world(), 0);
    events_.clear();
    shared_.clear();
    pairs_.clear();
    for (uint32_t r = 0; r < l_.world(); ++r) {
      const uint32_t p = r / (l_.tp * l_.dp), ahead = std::min(l_.micro, l_.pp - p - 1);
      carried_[r] = 2 + f_.pause_ms(r, step_);
      for (uint32_t m = 0; m < ahead; ++m) pass(r, m, true);
      for (uint32_t m = ahead; m < l_.micro; ++m) {
        pass(r, m, true);
        pass(r, m - ahead, false);
      }
      for (uint32_t m = l_.micro - ahead; m < l_.micro; ++m) pass(r, m, false);
      if (r == f_.stuck_rank && step_ == f_.stuck_step) continue;
      todo_[r].push_back(
          {carried_[r] + 1, shared(dp_of_[r], CommOp::kReduceScatter, 5, 0), CommOp::kReduceScatter});
      todo_[r].push_back({1, shared(dp_of_[r], CommOp::kAllGather, 3, 1), CommOp::kAllGather});
      todo_[r].push_back({0.2, shared(0, CommOp::kAllReduce, 0.1, 0), CommOp::kAllReduce});
    }
    for (Event& e : events_)
      if (e.op == CommOp::kSend) e.missing = 2;
  }

  void run() {
    next_.assign(l_.world(), 0);
    std::vector<uint32_t> ready;
    for (uint32_t r = l_.world(); r > 0; --r) ready.push_back(r - 1);
    while (!ready.empty()) {
      const uint32_t r = ready.back();
      ready.pop_back();
      while (next_[r] < todo_[r].size()) {
        const Todo& todo = todo_[r][next_[r]];
        Event& e = events_[todo.event];
        const double start = at_[r] + todo.work;
        e.ready = std::max(e.ready, start);
        if (todo.op == CommOp::kSend) {  // the rank leaves without waiting
          ++next_[r];
          at_[r] = start + e.transfer;
          write(r, e, CommOp::kSend, start, at_[r]);
        } else {
          e.inside.emplace_back(r, start);
        }
        if (--e.missing > 0) {
          if (todo.op == CommOp::kSend) continue;
          break;
        }
        for (const auto& [who, since] : e.inside) {
          at_[who] = e.ready + e.transfer;
          write(who, e, todo_[who][next_[who]].op, since, at_[who]);
          ++next_[who];
          if (who != r) ready.push_back(who);
        }
      }
    }
    for (const Event& e : events_)  // unfinished operations
      if (e.missing > 0)
        for (const auto& [who, since] : e.inside) write(who, e, todo_[who][next_[who]].op, since, -1);
  }

  void write(uint32_t r, const Event& e, CommOp op, double start, double end) {
    std::uniform_real_distribution<double> chance(0, 1);
    if (c_.lost > 0 && chance(random_) < c_.lost) return;
    const uint32_t host = r / l_.ranks_per_host;
    const auto stamp = [&](double ms) { return static_cast<uint64_t>(1e15 + (ms + skew_[host]) * 1e6); };
    CommRecord out;
    out.start_ns = stamp(start);
    out.end_ns = end < 0 ? 0 : stamp(end);
    out.comm = groups_[e.group].id;
    out.seq = e.seq;
    out.bytes = e.bytes;
    out.rank = r;
    out.step = c_.reported_steps ? step_ : kCommUnknown;
    if (is_p2p(op)) out.peer = r == e.channel_from ? e.channel_to : e.channel_from;
    out.comm_size = static_cast<uint32_t>(groups_[e.group].ranks.size());
    out.op = op;
    out.group = groups_[e.group].kind;
    out.device = r % l_.ranks_per_host;
    out_[host].push_back(out);
  }

  Layout l_;
  Chance c_;
  Faults f_;
  std::mt19937_64 random_;
  uint32_t step_ = 0;
  std::vector<Group> groups_;
  std::vector<uint32_t> tp_of_, dp_of_, pp_of_, next_;
  std::vector<double> at_, skew_, carried_;
  std::vector<std::vector<Todo>> todo_;
  std::vector<Event> events_;
  std::unordered_map<uint64_t, uint32_t> shared_, pairs_;
  std::vector<std::vector<CommRecord>> out_;
};

}  // namespace culprit::plain
