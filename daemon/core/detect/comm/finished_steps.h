// Analyses the finished steps of a job in order, and keeps a small result of each. Results from summaries are
// corrected by records requested later. Owned by CommTrace; one thread, which runs parts of the analysis in
// parallel; pure.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "core/detect/comm/hidden_waits.h"
#include "core/detect/comm/left_out.h"
#include "core/detect/comm/mismatch.h"
#include "core/detect/comm/network.h"
#include "core/detect/comm/parallel.h"
#include "core/detect/comm/pending_steps.h"
#include "core/detect/comm/picture.h"
#include "core/detect/comm/record_requests.h"
#include "core/detect/comm/result.h"

namespace culprit::comm {

class FinishedSteps {
 public:
  explicit FinishedSteps(Parallel parallel) : parallel_(std::move(parallel)) {}
  const Parallel& parallel() const { return parallel_; }
  size_t width() const { return std::max<size_t>(1, parallel_.width); }  // useful number of steps at a time

  // Analyses steps that have only records, and drops the records. The cluster is settled.
  void add_records(std::vector<PendingSteps::Steps::node_type> steps, Cluster& cluster);
  // Analyses a step of summaries; its records are ignored.
  void add_summaries(int64_t number, PendingStep step, Cluster& cluster);
  // A step of this host's records for a summary, without a result. Valid until the next call.
  const Step& build(int64_t number, const SortedRecords& records, Cluster& cluster);
  // Releases tables that only the next step needs.
  void release_tables() { work_.clear(); }
  // The job was restarted. Usual network durations are kept: the hosts are mostly the same.
  void restart();

  // Record requests for hosts that send summaries. `now_ns`: time of the job's latest data.
  std::vector<StepsWanted> request_records(const Cluster& cluster, const std::vector<Culprit>& culprits,
                                           int64_t now_ns) {
    return requests_.choose(cluster, results_, culprits, now_ns);
  }
  void add_answer(RecordRequests::HostAnswer answer, int64_t now_ns) {
    requests_.add_answer(std::move(answer), now_ns);
  }
  // Corrects results by the answers that are complete.
  void correct_by_answers(Cluster& cluster, int64_t now_ns);

  const std::deque<StepResult>& results() const { return results_; }
  std::vector<StepPicture> pictures() const { return pictures_.all(); }  // of steps with records
  const std::vector<Mismatch>& mismatches() const { return mismatches_; }
  std::optional<LeftOut> left_out() const { return left_out_.find(); }
  uint64_t duplicates() const { return duplicates_; }  // records that came twice
  uint64_t forgotten() const { return forgotten_; }    // results dropped by the limit of memory

 private:
  bool analyse_answer(const RecordRequests::Answer& answer, Cluster& cluster, Step& step);
  void keep(StepResult result);

  Parallel parallel_;
  std::vector<std::unique_ptr<Step>> work_;  // steps analysed in parallel
  Network network_;
  Network of_answers_;  // usual durations in requested records
  std::vector<Mismatch> mismatches_;
  LeftOutWatch left_out_;
  HiddenWaits hidden_waits_;
  RecordRequests requests_;
  Pictures pictures_;
  std::deque<StepResult> results_;
  size_t rank_steps_ = 0;  // results of ranks in results_, plus a fixed amount per step
  uint64_t duplicates_ = 0, forgotten_ = 0;
};

}  // namespace culprit::comm
