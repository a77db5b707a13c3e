/* What goes on between the calls of NCCL: communicators, operations that are under way, and their channels.
 *
 * All of it lies in static memory. An operation has a slot of a slab for as long as it is under way; its
 * handle, which NCCL keeps, is the slot's number with the slot's generation, and each use changes the
 * generation: a stop that comes too late, or twice, finds another one and is counted. A slot that NCCL never
 * ends is taken again when the slab has gone round.
 *
 * Threads: any. NCCL's users begin operations, its proxy threads tell of channels. A slot is held for some
 * instructions by whoever changes it; who finds it held drops what he had and counts it, nobody waits. */
#ifndef CULPRIT_NCCL_TRACK_H
#define CULPRIT_NCCL_TRACK_H

#include <stdint.h>

#include "tracer.h"

typedef struct nccl_comm nccl_comm;

/* Of a communicator at init; zeroes where version 3 tells nothing. */
typedef struct comm_options {
  const char* name; /* may be NULL */
  uint64_t id;
  uint32_t size, rank; /* rank within the communicator */
} comm_options;

/* NULL where there are too many, which is counted. */
nccl_comm* comm_open(const comm_options* options);
/* Version 3 tells with each operation. Only the first call counts. */
void comm_bind(nccl_comm* comm, const comm_options* options);
/* Ends what is under way: what has been seen to end is recorded, the rest stays unfinished. */
void comm_close(nccl_comm* comm);

typedef struct nccl_operation {
  const char* function;
  const char* datatype;
  uint64_t count;
  int p2p;
  uint32_t peer;    /* of p2p: rank within the communicator */
  uint8_t channels; /* that will report; 0: not known */
} nccl_operation;

/* A handle, or NULL where it is not followed. */
void* operation_begin(nccl_comm* comm, const nccl_operation* operation);

/* One channel of an operation. `timer` is of the GPU's clock; 0: none, the host's time is taken. */
void* channel_begin(void* operation, uint8_t channel, uint64_t timer);
void channel_stamp(void* channel, uint64_t timer);
void channel_end(void* channel);

/* Where a communicator's ranks are not numbered as the job's: which ranks they are. Before it is made. */
int group_members(uint8_t kind, const uint32_t* ranks, uint32_t count);

typedef struct track_counts {
  uint64_t operations; /* followed */
  uint64_t lost;       /* never ended, or no slot, communicator, rank or peer for them */
  uint64_t late;       /* calls about operations that were over */
} track_counts;
track_counts track_counted(void);

#endif
