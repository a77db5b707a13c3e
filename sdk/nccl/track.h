/* State between the calls of NCCL: communicators, pending operations, and their channels.
 *
 * All of it is in static memory. A pending operation has a slot of a slab. Its handle, which NCCL keeps, is
 * the slot's number and generation; each use changes the generation, so that a late or repeated stop is
 * recognised and counted. A slot that NCCL never ends is reused after one round through the slab.
 *
 * Threads: any. Threads of the program begin operations, NCCL's proxy threads report channels. A thread
 * locks a slot for some instructions to change it. A thread that finds it locked drops and counts its event;
 * no thread waits. */
#ifndef CULPRIT_NCCL_TRACK_H
#define CULPRIT_NCCL_TRACK_H

#include <stdint.h>

#include "tracer.h"

typedef struct nccl_comm nccl_comm;

/* Of a communicator at init; zeroes for version 3. */
typedef struct comm_options {
  const char* name; /* may be NULL */
  uint64_t id;
  uint32_t size, rank; /* rank within the communicator */
} comm_options;

/* NULL if there are too many, which is counted. */
nccl_comm* comm_open(const comm_options* options);
/* Version 3 has these with each operation. Only the first call counts. */
void comm_bind(nccl_comm* comm, const comm_options* options);
/* Ends tracking: records operations that were seen to end; the others stay unfinished. */
void comm_close(nccl_comm* comm);

typedef struct nccl_operation {
  const char* function;
  const char* datatype;
  uint64_t count;
  int p2p;
  uint32_t peer;    /* of p2p: rank within the communicator */
  uint8_t channels; /* that will report; 0: unknown */
} nccl_operation;

/* Returns a handle, or NULL if untracked. */
void* operation_begin(nccl_comm* comm, const nccl_operation* operation);

/* One channel of an operation. `timer`: on the GPU's clock; 0: none, the host's time is used. */
void* channel_begin(void* operation, uint8_t channel, uint64_t timer);
void channel_stamp(void* channel, uint64_t timer);
void channel_end(void* channel);

/* Declares the job's ranks of a communicator with other numbers, before it is created. */
int group_members(uint8_t kind, const uint32_t* ranks, uint32_t count);

typedef struct track_counts {
  uint64_t operations; /* tracked */
  uint64_t lost;       /* never ended, or without slot, communicator, rank or peer */
  uint64_t late;       /* calls for ended operations */
} track_counts;
track_counts track_counted(void);

#endif
