#include "cli/step_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "cli/narrative.h"
#include "model/rank_place.h"

namespace culprit::cli {
namespace {

double value_at(const std::vector<double>& values, size_t i) {
  return i < values.size() && std::isfinite(values[i]) ? std::max(0.0, values[i]) : 0;
}

bool is_slow(const Report& report, int64_t step) {
  return std::any_of(report.irregularities.begin(), report.irregularities.end(),
                     [step](const Irregularity& x) { return x.first_step <= step && step <= x.last_step; });
}

std::set<uint32_t> suspected_ranks(const Report& report) {
  std::set<uint32_t> out;
  for (const Irregularity& x : report.irregularities)
    for (const Suspect& s : x.suspects) {
      if (s.rank) out.insert(*s.rank);
      out.insert(s.ranks.begin(), s.ranks.end());
    }
  return out;
}

double total(const CommSteps::Row& row) {
  double sum = 0;
  for (const float ms : row.excess_ms)
    if (std::isfinite(ms) && ms > 0) sum += static_cast<double>(ms);
  return sum;
}

}  // namespace

std::vector<StepBin> bin_steps(const Report& report, size_t columns) {
  const CommSteps& comm = report.comm;
  const size_t n = std::min(columns, comm.steps.size());
  std::vector<StepBin> out(n);
  for (size_t b = 0; b < n; ++b) {
    StepBin& bin = out[b];
    bin.first = b * comm.steps.size() / n;
    bin.end = (b + 1) * comm.steps.size() / n;
    for (size_t i = bin.first; i < bin.end; ++i) {
      bin.slow = bin.slow || is_slow(report, comm.steps[i]);
      const double ms = value_at(comm.step_ms, i);
      if (ms < bin.step_ms) continue;
      bin.step_ms = ms;
      bin.without_ms = std::min(ms, i < comm.without_ms.size() ? value_at(comm.without_ms, i) : ms);
    }
  }
  return out;
}

std::string steps_of(const CommSteps& comm, const StepBin& bin) {
  const int64_t first = comm.steps[bin.first], last = comm.steps[bin.end - 1];
  return first == last ? fmt::format("{}", first) : fmt::format("{}-{}", first, last);
}

std::vector<HeatRow> heat_rows(const Report& report, std::span<const StepBin> bins, size_t rows_max) {
  const std::set<uint32_t> suspects = suspected_ranks(report);
  std::vector<HeatRow> out;
  for (const CommSteps::Row& row : report.comm.rows) out.push_back({&row, {}, suspects.contains(row.rank)});
  std::stable_sort(out.begin(), out.end(), [](const HeatRow& a, const HeatRow& b) {
    if (a.suspect != b.suspect) return a.suspect;
    return total(*a.row) > total(*b.row);
  });
  if (out.size() > rows_max) out.resize(rows_max);
  std::stable_sort(out.begin(), out.end(),
                   [](const HeatRow& a, const HeatRow& b) { return a.row->rank < b.row->rank; });
  for (HeatRow& row : out)
    for (const StepBin& bin : bins) {
      double most = std::numeric_limits<double>::quiet_NaN();
      for (size_t i = bin.first; i < std::min(bin.end, row.row->excess_ms.size()); ++i) {
        const auto ms = static_cast<double>(row.row->excess_ms[i]);
        if (std::isfinite(ms) && !(ms <= most)) most = ms;
      }
      row.excess_ms.push_back(most);
    }
  return out;
}

double most_excess(std::span<const HeatRow> rows) {
  double most = 0;
  for (const HeatRow& row : rows)
    for (const double ms : row.excess_ms)
      if (std::isfinite(ms)) most = std::max(most, ms);
  return most;
}

int shade(double value, double most) {
  if (!(value > 0) || !(most > 0)) return 0;
  return static_cast<int>(std::upper_bound(kShadeShares.begin(), kShadeShares.end(), value / most) -
                          kShadeShares.begin());
}

std::vector<std::string> chain_sentences(const Irregularity& x) {
  std::vector<std::string> out;
  for (size_t i = 0; i < x.chain.size(); ++i) {
    const ChainLink& link = x.chain[i];
    std::optional<uint32_t> late;
    if (i + 1 < x.chain.size())
      late = x.chain[i + 1].rank;
    else if (!x.suspects.empty())
      late = x.suspects[0].rank;
    std::string line =
        fmt::format("rank {} waited {} in {} {}", link.rank, milliseconds(link.wait_ms), link.op, link.seq);
    if (link.comm) line += fmt::format(" of group {:x}", link.comm);
    if (late && *late != link.rank) line += fmt::format(" for rank {}", *late);
    out.push_back(std::move(line));
  }
  return out;
}

std::string milliseconds(double ms) {
  if (!std::isfinite(ms)) return "? ms";
  if (ms >= 10'000) return fmt::format("{:.1f} s", ms / 1000);
  return ms >= 10 ? fmt::format("{:.0f} ms", ms) : fmt::format("{:.1f} ms", ms);
}

std::string rank_place(const Suspect& s) {
  if (!s.rank) return place(s);
  return describe_rank(*s.rank, {s.host, s.device});
}

}  // namespace culprit::cli
