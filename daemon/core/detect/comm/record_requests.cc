#include "core/detect/comm/record_requests.h"

#include <algorithm>
#include <utility>

#include "base/time.h"

namespace culprit::comm {
namespace {

// Time until a request is repeated. Answers arrive within seconds, or within a minute after a host was
// disconnected.
constexpr int64_t kAgainNs = 120 * kNsPerSecond;
constexpr size_t kTries = 3;
// Limit of held records: those of the largest request, with room for unrequested answers.
constexpr size_t kRecords = 2'000'000;

// Chooses the hosts of a request: those of the culprit's pipelines, and of similar pipelines for comparison.
class Circle {
 public:
  Circle(const Cluster& cluster, const StepResult& step) : cluster_(cluster) {
    for (const RankStep& r : step.ranks) blocks_[cluster.data_of(r.rank)].push_back(r.rank);
    ranks_ = step.ranks.size();
  }

  std::set<uint32_t> hosts_around(const Culprit& culprit) {
    std::set<uint32_t> own;
    for (const uint32_t r : culprit.ranks) own.insert(cluster_.data_of(r));
    size_t taken = 0;
    for (const uint32_t block : own) {
      if (taken > 0 && taken + blocks_[block].size() > kRanksAsked) break;
      taken += add(block);
    }
    for (const auto& [block, ranks] : blocks_) {
      if (own.contains(block)) continue;
      const bool enough = ranks_ > kRanksWhole && taken >= kRanksEnough && others_ >= kOthers;
      if (enough || taken + ranks.size() > kRanksAsked) break;
      taken += add(block);
      ++others_;
    }
    return std::move(hosts_);
  }

 private:
  // Other pipelines: three with the culprit's own. With fewer, the median may be the culprit's value.
  static constexpr size_t kOthers = 2;

  size_t add(uint32_t block) {
    for (const uint32_t r : blocks_[block])
      if (const uint32_t host = cluster_.ranks()[r].host; host != kNone) hosts_.insert(host);
    return blocks_[block].size();
  }

