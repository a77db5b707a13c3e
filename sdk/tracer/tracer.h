/* Shared by the tracers: identity of the process, a ring per thread with records, the step, and kinds of
 * groups by name. Each tracer has its own copy (no symbol is exported).
 *
 * Records go to rings that the host's daemon drains (culprit/ring.h). With CULPRIT_COMM_DIR, a thread of the
 * tracer writes them to <CULPRIT_COMM_DIR>/<host>-<pid>-<tracer>-<start>.comm instead, <start> in nanoseconds
 * since the Unix epoch, for `culprit diagnose` without a daemon. The environment, read once by tracer_start:
 *   CULPRIT_RINGS     folder of rings (CULPRIT_RING_FOLDER)
 *   CULPRIT_COMM_DIR  folder of .comm files, created if missing
 *   CULPRIT_JOB       the job; else SLURM_JOB_ID; else the daemon determines it
 *
 * The job never waits for a reader and never fails because of one: records without room are dropped and
 * counted. Threads: any. tracer_start and tracer_finish each act once. */
#ifndef CULPRIT_TRACER_H
#define CULPRIT_TRACER_H

#include <culprit/ring.h>

#ifdef __cplusplus
extern "C" {
#endif

/* As the launcher numbers processes (torchrun, Open MPI, Slurm, PMI); CULPRIT_UNKNOWN without a launcher. */
typedef struct tracer_launch {
  uint32_t rank, size;
  uint32_t device; /* local index of the process's GPU */
} tracer_launch;
tracer_launch tracer_launched(void);

typedef struct tracer_options {
  const char* name;  /* in the names of .comm files */
  uint32_t rank;     /* global, or CULPRIT_UNKNOWN */
  uint32_t device;   /* local index, or CULPRIT_UNKNOWN */
  uint32_t capacity; /* of each ring, a power of two */
} tracer_options;

/* Only the first call counts. */
void tracer_start(const tracer_options* options);

/* 1: taken; 0: dropped and counted. The first record of a thread creates its ring: some 100 us, once. */
int tracer_push(const culprit_record* record);

/* Records dropped so far. */
uint64_t tracer_dropped(void);
void tracer_count_dropped(void);

/* The step of records from now on. */
void tracer_set_step(uint32_t step);
uint32_t tracer_step(void);

/* With CULPRIT_COMM_DIR: writes pushed records to the file before it returns, but waits at most two seconds.
 * */
void tracer_finish(void);

/* The kind of a group, from its name in a framework. */
uint8_t tracer_group_of(const char* name);

#ifdef __cplusplus
}
#endif
#endif
