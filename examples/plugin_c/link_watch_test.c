/* The test of link_watch: link_watch_test ./link_watch.so. It needs no daemon. */
#include <culprit/plugin_test.h>

static const int64_t SECOND = 1000000000;

int main(int argc, char** argv) {
  const char* options[] = {"limit=2", NULL};
  culprit_test* test = culprit_test_open(argc > 1 ? argv[1] : "./link_watch.so", options);
  for (int i = 0; i < 2; ++i) culprit_test_line(test, 60 * SECOND, "link 7 retrained");
  culprit_test_line(test, 60 * SECOND, "link 7 is up");
  CULPRIT_TEST_CHECK(culprit_test_count(test) == 0);

  for (int i = 0; i < 5; ++i) culprit_test_line(test, 61 * SECOND, "link 7 retrained");
  CULPRIT_TEST_CHECK(culprit_test_count(test) == 1);
  CULPRIT_TEST_CHECK(culprit_test_count_of(test, "example.link_retrains", CULPRIT_RAISED) == 1);
  CULPRIT_TEST_CHECK(culprit_test_value(culprit_test_finding(test, 0), "retrains_per_minute") == 3);

  culprit_test_tick(test, 100 * SECOND);
  CULPRIT_TEST_CHECK(culprit_test_count(test) == 1);
  culprit_test_tick(test, 200 * SECOND);
  CULPRIT_TEST_CHECK(culprit_test_count_of(test, "example.link_retrains", CULPRIT_CLEARED) == 1);
  culprit_test_close(test);
  puts("link_watch: ok");
  return 0;
}
