/* What the tracers share: who this process is, a ring for each thread that has records, the step, and kinds
 * of groups by their names. Each tracer holds a copy of its own (nothing here is exported).
 *
 * Records go to rings that the host's daemon drains (culprit/ring.h). Where CULPRIT_COMM_DIR is set they are
 * written to <CULPRIT_COMM_DIR>/<host>-<pid>-<tracer>-<start>.comm instead, <start> in nanoseconds since the
 * Unix epoch, by a thread of the tracer's own, for `culprit diagnose` without a daemon. The environment, read
 * once by tracer_start:
 *   CULPRIT_RINGS     folder of rings (CULPRIT_RING_FOLDER)
 *   CULPRIT_COMM_DIR  folder of .comm files, made if it is missing
 *   CULPRIT_JOB       the job; else SLURM_JOB_ID; else the daemon finds out
 *
 * The job never waits for who reads, and never fails by it: what finds no room is dropped and counted.
 * Threads: any, but for tracer_start and tracer_finish, each of which does its work once. */
#ifndef CULPRIT_TRACER_H
#define CULPRIT_TRACER_H

#include <culprit/ring.h>

#ifdef __cplusplus
extern "C" {
#endif

/* As the launcher numbers processes (torchrun, Open MPI, Slurm, PMI); CULPRIT_UNKNOWN where none does. */
typedef struct tracer_launch {
  uint32_t rank, size;
  uint32_t device; /* local index of the process' GPU */
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

/* 1: taken; 0: dropped and counted. The first record of a thread makes its ring: some 100 us, once. */
int tracer_push(const culprit_record* record);

/* Records dropped so far. */
uint64_t tracer_dropped(void);
void tracer_count_dropped(void);

/* The step that records are of from now on. */
void tracer_set_step(uint32_t step);
uint32_t tracer_step(void);

/* With CULPRIT_COMM_DIR: what was pushed is in the file when this returns, unless the file takes more than
 * two seconds: then the job goes on without. */
void tracer_finish(void);

/* The kind of a group by the name that a framework gives it. */
uint8_t tracer_group_of(const char* name);

#ifdef __cplusplus
}
#endif
#endif
