/* A training loop that hands its collectives to the daemon of its host, for `culprit` to see who is late:
 *
 *   cc -O2 -I<sdk>/include ring.c -o ring && ./ring [folder]
 *
 * Without a daemon the folder is missing, and the loop runs as it always did. A real job does this in the
 * hook of its communication library, with one ring for each thread that communicates. */
#include <culprit/ring.h>

#include <stdio.h>
#include <stdlib.h>

enum { RANK = 3, RANKS = 8, STEPS = 100, DEVICE = 3 };

/* Stands for the operation itself. */
static void all_reduce(void) {
  volatile int work = 0;
  while (work < 1000) work = work + 1;
}

/* As communicators are made, each rank says that it is a member. */
static void join_world(culprit_ring* ring) {
  culprit_record record = culprit_record_of(CULPRIT_JOIN, CULPRIT_WORLD);
  record.start_ns = record.end_ns = culprit_now_ns();
  record.comm = 1;
  record.rank = RANK;
  record.comm_size = RANKS;
  record.device = DEVICE;
  culprit_ring_push(ring, &record);
}

static void train(culprit_ring* ring) {
  uint32_t step;
  for (step = 0; step < STEPS; ++step) {
    culprit_record record = culprit_record_of(CULPRIT_ALL_REDUCE, CULPRIT_WORLD);
    record.start_ns = culprit_now_ns();
    record.comm = 1;
    record.seq = step;
    record.bytes = 4u << 20;
    record.rank = RANK;
    record.step = step;
    record.comm_size = RANKS;
    record.device = DEVICE;
    culprit_ring_push(ring, &record); /* entered: seen even if it never returns */
    all_reduce();
    record.end_ns = culprit_now_ns();
    culprit_ring_push(ring, &record);
  }
}

int main(int argc, char** argv) {
  char error[256] = "";
  culprit_ring_options options;
  culprit_ring* ring;
  memset(&options, 0, sizeof options);
  options.size = sizeof options;
  options.folder = argc > 1 ? argv[1] : NULL;
  options.job = getenv("SLURM_JOB_ID");
  options.rank = RANK;
  options.device = DEVICE;
  ring = culprit_ring_create(&options, error, sizeof error);
  if (!ring) fprintf(stderr, "not traced: %s\n", error);
  join_world(ring); /* NULL is fine everywhere */
  train(ring);
  printf("%d steps, %llu records dropped\n", STEPS, (unsigned long long)culprit_ring_dropped(ring));
  culprit_ring_close(ring);
  return 0;
}
