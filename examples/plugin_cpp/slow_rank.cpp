/* A detector in C++: a rank whose metric `tokens_per_s` is below half of the median of all ranks is slow.
 * Raised once per rank, and cleared when the rank is back above two thirds.
 *
 *   c++ -O2 -fPIC -shared -fvisibility=hidden -I<sdk>/include slow_rank.cpp -o slow_rank.so */
#include <culprit/plugin.hpp>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>

namespace {

class SlowRank : public culprit::Detector {
 public:
  explicit SlowRank(const culprit::Host& host) : Detector(host), ratio_(host.number("ratio")) {}

  void observe(const culprit_event& event) override {
    const auto& metric = culprit::body<culprit_metric>(event);  // only metrics were asked for
    if (std::strcmp(metric.name, "tokens_per_s") != 0 || !std::isfinite(metric.value)) return;
    if (event.rank < 0 || (speeds_.size() >= kRanksMax && !speeds_.count(event.rank))) return;
    speeds_[event.rank].tokens_per_s = metric.value;
  }

  void tick(int64_t) override {
    if (speeds_.size() < 4) return;  // a median of fewer says little
    std::vector<double> sorted;
    for (const auto& entry : speeds_) sorted.push_back(entry.second.tokens_per_s);
    std::nth_element(sorted.begin(), sorted.begin() + sorted.size() / 2, sorted.end());
    const double median = sorted[sorted.size() / 2];
    for (auto& entry : speeds_) {
      Speed& speed = entry.second;
      // Two limits, so that a rank near one of them is not raised and cleared in turn.
      const double limit = speed.slow ? std::min(1.0, ratio_ * 4 / 3) : ratio_;
      const bool slow = speed.tokens_per_s < limit * median;
      if (slow != speed.slow) report(entry.first, speed.tokens_per_s, median, slow);
      speed.slow = slow;
    }
  }

 private:
  static constexpr size_t kRanksMax = 1024;  // every container has a bound
  struct Speed {
    double tokens_per_s = 0;
    bool slow = false;
  };

  void report(int64_t rank, double tokens_per_s, double median, bool slow) {
    culprit::Finding finding;
    finding.id = "example.slow_rank";
    finding.title = "Rank processes fewer tokens than its peers";
    finding.text = "rank " + std::to_string(rank) + ": " + std::to_string(tokens_per_s) +
                   " tokens/s, the median is " + std::to_string(median);
    finding.component = "gpu";
    finding.symptom = "slowdown";
    finding.action = "check";
    finding.rank = rank;
    finding.confidence = 0.6;
    finding.state = slow ? CULPRIT_RAISED : CULPRIT_CLEARED;
    finding.values = {{"tokens_per_s", tokens_per_s}, {"median", median}};
    host().emit(finding);
  }

  double ratio_;
  std::map<int64_t, Speed> speeds_;
};

const culprit_option kRatio = {
    sizeof kRatio,         "ratio", "0.5", "Part of the median below which a rank is slow.", 0.01, 0.99,
    CULPRIT_OPTION_NUMBER, 0};
const culprit_option* const kOptions[] = {&kRatio};
const culprit_description kDescription = {sizeof kDescription,
                                          CULPRIT_ABI_MAJOR,
                                          CULPRIT_ABI_MINOR,
                                          "slow_rank",
                                          "1.0",
                                          "Example",
                                          "Finds ranks that process fewer tokens than their peers.",
                                          CULPRIT_BIT(CULPRIT_EVENT_METRIC),
                                          1000,
                                          kOptions,
                                          1};

}  // namespace

CULPRIT_PLUGIN(SlowRank, kDescription)
