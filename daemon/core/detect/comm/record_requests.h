// Requests for the records of named culprits, for jobs whose daemons send only summaries. A request covers a
// few steps of a culprit and the hosts on the critical path. For these steps, values from records replace the
// path, the costs and the chain of waiting. For other steps, costs from summaries are scaled by the observed
// ratio. If no host still has the records, the values from summaries remain. Owned by FinishedSteps; one
// thread; pure.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <set>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "core/detect/comm/cluster.h"
#include "core/detect/comm/judge.h"
#include "core/detect/comm/result.h"
#include "model/comm.h"

namespace culprit::comm {

// Per culprit: one of kOneOf known steps to limit traffic, at most kStepsAsked. A single step may not be
// typical, so several are requested.
constexpr size_t kStepsAsked = 3, kOneOf = 100;
// Per job: limit at a time, and limit over its lifetime (about twenty culprits).
constexpr size_t kStepsPending = 8, kStepsOfJob = 64;
// Maximum number of answers without a request from this process: a restarted collector receives up to
// kStepsPending.
constexpr size_t kStepsUnasked = kStepsPending;
// For jobs of up to this many ranks, request records of all ranks. Then the remaining costs without the
// culprit are also known.
constexpr size_t kRanksWhole = 256;
// For larger jobs: request the culprit's pipelines, all ranks that work on their data, and other ranks for
// comparison, until kRanksEnough. Never more than kRanksAsked: about 10 MB for the longest steps.
constexpr size_t kRanksEnough = 128, kRanksAsked = 1024;

struct StepsWanted {
  std::vector<std::string> hosts;
  std::vector<int64_t> steps;
};

class RecordRequests {
 public:
  // Chooses the requests from the judged culprits. `now_ns`: time of the job's latest data.
  std::vector<StepsWanted> choose(const Cluster& cluster, const std::deque<StepResult>& steps,
                                  const std::vector<Culprit>& culprits, int64_t now_ns);
  // Answer of one host; it may contain no records.
  struct HostAnswer {
    uint32_t host = kNone;
    int64_t step = 0;
    std::vector<CommRecord> records;
    std::map<uint32_t, int64_t> before;  // by rank: own work before the first operation, ns
  };
  void add_answer(HostAnswer answer, int64_t now_ns);
  // Steps that became complete since the last call: all answers arrived or timed out.
  std::vector<int64_t> complete(int64_t now_ns);

  struct Answer {
    std::set<uint32_t> hosts;  // indices of hosts that have not answered
    std::vector<CommRecord> records;
    std::map<uint32_t, int64_t> before;  // by rank: own work before the first operation, ns
    int64_t asked_ns = 0;
    size_t tries = 0;  // 0: this process sent no request
    bool fresh = false, over = false;
  };
  const Answer& answer(int64_t step) const { return answers_.at(step); }
  // Call when step numbers restart: drops all pending answers.
  void forget() {
    answers_.clear();
    records_ = 0;
  }
  // Marks the answer as processed.
  void done(int64_t step);

  // Replaces costs from summaries by costs from `records`, for ranks with records.
  void correct(StepResult& sums, const StepResult& records);
  // Scales the costs of a new step that only has summaries, by the ratios of steps that have both.
  void scale(StepResult& step) const { scale(step, false); }
  // Scales steps again when new ratios are known; call scaled() afterwards.
  void scale_again(StepResult& step) const {
    if (corrected_) scale(step, true);
  }
  void scaled();

 private:
  size_t unasked() const;
  // Costs from records and from summaries, over steps that have both.
  struct Ratio {
    double records = 0, sums = 0, applied = 1;
    double now() const;
  };
  using PartKey = std::tuple<NetKind, uint32_t, uint32_t>;
  static PartKey key_of(const NetEffect& e) { return {e.kind, e.a, e.b}; }
  void scale(StepResult& step, bool again) const;

  std::map<int64_t, Answer> answers_;
  size_t records_ = 0;
  std::map<uint32_t, Ratio> of_rank_;  // by index
  std::map<PartKey, Ratio> of_part_;
  bool corrected_ = false;  // since scaled()
};

}  // namespace culprit::comm
