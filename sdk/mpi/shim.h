/* What lies between a program's calls of MPI and MPI itself: communicators, and requests that are under way.
 *
 * Communicators have an id that is alike on all of their ranks without a message: a hash of the members'
 * world ranks in order, and how many communicators of exactly these members this process has made before.
 * All members make each of them, and in one order, since making one is collective. With 64 bits, 100,000
 * communicators of a job give two the same id once in four billion jobs.
 *
 * Threads: as the program's. Nothing here sends a message, and nothing allocates but where a communicator is
 * made. What finds no room is dropped and counted. */
#ifndef CULPRIT_MPI_SHIM_H
#define CULPRIT_MPI_SHIM_H

#include "tracer.h"
/* Behind ring.h, which wants to come before headers of the system. */
#include <mpi.h>

typedef struct shim_comm {
  uint64_t id;
  uint64_t collectives; /* so far */
  uint32_t size, rank;
  uint8_t group;
  uint32_t* members; /* world ranks */
  uint32_t* pairs;   /* sent to, received from each rank */
} shim_comm;

/* After MPI was initialised, and before it is finalised. */
void shim_start(int thread_level);
void shim_stop(void);
int shim_on(void);

/* NULL: not traced (an intercommunicator, members outside of MPI_COMM_WORLD). A communicator that is met for
 * the first time is made known here. */
shim_comm* shim_comm_of(MPI_Comm comm);
void shim_comm_named(MPI_Comm comm, const char* name);

/* A collective operation, or one with the rank `peer` of the communicator: all but its times. 0: not
 * traced. */
int shim_describe(culprit_record* record, shim_comm* comm, int op, uint64_t bytes);
int shim_describe_pair(culprit_record* record, shim_comm* comm, int op, int peer);

/* Entered, and left. */
void shim_enter(culprit_record* record);
void shim_leave(culprit_record* record);

/* A nonblocking operation. Its span is the call that waited for it: what a program does between posting and
 * waiting is its own work, and an operation that covered it would hide who is slow. */
typedef struct shim_pending {
  uint64_t handle;       /* of the request, or of the message */
  culprit_record record; /* end_ns: when the message was matched, until its receive is waited for */
  uint64_t own_ns;       /* the program's own work between the matching and that wait */
  shim_comm* any_source; /* a receive whose sender is known at its end */
  shim_comm* again;      /* a persistent request's communicator */
  int peer;              /* a persistent request's, in `again` */
  uint16_t next;
  uint8_t idle; /* a persistent request that is not started */
} shim_pending;

void shim_post(MPI_Request request, const culprit_record* record, shim_comm* any_source);

/* A message that a receive will take; `record` with start_ns 0 where nothing has waited for it yet, else with
 * the span of that wait. Then the receive, which blocks (shim_waited, shim_done) or is posted. */
void shim_matched(MPI_Message message, const culprit_record* record);
uint16_t shim_take_message(MPI_Message message, uint64_t bytes);
void shim_waited(uint16_t taken);
void shim_posted(uint16_t taken, MPI_Request request);

/* A persistent request: made, before each start, and about to be freed. */
void shim_persistent(MPI_Request request, MPI_Comm comm, int op, int peer, uint64_t bytes);
void shim_started(MPI_Request request);
void shim_forget(MPI_Request request);

/* Takes what is known of a request that the caller is about to wait for, or asks for, as entered; 0:
 * nothing. */
uint16_t shim_take(MPI_Request request);
int shim_wants_status(uint16_t taken);
/* It is over; `status` may be NULL. Or it is not, and stays known. */
void shim_done(uint16_t taken, const MPI_Status* status);
void shim_put_back(uint16_t taken);

#endif
