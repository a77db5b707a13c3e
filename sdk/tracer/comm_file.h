/* Writes records to a .comm file (daemon/docs/formats.md section 3), for jobs without a daemon. Rings are in
 * the memory of the process, and a separate thread writes their records every 20 ms. So push never waits for
 * a disk; a stuck disk costs records, which are counted. A killed process loses unwritten records. A process
 * without records for five seconds writes its joins again, with the time: the trace of a hang shows that it
 * is alive. */
#ifndef CULPRIT_COMM_FILE_H
#define CULPRIT_COMM_FILE_H

#include <culprit/ring.h>

typedef struct comm_file_options {
  const char* folder;
  const char* tracer;
  const char* job;
} comm_file_options;

/* Opens the file and starts the thread. A failure is reported once on standard error. */
void comm_file_start(const comm_file_options* options);

/* Whether records go to a file, also if it could not be created. */
int comm_file_wanted(void);

/* A ring of the calling thread that the writing thread drains, or NULL. */
culprit_ring* comm_file_ring(const culprit_ring_options* options);

/* The thread of `ring` ends. Returns 1 if it is one of these rings. */
int comm_file_give_back(culprit_ring* ring);

/* Dropped records of returned rings, and records that the file did not take. */
uint64_t comm_file_dropped(void);

void comm_file_finish(void);

#endif
