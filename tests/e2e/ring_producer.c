/* A training process as the end-to-end tests want it: ring_producer FOLDER JOB RANK COUNT PER_SECOND. Pushes
 * COUNT records, numbered in `seq` with a checksum in `bytes`, and tells what the ring refused: a line "FIRST
 * COUNT" for each run of numbers that were dropped, then "end". */
#include "culprit/ring.h"

#include <stdlib.h>

#define CHECK 0x9e3779b97f4a7c15u
#define BATCH 64u /* pushed between two looks at the clock */

/* Sleeps until `number` records may have been pushed. */
static void pace(uint64_t began, uint64_t number, uint64_t per_second) {
  const uint64_t due = began + number * 1000000000u / per_second;
  const uint64_t now = culprit_now_ns();
  if (due > now) {
    struct timespec pause;
    pause.tv_sec = (time_t)((due - now) / 1000000000u);
    pause.tv_nsec = (long)((due - now) % 1000000000u);
    nanosleep(&pause, NULL);
  }
}

int main(int count, char** arguments) {
  char error[256];
  culprit_ring_options options = {sizeof options, NULL, NULL, CULPRIT_UNKNOWN, CULPRIT_UNKNOWN, 4096};
  culprit_record record = culprit_record_of(CULPRIT_ALL_REDUCE, CULPRIT_DP);
  culprit_ring* ring;
  uint64_t i, records, per_second, began, first_dropped = 0, dropped = 0;
  if (count != 6) return 2;
  options.folder = arguments[1];
  options.job = arguments[2];
  options.rank = record.rank = (uint32_t)strtoul(arguments[3], NULL, 10);
  records = strtoull(arguments[4], NULL, 10);
  per_second = strtoull(arguments[5], NULL, 10);
  ring = culprit_ring_create(&options, error, sizeof error);
  if (!ring) {
    fprintf(stderr, "ring_producer: %s\n", error);
    return 1;
  }
  began = culprit_now_ns();
  for (i = 0; i < records; ++i) {
    if (i % BATCH == 0) pace(began, i, per_second);
    record.seq = i;
    record.bytes = i * CHECK;
    record.start_ns = record.end_ns = began + i;
    if (culprit_ring_push(ring, &record)) {
      if (dropped) printf("%llu %llu\n", (unsigned long long)first_dropped, (unsigned long long)dropped);
      dropped = 0;
    } else if (dropped++ == 0) {
      first_dropped = i;
    }
  }
  if (dropped) printf("%llu %llu\n", (unsigned long long)first_dropped, (unsigned long long)dropped);
  printf("end\n");
  culprit_ring_close(ring);
  return 0;
}
