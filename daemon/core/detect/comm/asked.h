// Records that a job's agents are asked for, where their sums name somebody: of a few of his steps, of the
// hosts on the path. Of those steps the path, its costs and the chain of waiting are then what records say;
// in others what sums said is scaled as it had to be there. Where nobody has the records any more, what sums
// say stays. Owned by CommTrace, one thread, pure.
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

// Asked of a culprit: one of a hundred steps that are known, so that records add little to sums, and in all
// so many: a step that is like no other is not all that is known of his.
constexpr size_t kStepsAsked = 3, kOneOf = 100;
// Asked of a job at a time, and in all its time: of some twenty culprits.
constexpr size_t kStepsPending = 8, kStepsOfJob = 64;
// Of which somebody tells that nobody here asked for: as many as were asked for at a time, before a restart.
constexpr size_t kStepsUnasked = kStepsPending;
// Of jobs of up to so many ranks all are asked: what the others would be waited for then is known too.
constexpr size_t kRanksWhole = 256;
// Of larger ones the culprit's pipelines with all who work on their data, and others to compare them with,
// until so many are enough; and never more than the latter, some 10 MB of the longest steps.
constexpr size_t kRanksEnough = 128, kRanksAsked = 1024;

struct StepsWanted {
  std::vector<std::string> hosts;
  std::vector<int64_t> steps;
};

class Asked {
 public:
  // What is to be asked for, by what is judged; `now_ns`: up to when the job is known.
  std::vector<StepsWanted> choose(const Cluster& cluster, const std::deque<StepResult>& steps,
                                  const std::vector<Culprit>& culprits, int64_t now_ns);
  // Of a host; it may have nothing.
  struct OfHost {
    uint32_t host = kNone;
    int64_t step = 0;
    std::vector<CommRecord> records;
    std::map<uint32_t, int64_t> before;  // by rank: what it did before its first operation, ns
  };
  void take(OfHost answer, int64_t now_ns);
  // Steps of which all is there that will be, since the last call.
  std::vector<int64_t> complete(int64_t now_ns);

  struct Answer {
    std::set<uint32_t> hosts;  // indices, that have not answered
    std::vector<CommRecord> records;
    std::map<uint32_t, int64_t> before;  // by rank: what it did before its first operation, ns
    int64_t asked_ns = 0;
    size_t tries = 0;  // 0: nobody here asked for it
    bool fresh = false, over = false;
  };
  const Answer& answer(int64_t step) const { return answers_.at(step); }
  // Steps are numbered anew: nothing is awaited of those before.
  void forget() {
    answers_.clear();
    records_ = 0;
  }
  // It was looked at.
  void done(int64_t step);

  // `records` of a step tell more of those who are in them.
  void correct(StepResult& sums, const StepResult& records);
  // What costs by sums alone, scaled as it had to be where both were known: of a new step.
  void scale(StepResult& step) const { scale(step, false); }
  // And of steps that were scaled before, when more is known; then scaled().
  void scale_again(StepResult& step) const {
    if (corrected_) scale(step, true);
  }
  void scaled();

 private:
  size_t unasked() const;
  // What costs are by records and by sums, where both are known.
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
