/* State between a program's calls of MPI and MPI itself: communicators, and pending requests.
 *
 * A communicator has an id that is equal on all its ranks without a message: a hash of the members' world
 * ranks in order, and of the number of earlier communicators with exactly these members. Creation is
 * collective, so all members create them in one order. With 64 bits, two of 100,000 communicators of a job
 * collide once in four billion jobs.
 *
 * Threads: the program's. No messages are sent, and memory is allocated only when a communicator is created.
 * Records without room are dropped and counted. */
#ifndef CULPRIT_MPI_SHIM_H
#define CULPRIT_MPI_SHIM_H

#include "tracer.h"
/* After ring.h, which must precede system headers. */
#include <mpi.h>

typedef struct shim_comm {
  uint64_t id;
  uint64_t collectives; /* so far */
  uint32_t size, rank;
  uint8_t group;
  uint32_t* members; /* world ranks */
  uint32_t* pairs;   /* sent to, received from each rank */
} shim_comm;

/* After MPI_Init, and before MPI_Finalize. */
void shim_start(int thread_level);
void shim_stop(void);
int shim_on(void);

/* NULL: not traced (an intercommunicator, members outside of MPI_COMM_WORLD). Registers a new communicator.
 * */
shim_comm* shim_comm_of(MPI_Comm comm);
void shim_comm_named(MPI_Comm comm, const char* name);

/* Prepares the record of a collective, or of an operation with rank `peer` of the communicator, without
 * times. 0: not traced. */
int shim_describe(culprit_record* record, shim_comm* comm, int op, uint64_t bytes);
int shim_describe_pair(culprit_record* record, shim_comm* comm, int op, int peer);

/* Entry and exit. */
void shim_enter(culprit_record* record);
void shim_leave(culprit_record* record);

/* A nonblocking operation. Its span is the call that waited for it. Time between posting and waiting is the
 * program's own work; a span over it would hide the slow rank. */
typedef struct shim_pending {
  uint64_t handle;       /* of the request, or of the message */
  culprit_record record; /* end_ns: time of the match, until the receive is waited for */
  uint64_t own_ns;       /* the program's own work between match and wait */
  shim_comm* any_source; /* a receive with a sender known only at its end */
  shim_comm* again;      /* a persistent request's communicator */
  int peer;              /* a persistent request's, in `again` */
  uint16_t next;
  uint8_t idle; /* a persistent request that is not started */
} shim_pending;

void shim_post(MPI_Request request, const culprit_record* record, shim_comm* any_source);

/* A matched message; `record` has start_ns 0 if no call waited for it, else the span of that wait. Its
 * receive blocks (shim_waited, shim_done) or is posted. */
void shim_matched(MPI_Message message, const culprit_record* record);
uint16_t shim_take_message(MPI_Message message, uint64_t bytes);
void shim_waited(uint16_t taken);
void shim_posted(uint16_t taken, MPI_Request request);

/* A persistent request: at its creation, before each start, and before it is freed. */
void shim_persistent(MPI_Request request, MPI_Comm comm, int op, int peer, uint64_t bytes);
void shim_started(MPI_Request request);
void shim_forget(MPI_Request request);

/* Takes the pending entry of a request at the start of a wait or test. 0: none. */
uint16_t shim_take(MPI_Request request);
int shim_wants_status(uint16_t taken);
/* The request ended (`status` may be NULL), or it did not and stays pending. */
void shim_done(uint16_t taken, const MPI_Status* status);
void shim_put_back(uint16_t taken);

#endif
