#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include "model/rank_list.h"

using namespace culprit;

namespace {
struct Case {
  std::vector<uint32_t> ranks;
  size_t runs;
};
std::ostream& operator<<(std::ostream& out, const Case& c) { return out << c.ranks.size() << " ranks"; }
const Case kCases[] = {
    {{}, 0}, {{7}, 1}, {{0, 1, 2, 3}, 1}, {{3, 11, 19, 27}, 1}, {{0, 1, 5, 6}, 2}, {{0, 2, 3, 9, 100}, 3}};
}  // namespace

BOOST_DATA_TEST_CASE(gives_back_the_ranks_it_was_made_of_in_few_runs, boost::unit_test::data::make(kCases),
                     c) {
  const RankList list(c.ranks);
  BOOST_TEST((list.all() == c.ranks));
  BOOST_TEST(list.size() == c.ranks.size());
  BOOST_TEST(list.empty() == c.ranks.empty());
  BOOST_TEST(list.runs().size() == c.runs);
  for (size_t i = 0; i < c.ranks.size(); ++i) BOOST_TEST(list.at(i).value() == c.ranks[i]);
  BOOST_TEST(!list.at(c.ranks.size()).has_value());
}

BOOST_AUTO_TEST_CASE(lists_of_the_same_ranks_are_one_key) {
  BOOST_TEST((RankList{0, 1, 2} == RankList(std::vector<uint32_t>{0, 1, 2})));
  BOOST_TEST((RankList{0, 1, 2} < RankList{0, 1, 3} || RankList{0, 1, 3} < RankList{0, 1, 2}));
}
