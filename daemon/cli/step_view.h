// Communication over steps, prepared for text: the curve of step times within the available columns, slow
// ranks, and chains of waiting. Pure functions of the report; views borrow it.
#pragma once

#include <array>
#include <span>
#include <string>
#include <vector>

#include "model/report.h"

namespace culprit::cli {

// One column: steps [first, end) of CommSteps::steps. Shows the slowest of its steps.
struct StepBin {
  size_t first = 0, end = 0;
  double step_ms = 0, without_ms = 0;
  bool slow = false;  // it contains an irregular step
};
std::vector<StepBin> bin_steps(const Report& report, size_t columns);
// "120", "120-127".
std::string steps_of(const CommSteps& comm, const StepBin& bin);

struct HeatRow {
  const CommSteps::Row* row = nullptr;
  std::vector<double> excess_ms;  // by bin, the maximum; NaN: no data
  bool suspect = false;
};
// Chooses suspects first, then ranks with the largest excess; sorted by rank.
std::vector<HeatRow> heat_rows(const Report& report, std::span<const StepBin> bins, size_t rows_max);
double most_excess(std::span<const HeatRow> rows);
// Shades 1 to 4 start at these shares of the maximum; shade 0 is below.
constexpr std::array<double, 4> kShadeShares{0.05, 0.25, 0.5, 0.75};
int shade(double value, double most);

// "rank 12 waited 310 ms in all_reduce 231 for rank 3", from the end of the step back to the late rank.
std::vector<std::string> chain_sentences(const Irregularity& irregularity);
// "1.8 s", "412 ms", "0.3 ms".
std::string milliseconds(double ms);
// "rank 3 (node-0, GPU 3)".
std::string rank_place(const Suspect& suspect);

}  // namespace culprit::cli
