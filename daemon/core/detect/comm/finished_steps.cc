#include "core/detect/comm/finished_steps.h"

#include <algorithm>
#include <map>
#include <tuple>

namespace culprit::comm {

void FinishedSteps::add_records(std::vector<PendingSteps::Steps::node_type> steps, Cluster& cluster) {
  const size_t n = steps.size();
  while (work_.size() < n) work_.push_back(std::make_unique<Step>());
  std::vector<std::vector<Mismatch>> mismatches(n);
  parallel_.run(n, [&](size_t i) {
    build_step(cluster, steps[i].key(), steps[i].mapped().records, *work_[i]);
    steps[i].mapped().records = {};
    find_mismatches(cluster, *work_[i], mismatches[i]);
    find_background(cluster, *work_[i]);
  });
  for (size_t i = 0; i < n; ++i) {
    duplicates_ += work_[i]->duplicates;
    for (Mismatch& one : mismatches[i]) keep_mismatch(std::move(one), mismatches_);
    left_out_.add(cluster, *work_[i]);
    follow_ranks(cluster, *work_[i]);
  }
  parallel_.run(n, [&](size_t i) {
    fill_gaps(*work_[i]);
    align_clocks(cluster, *work_[i]);
    compare_peers(cluster, *work_[i]);
    HiddenWaits::find_longest(*work_[i]);
    Network::measure(cluster, *work_[i]);
  });
  for (size_t i = 0; i < n; ++i) {
    network_.learn(*work_[i]);
    hidden_waits_.learn(cluster, *work_[i], results_);
  }
  parallel_.run(n, [&](size_t i) {
    hidden_waits_.mark(*work_[i]);
    Network::compare(*work_[i]);
    const std::vector<double> on_path = walk_path(cluster, *work_[i]);
    Network::explain(cluster, on_path, *work_[i]);
    replay_costs(cluster, *work_[i]);
  });
  for (size_t i = 0; i < n; ++i) {
    pictures_.offer(cluster, *work_[i]);
    keep(std::move(work_[i]->result));
  }
}

const Step& FinishedSteps::build(int64_t number, const SortedRecords& records, Cluster& cluster) {
  if (work_.empty()) work_.push_back(std::make_unique<Step>());
  Step& step = *work_[0];
  build_step(cluster, number, records, step);
  duplicates_ += step.duplicates;
  measure_gaps(cluster, step);
  return step;
}

void FinishedSteps::add_summaries(int64_t number, PendingStep held, Cluster& cluster) {
  if (work_.empty()) work_.push_back(std::make_unique<Step>());
  Step& step = *work_[0];
  clear_step(cluster, number, step);
  vector_step(cluster, std::move(held.ranks), held.sides, step);
  duplicates_ += step.duplicates;
  compare_peers(cluster, step);
  Network::measure(cluster, step);
  network_.learn(step);
  Network::compare(step);
  const std::vector<double> on_path = estimate_path(cluster, step);
  Network::explain(cluster, on_path, step);
  step.result.basis = Basis::kSums;
  step.result.network_by_sums = true;
  requests_.scale(step.result);
  keep(std::move(step.result));
}

void FinishedSteps::keep(StepResult result) {
  constexpr size_t kOfStep = 8;  // fixed memory of a step, in units of ranks
  rank_steps_ += result.ranks.size() + kOfStep;
  for (NetEffect& effect : result.network) effect.channels = {};
  results_.push_back(std::move(result));
  while (rank_steps_ > kRankSteps && results_.size() > 1) {
    rank_steps_ -= results_.front().ranks.size() + kOfStep;
    results_.pop_front();
    ++forgotten_;
  }
}

void FinishedSteps::restart() {
  mismatches_.clear();
  left_out_.clear();
  hidden_waits_.clear();
  requests_.forget();
}

// ---- requested records

void FinishedSteps::correct_by_answers(Cluster& cluster, int64_t now_ns) {
  for (const int64_t number : requests_.complete(now_ns)) {
    // Backward: the job may have restarted, and the last step with this number counts.
    const auto sums = std::find_if(results_.rbegin(), results_.rend(),
                                   [number](const auto& s) { return s.number == number; });
    if (sums != results_.rend() && sums->basis == Basis::kSums) {
      Step step;
      step.number = step.result.number = number;
      if (analyse_answer(requests_.answer(number), cluster, step)) {
        requests_.correct(*sums, step.result);
        pictures_.offer(cluster, step);
      }
    }
    requests_.done(number);
  }
  for (StepResult& step : results_) requests_.scale_again(step);
  requests_.scaled();
}

// Analyses a step of the answering ranks alone. The answer also gives their own work before the first
// operation.
bool FinishedSteps::analyse_answer(const RecordRequests::Answer& answer, Cluster& cluster, Step& step) {
  cluster.settle();
  SortedRecords records;
  std::map<uint32_t, int64_t> first;  // by rank: first entry
  for (const CommRecord& r : answer.records) {
    const uint32_t rank = cluster.find_rank(r.rank);
    if (const uint32_t slot = cluster.find_slot(rank, r, 0); slot != kNone) records.add({rank, slot, r});
    const auto start = static_cast<int64_t>(r.start_ns);
    if (const auto [at, fresh] = first.try_emplace(r.rank, start); !fresh)
      at->second = std::min(at->second, start);
  }
  build_step(cluster, step.number, records, step);
  std::vector<std::pair<int64_t, int64_t>> saved;
  for (const uint32_t rank : step.ranks) {
    RankInfo& info = cluster.ranks()[rank];
    saved.emplace_back(info.last_end, info.last_step);
    const auto before = answer.before.find(info.rank);
    info.last_step = before == answer.before.end() ? -1 : step.number - 1;
    if (before != answer.before.end()) info.last_end = first[info.rank] - before->second;
  }
  measure_gaps(cluster, step);
  for (size_t i = 0; i < step.ranks.size(); ++i) {
    RankInfo& info = cluster.ranks()[step.ranks[i]];
    std::tie(info.last_end, info.last_step) = saved[i];
  }
  if (step.ranks.empty()) return false;
  align_clocks(cluster, step);
  compare_peers(cluster, step);
  Network::measure(cluster, step);
  of_answers_.learn(step);
  Network::compare(step);
  const std::vector<double> on_path = walk_path(cluster, step);
  Network::explain(cluster, on_path, step);
  replay_costs(cluster, step);
  return true;
}

}  // namespace culprit::comm
