#include "core/replay/posterior.h"

#include <algorithm>
#include <cmath>

namespace culprit::replay {
namespace {

constexpr double kNoHostPrior = 0.05, kJobPrior = 0.1, kOnePrior = 0.6, kTwoPrior = 0.25;
constexpr double kNegligible = 40;  // e^-40 of the largest weight

bool more_probable(const Hypothesis& a, const Hypothesis& b) {
  if (a.probability != b.probability) return a.probability > b.probability;
  return a.kind != b.kind ? a.kind < b.kind : a.a != b.a ? a.a < b.a : a.b < b.b;
}

}  // namespace

double failing(const Odds& odds, unsigned faults) {
  const double shows = std::clamp(odds.shows, kShowsLeast, kShowsMost);
  const double stray = std::clamp(odds.stray, kStrayLeast, kStrayMost);
  return 1 - (1 - stray) * std::pow(1 - shows, faults);
}

Posterior::Posterior(uint32_t hosts, const Odds& odds)
    : hosts_(hosts),
      fails_{failing(odds, 0), failing(odds, 1), failing(odds, 2)},
      one_(hosts, 0.0),
      both_(static_cast<size_t>(hosts) * (hosts - 1) / 2, 0.0) {}

size_t Posterior::index(uint32_t a, uint32_t b) const {
  return static_cast<size_t>(a) * (2 * static_cast<size_t>(hosts_) - a - 1) / 2 + (b - a - 1);
}

void Posterior::add(const HostSet& group, bool failed) {
  double likelihood[3];
  for (size_t k = 0; k < 3; ++k) likelihood[k] = std::log(failed ? fails_[k] : 1 - fails_[k]);
  no_host_ += likelihood[0];
  job_ += likelihood[1] - likelihood[0];
  const double single = likelihood[1] - likelihood[0];
  const double shared = likelihood[2] - likelihood[0] - 2 * single;
  for (size_t i = 0; i < group.size(); ++i) {
    one_[group[i]] += single;
    for (size_t k = i + 1; k < group.size(); ++k) both_[index(group[i], group[k])] += shared;
  }
}

Summary Posterior::summary(size_t top) const {
  const double n = hosts_, pairs = std::max(1.0, n * (n - 1) / 2);
  const double one = std::log(kOnePrior / n), two = std::log(kTwoPrior / pairs);
  double most = std::max(std::log(kNoHostPrior), std::log(kJobPrior) + job_);
  for (const double weight : one_) most = std::max(most, one + weight);
  const auto for_pairs = [&](auto take) {
    size_t at = 0;
    for (uint32_t a = 0; a < hosts_; ++a)
      for (uint32_t b = a + 1; b < hosts_; ++b, ++at) take(a, b, two + one_[a] + one_[b] + both_[at]);
  };
  for_pairs([&](uint32_t, uint32_t, double weight) { most = std::max(most, weight); });

  Summary out;
  out.of_host.assign(hosts_, 0.0);
  double sum = 0;
  std::vector<Hypothesis>& all = out.top;
  const auto add = [&](Hypothesis h, double weight, double& of_kind) {
    if (weight < most - kNegligible) return;
    h.probability = std::exp(weight - most);
    sum += h.probability;
    of_kind += h.probability;
    if (h.kind == Hypothesis::Kind::kOne || h.kind == Hypothesis::Kind::kTwo)
      out.of_host[h.a] += h.probability;
    if (h.kind == Hypothesis::Kind::kTwo) out.of_host[h.b] += h.probability;
    all.push_back(h);
  };
  using Kind = Hypothesis::Kind;
  add({Kind::kNoHost, 0, 0, 0}, std::log(kNoHostPrior), out.no_host);
  add({Kind::kJob, 0, 0, 0}, std::log(kJobPrior) + job_, out.job);
  for (uint32_t a = 0; a < hosts_; ++a) add({Kind::kOne, a, a, 0}, one + one_[a], out.one);
  for_pairs([&](uint32_t a, uint32_t b, double weight) { add({Kind::kTwo, a, b, 0}, weight, out.two); });

  top = std::min(top, all.size());
  std::nth_element(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(top), all.end(), more_probable);
  all.resize(top);
  std::ranges::sort(all, more_probable);
  for (Hypothesis& h : all) h.probability /= sum;
  for (double& share : out.of_host) share /= sum;
  for (double* share : {&out.no_host, &out.job, &out.one, &out.two}) *share /= sum;
  out.log_evidence = no_host_ + most + std::log(sum);
  return out;
}

}  // namespace culprit::replay
