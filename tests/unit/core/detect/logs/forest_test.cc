#include "core/detect/logs/forest.h"

#include <boost/test/unit_test.hpp>

using culprit::detect::isolation_forest;

namespace {
std::vector<std::vector<double>> cloud(size_t rows, size_t columns) {
  std::vector<std::vector<double>> out(rows, std::vector<double>(columns));
  uint64_t state = 42;
  for (auto& row : out)
    for (double& v : row)
      v = static_cast<double>((state = state * 6364136223846793005u + 1442695040888963407u) >> 40) / 1e7;
  return out;
}
}  // namespace

BOOST_AUTO_TEST_CASE(the_row_that_is_an_outlier_scores_highest_and_by_its_column) {
  auto rows = cloud(64, 10);
  rows[17][3] += 20;
  const auto result = isolation_forest(rows, {}, 0.5);
  for (size_t r = 0; r < rows.size(); ++r)
    if (r != 17) BOOST_TEST(result.score[r] < result.score[17]);
  for (size_t c = 0; c < 10; ++c)
    if (c != 3) BOOST_TEST(result.attribution[17][c] < result.attribution[17][3]);
}

BOOST_AUTO_TEST_CASE(the_same_seed_gives_the_same_scores) {
  const auto rows = cloud(40, 5);
  BOOST_TEST(isolation_forest(rows, {}, 0.5).score == isolation_forest(rows, {}, 0.5).score,
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(too_few_or_equal_rows_are_ordinary) {
  BOOST_TEST(isolation_forest({}, {}, 0.5).score.empty());
  BOOST_TEST(isolation_forest({{1, 2}}, {}, 0.5).score.at(0) == 0.5);
  const auto equal = isolation_forest(std::vector<std::vector<double>>(20, {1, 1}), {}, 0.9);
  for (double s : equal.score) BOOST_TEST(s <= 0.6);
}