  const Cluster& cluster_;
  std::map<uint32_t, std::vector<uint32_t>> blocks_;  // by Cluster::data_of
  std::set<uint32_t> hosts_;
  size_t ranks_ = 0, others_ = 0;
};

}  // namespace

double RecordRequests::Ratio::now() const {
  // Maximum plausible ratio: errors of summaries are smaller, so a larger ratio compares different
  // quantities.
  constexpr double kMost = 5;
  return sums > 0 ? std::clamp(records / sums, 1 / kMost, kMost) : 1;
}

std::vector<StepsWanted> RecordRequests::choose(const Cluster& cluster, const std::deque<StepResult>& steps,
                                                const std::vector<Culprit>& culprits, int64_t now_ns) {
  std::vector<StepsWanted> out;
  const auto names = [&](const std::set<uint32_t>& hosts) {
    std::vector<std::string> list;
    for (const uint32_t h : hosts) list.push_back(cluster.hosts()[h]);
    return list;
  };
  size_t pending = 0;
  for (auto& [step, answer] : answers_) {
    if (answer.hosts.empty()) continue;
    ++pending;
    if (now_ns - answer.asked_ns < kAgainNs || answer.tries >= kTries) continue;
    answer.asked_ns = now_ns;
    ++answer.tries;
    out.push_back({names(answer.hosts), {step}});
  }
  for (const Culprit& c : culprits) {
    if (c.ambiguous || c.ranks.empty()) continue;
    size_t known = 0;
    for (const uint32_t s : c.steps)
      known += steps[s].basis != Basis::kSums || answers_.contains(steps[s].number);
    StepsWanted wanted;
    std::set<uint32_t> hosts;
    const size_t most = std::min(kStepsAsked, 1 + steps.size() / kOneOf);
    for (auto s = c.steps.rbegin(); s != c.steps.rend() && known < most; ++s, ++known) {
      if (answers_.contains(steps[*s].number)) continue;
      if (pending >= kStepsPending || answers_.size() - unasked() >= kStepsOfJob) break;
      if (hosts.empty()) hosts = Circle(cluster, steps[*s]).hosts_around(c);
      if (hosts.empty()) break;
      Answer& answer = answers_[steps[*s].number];
      answer.hosts = hosts;
      answer.asked_ns = now_ns;
      answer.tries = 1;
      wanted.steps.push_back(steps[*s].number);
      ++pending;
    }
    if (wanted.steps.empty()) continue;
    wanted.hosts = names(hosts);
    out.push_back(std::move(wanted));
  }
  return out;
}

size_t RecordRequests::unasked() const {
  return static_cast<size_t>(
      std::count_if(answers_.begin(), answers_.end(), [](const auto& one) { return one.second.tries == 0; }));
}

void RecordRequests::add_answer(HostAnswer reported, int64_t now_ns) {
  const auto known = answers_.find(reported.step);
  if (known == answers_.end()) {
    // An answer to a request from before this process restarted; other hosts' answers follow.
    if (reported.records.empty() || unasked() >= kStepsUnasked) return;
    answers_[reported.step].asked_ns = now_ns;
  }
  Answer& answer = answers_[reported.step];
  answer.hosts.erase(reported.host);
  if (answer.over || records_ + reported.records.size() > kRecords) return;
  records_ += reported.records.size();
  answer.fresh = answer.fresh || !reported.records.empty();
  answer.records.insert(answer.records.end(), reported.records.begin(), reported.records.end());
  answer.before.merge(reported.before);
}

std::vector<int64_t> RecordRequests::complete(int64_t now_ns) {
  std::vector<int64_t> out;
  for (auto& [step, answer] : answers_) {
    // An answer without a known request may have more parts, so it waits for the full time.
    const bool all = answer.hosts.empty() && answer.tries > 0;
    if (answer.fresh && (all || now_ns - answer.asked_ns >= kAgainNs)) out.push_back(step);
  }
  return out;
}

void RecordRequests::done(int64_t step) {
  Answer& answer = answers_[step];
  answer.fresh = false;
  answer.over = true;  // drops late answers
  records_ -= answer.records.size();
  answer.records = {};
  answer.before.clear();
  answer.hosts.clear();
  if (answer.tries == 0) answers_.erase(step);
}

void RecordRequests::correct(StepResult& sums, const StepResult& records) {
  constexpr double kShare = 0.01;  // share of a step: a smaller cost makes no step irregular
  std::map<uint32_t, const RankStep*> by_rank;
  for (const RankStep& r : records.ranks)
    if (r.peers > 1) by_rank[r.rank] = &r;
  for (RankStep& r : sums.ranks) {
    const auto at = by_rank.find(r.rank);
    if (at == by_rank.end()) continue;
    const double by_records = std::max(0.f, at->second->path);
    const auto known = of_rank_.find(r.rank);
    const double by_sums = double{r.path} / (known == of_rank_.end() ? 1 : known->second.applied);
    r.path = static_cast<float>(by_records);
    if (std::max(by_records, by_sums) < kShare * sums.step_ms) continue;
    of_rank_[r.rank].records += by_records;
    of_rank_[r.rank].sums += by_sums;
  }
  // If only some ranks answered, their records do not determine the group's durations.
  const bool whole = records.ranks.size() == sums.ranks.size();
  for (NetEffect& e : sums.network) {
    if (!whole) break;
    const auto same = std::find_if(records.network.begin(), records.network.end(),
                                   [&](const NetEffect& o) { return key_of(o) == key_of(e); });
    if (same == records.network.end()) continue;
    Ratio& ratio = of_part_[key_of(e)];
    ratio.records += same->cost;
    ratio.sums += e.cost / ratio.applied;
    e.cost = same->cost;
  }
  sums.chain = records.chain;
  sums.network_path_ms = records.network_path_ms;
  sums.basis = Basis::kPath;
  sums.network_by_sums = !whole;
  corrected_ = true;
}

void RecordRequests::scale(StepResult& step, bool again) const {
  if (step.basis != Basis::kSums || (of_rank_.empty() && of_part_.empty())) return;
  // A new step gets the ratio of the other steps, so that the next rescaling is uniform.
  const auto factor = [again](const Ratio& ratio) {
    return again ? ratio.now() / ratio.applied : ratio.applied;
  };
  for (RankStep& r : step.ranks)
    if (const auto at = of_rank_.find(r.rank); at != of_rank_.end())
      r.path *= static_cast<float>(factor(at->second));
  for (NetEffect& e : step.network)
    if (const auto at = of_part_.find(key_of(e)); at != of_part_.end()) e.cost *= factor(at->second);
}

void RecordRequests::scaled() {
  if (!std::exchange(corrected_, false)) return;
  for (auto& [rank, ratio] : of_rank_) ratio.applied = ratio.now();
  for (auto& [part, ratio] : of_part_) ratio.applied = ratio.now();
}

}  // namespace culprit::comm
