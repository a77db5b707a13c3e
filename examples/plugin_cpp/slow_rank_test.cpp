/* The test of slow_rank: slow_rank_test ./slow_rank.so. It needs no daemon. */
#include <culprit/plugin_test.h>

static void step(culprit_test* test, double of_rank_3) {
  for (int rank = 0; rank < 8; ++rank) {
    culprit_test_metric(test, rank, 0, "tokens_per_s", rank == 3 ? of_rank_3 : 1000 + rank);
  }
  culprit_test_tick(test, 0);
}

int main(int argc, char** argv) {
  culprit_test* test = culprit_test_open(argc > 1 ? argv[1] : "./slow_rank.so", NULL);
  step(test, 900);
  CULPRIT_TEST_CHECK(culprit_test_count(test) == 0);
  step(test, 400);
  step(test, 600);  // between the two limits
  CULPRIT_TEST_CHECK(culprit_test_count(test) == 1);
  CULPRIT_TEST_CHECK(culprit_test_finding(test, 0)->rank == 3);
  CULPRIT_TEST_CHECK(culprit_test_count_of(test, "example.slow_rank", CULPRIT_RAISED) == 1);
  step(test, 1000);
  CULPRIT_TEST_CHECK(culprit_test_count_of(test, "example.slow_rank", CULPRIT_CLEARED) == 1);
  culprit_test_close(test);
  puts("slow_rank: ok");
  return 0;
}
