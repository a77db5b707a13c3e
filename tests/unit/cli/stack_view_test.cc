#include "cli/stack_view.h"

#include <boost/test/unit_test.hpp>

using namespace culprit;
using namespace culprit::cli;

namespace {

std::vector<StackCluster> two_clusters() {
  StackCluster most{{"c10d.py:all_reduce:1", "train.py:step:120", "train.py:<module>:40"}, {}, true};
  for (uint32_t r = 0; r < 64; ++r)
    if (r != 11) most.ranks.push_back(r);
  return {most, {{"loader.py:<next>:7", "train.py:step:120", "train.py:<module>:40"}, {11}, false}};
}

}  // namespace

BOOST_AUTO_TEST_SUITE(stack_view)

BOOST_AUTO_TEST_CASE(the_text_joins_chains_and_begins_with_what_differs) {
  BOOST_TEST(stack_tree_text(two_clusters()) ==
             "[0-63] 64 ranks\n"
             "  train.py:<module>:40\n"
             "  train.py:step:120\n"
             "  [11] 1 rank  << differs\n"
             "    loader.py:<next>:7\n"
             "  [0-10,12-63] 63 ranks\n"
             "    c10d.py:all_reduce:1\n");
}

BOOST_AUTO_TEST_CASE(control_characters_of_a_dump_reach_no_terminal) {
  BOOST_TEST(stack_tree_text(std::vector<StackCluster>{{{"a\x1b[2J"}, {0}, true}}).find('\x1b') ==
             std::string::npos);
}

BOOST_AUTO_TEST_CASE(no_stacks_give_no_text) {
  BOOST_TEST(stack_tree_text(std::vector<StackCluster>()).empty());
}

BOOST_AUTO_TEST_SUITE_END()
