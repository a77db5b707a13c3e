/* Communicators of NCCL: their ranks in the job, and their operation counters. Static memory, except the
 * counters of pairs, which are allocated when a communicator is created. Any thread. */
#ifndef CULPRIT_NCCL_COMMS_H
#define CULPRIT_NCCL_COMMS_H

#include "track.h"

/* Mapping from ranks of a communicator to ranks of the job. */
enum numbering { NUMBERS_UNKNOWN, NUMBERS_SAME, NUMBERS_GIVEN, NUMBERS_STRIDE };

struct nccl_comm {
  int state; /* enum comm_state of comms.c */
  int bound;
  uint64_t id;
  uint32_t size, rank;
  uint32_t global; /* in the job, or CULPRIT_UNKNOWN: then nothing is recorded */
  uint32_t stride; /* NUMBERS_STRIDE */
  uint8_t group;
  uint8_t numbering;
  const uint32_t* members; /* NUMBERS_GIVEN */
  uint64_t collectives;    /* so far */
  uint32_t* pairs;         /* sent to, received from each rank */
  uint32_t pair_count;
  int64_t shift; /* from the GPU's clock to the host's; comm_time */
};

/* `timer` of the communicator's GPU as a time of the host. */
uint64_t comm_time(nccl_comm* comm, uint64_t timer);

/* Rank in the job, or CULPRIT_UNKNOWN. */
uint32_t comm_rank_of_job(const nccl_comm* comm, uint32_t rank);

uint32_t comm_device(void);

uint16_t comm_index(const nccl_comm* comm);
nccl_comm* comm_at(uint16_t index);
/* Whether it is free: it has no pending operation. */
void comm_release(nccl_comm* comm);

#endif
