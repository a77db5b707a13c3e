/* Records into a .comm file (FORMATS.md section 3), for jobs without a daemon. Rings lie in memory of the
 * process, and a thread of its own writes what it finds in them every 20 ms: whoever pushes never waits for a
 * disk, and a disk that stands still costs records, which are counted. A process that is killed loses what
 * was not written yet. One that records nothing for five seconds writes its joins again, with the time: the
 * trace of a hang shows that the process lived on. */
#ifndef CULPRIT_COMM_FILE_H
#define CULPRIT_COMM_FILE_H

#include <culprit/ring.h>

typedef struct comm_file_options {
  const char* folder;
  const char* tracer;
  const char* job;
} comm_file_options;

/* Opens the file and starts the thread. Whatever fails is told once on standard error. */
void comm_file_start(const comm_file_options* options);

/* Whether records are meant for a file: also where it could not be made. */
int comm_file_wanted(void);

/* A ring of the calling thread that the writing thread drains, or NULL. */
culprit_ring* comm_file_ring(const culprit_ring_options* options);

/* The thread of `ring` ends: 1 where it was one of these. */
int comm_file_give_back(culprit_ring* ring);

/* Of rings that were given back, and records that the file did not take. */
uint64_t comm_file_dropped(void);

void comm_file_finish(void);

#endif
