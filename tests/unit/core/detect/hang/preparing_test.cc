// Work before the training, by its lines and bars.
#include "core/detect/hang/preparing.h"

#include <boost/test/unit_test.hpp>

using namespace culprit;
using namespace culprit::hang;

BOOST_AUTO_TEST_SUITE(preparing)

BOOST_AUTO_TEST_CASE(bars_of_datasets_are_preparation) {
  for (const char* text : {"Map:  61%|######    | 61000/100000 [12:01<07:41, 84.50 examples/s]",
                           "Filter (num_proc=16):   9%|#  | 9/100 [00:01<00:10, 9.0 examples/s]",
                           "Running tokenizer on dataset:  30%|### | 3/10 [01:00<02:20]",
                           "Grouping texts in chunks of 2048:  30%|### | 3/10 [01:00<02:20]"})
    BOOST_TEST(names_preparation(text), text);
  for (const char* text :
       {"mAP: 61.2", "roadmap: 40%|####  | 4/10", "step 12 loss 2.0", "Train:  30%|### | 3/10 [01:00<02:20]"})
    BOOST_TEST(!names_preparation(text), text);
}

BOOST_AUTO_TEST_CASE(a_bar_says_how_far_its_work_is_and_how_long_it_took) {
  const Preparing p = read_preparing(
      "[rank0]: Map (num_proc=4):  61%|######    | 61000/100000 [1:12:01<07:41, 84.50 examples/s]", 0u);
  BOOST_TEST((p.name == "Map" && p.percent == 61 && p.rank == 0u));
  BOOST_TEST(p.elapsed_ns == 4321 * kNsPerSecond);
  BOOST_TEST(p.doing() == "preparing data");
  BOOST_TEST(p.lasts(3600 * kNsPerSecond));
  BOOST_TEST(!p.lasts(10'000 * kNsPerSecond));
  BOOST_TEST(read_preparing("Tokenizing: 5%|", {}).doing() == "tokenizing");
}

BOOST_AUTO_TEST_CASE(a_bar_that_is_full_is_no_work_that_goes_on) {
  BOOST_TEST(read_preparing("Map: 100%|######| 10/10 [30:00<00:00, 1 examples/s]", {}).percent == -1);
  BOOST_TEST(read_preparing("Preprocessing in 8.98 s", {}).percent == -1);
}

BOOST_AUTO_TEST_SUITE_END()
