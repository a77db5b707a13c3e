/* libculprit-mpi.so: wrappers of MPI's calls. Each records its entry and exit and calls the library under its
 * other name (PMPI_). Loaded by LD_PRELOAD, or linked before MPI. */
#include "shim.h"

#include <stdarg.h>

#define EXPORT __attribute__((visibility("default")))

static uint64_t sized(MPI_Datatype type, uint64_t count) {
  int size = 0;
  if (type == MPI_DATATYPE_NULL || PMPI_Type_size(type, &size) != MPI_SUCCESS || size < 0) return 0;
  return count * (uint64_t)size;
}

/* From the side with data: with MPI_IN_PLACE the other one, here and below. */
static uint64_t sent(const void* buffer, int count, MPI_Datatype type, int other, MPI_Datatype other_type) {
  return buffer == MPI_IN_PLACE ? sized(other_type, (uint64_t)other) : sized(type, (uint64_t)count);
}

static uint64_t total(MPI_Comm comm, const int* counts, MPI_Datatype type) {
  const shim_comm* known = shim_comm_of(comm);
  uint64_t sum = 0;
  for (uint32_t i = 0; known && counts && i < known->size; ++i) sum += (uint64_t)counts[i];
  return sized(type, sum);
}

static uint64_t own_of(MPI_Comm comm, const int* counts, MPI_Datatype type) {
  const shim_comm* known = shim_comm_of(comm);
  return known && counts ? sized(type, (uint64_t)counts[known->rank]) : 0;
}

/* Like total, with a type per rank. */
static uint64_t total_of_types(MPI_Comm comm, const int* counts, const MPI_Datatype* types) {
  const shim_comm* known = shim_comm_of(comm);
  uint64_t sum = 0;
  for (uint32_t i = 0; known && counts && types && i < known->size; ++i)
    sum += sized(types[i], (uint64_t)counts[i]);
  return sum;
}

static uint64_t by_ranks(MPI_Comm comm, uint64_t bytes) {
  const shim_comm* known = shim_comm_of(comm);
  return known ? bytes * known->size : 0;
}

/* ---- start, end, steps */

EXPORT void culprit_mpi_set_step(uint32_t step) { tracer_set_step(step); }

EXPORT int MPI_Init(int* argc, char*** argv) {
  const int result = PMPI_Init(argc, argv);
  if (result == MPI_SUCCESS) shim_start(MPI_THREAD_SINGLE);
  return result;
}

EXPORT int MPI_Init_thread(int* argc, char*** argv, int required, int* provided) {
  const int result = PMPI_Init_thread(argc, argv, required, provided);
  if (result == MPI_SUCCESS) shim_start(*provided);
  return result;
}

EXPORT int MPI_Finalize(void) {
  shim_stop();
  return PMPI_Finalize();
}

EXPORT int MPI_Abort(MPI_Comm comm, int code) {
  tracer_finish();
  return PMPI_Abort(comm, code);
}

/* MPI reserves levels above 2 for profilers: MPI_Pcontrol(3, step) sets the step; without us it has no
 * effect. */
EXPORT int MPI_Pcontrol(const int level, ...) {
  if (level == 3) {
    va_list more;
    va_start(more, level);
    tracer_set_step((uint32_t)va_arg(more, int));
    va_end(more);
  }
  return MPI_SUCCESS;
}

/* ---- communicators */

#define OF(...) __VA_ARGS__
#define MAKES_COMM(name, parameters, arguments)           \
  EXPORT int MPI_##name(OF parameters, MPI_Comm* made) {  \
    const int result = PMPI_##name(OF arguments, made);   \
    if (result == MPI_SUCCESS) (void)shim_comm_of(*made); \
    return result;                                        \
  }
MAKES_COMM(Comm_create, (MPI_Comm comm, MPI_Group group), (comm, group))
MAKES_COMM(Comm_create_group, (MPI_Comm comm, MPI_Group group, int tag), (comm, group, tag))
MAKES_COMM(Comm_split, (MPI_Comm comm, int color, int key), (comm, color, key))
MAKES_COMM(Comm_split_type, (MPI_Comm comm, int type, int key, MPI_Info info), (comm, type, key, info))
MAKES_COMM(Comm_dup, (MPI_Comm comm), (comm))
MAKES_COMM(Comm_dup_with_info, (MPI_Comm comm, MPI_Info info), (comm, info))
MAKES_COMM(Cart_create, (MPI_Comm comm, int n, const int dims[], const int periods[], int reorder),
           (comm, n, dims, periods, reorder))
MAKES_COMM(Cart_sub, (MPI_Comm comm, const int remain[]), (comm, remain))

EXPORT int MPI_Comm_set_name(MPI_Comm comm, const char* name) {
  shim_comm_named(comm, name);
  return PMPI_Comm_set_name(comm, name);
}

/* ---- collectives, blocking and not. Their size is computed from arguments that are undefined on some ranks
 * of an intercommunicator, so only for traced communicators. */

#define COLLECTIVE(name, iname, op, bytes, parameters, arguments)                          \
  EXPORT int MPI_##name(OF parameters, MPI_Comm comm) {                                    \
    culprit_record record;                                                                 \
    shim_comm* known = shim_comm_of(comm);                                                 \
    const int on = known && shim_describe(&record, known, op, bytes);                      \
    int result;                                                                            \
    if (on) shim_enter(&record);                                                           \
    result = PMPI_##name(OF arguments, comm);                                              \
    if (on) shim_leave(&record);                                                           \
    return result;                                                                         \
  }                                                                                        \
  EXPORT int MPI_##iname(OF parameters, MPI_Comm comm, MPI_Request* request) {             \
    culprit_record record;                                                                 \
    shim_comm* known = shim_comm_of(comm);                                                 \
    const int on = known && shim_describe(&record, known, op, bytes);                      \
    const int result = PMPI_##iname(OF arguments, comm, request);                          \
    if (on) shim_post(result == MPI_SUCCESS ? *request : MPI_REQUEST_NULL, &record, NULL); \
    return result;                                                                         \
  }

COLLECTIVE(Bcast, Ibcast, CULPRIT_BROADCAST, sized(type, (uint64_t)count),
           (void* data, int count, MPI_Datatype type, int root), (data, count, type, root))
COLLECTIVE(Reduce, Ireduce, CULPRIT_REDUCE, sized(type, (uint64_t)count),
           (const void* from, void* to, int count, MPI_Datatype type, MPI_Op how, int root),
           (from, to, count, type, how, root))
COLLECTIVE(Allreduce, Iallreduce, CULPRIT_ALL_REDUCE, sized(type, (uint64_t)count),
           (const void* from, void* to, int count, MPI_Datatype type, MPI_Op how),
           (from, to, count, type, how))
COLLECTIVE(Allgather, Iallgather, CULPRIT_ALL_GATHER, sent(from, n, type, to_n, to_type),
           (const void* from, int n, MPI_Datatype type, void* to, int to_n, MPI_Datatype to_type),
           (from, n, type, to, to_n, to_type))
COLLECTIVE(Allgatherv, Iallgatherv, CULPRIT_ALL_GATHER, own_of(comm, counts, to_type),
           (const void* from, int n, MPI_Datatype type, void* to, const int counts[], const int places[],
            MPI_Datatype to_type),
           (from, n, type, to, counts, places, to_type))
COLLECTIVE(Alltoall, Ialltoall, CULPRIT_ALL_TO_ALL, by_ranks(comm, sent(from, n, type, to_n, to_type)),
           (const void* from, int n, MPI_Datatype type, void* to, int to_n, MPI_Datatype to_type),
           (from, n, type, to, to_n, to_type))
COLLECTIVE(Alltoallv, Ialltoallv, CULPRIT_ALL_TO_ALL,
           from == MPI_IN_PLACE ? total(comm, to_counts, to_type) : total(comm, counts, type),
           (const void* from, const int counts[], const int places[], MPI_Datatype type, void* to,
            const int to_counts[], const int to_places[], MPI_Datatype to_type),
           (from, counts, places, type, to, to_counts, to_places, to_type))
COLLECTIVE(Alltoallw, Ialltoallw, CULPRIT_ALL_TO_ALL,
           from == MPI_IN_PLACE ? total_of_types(comm, to_counts, to_types)
                                : total_of_types(comm, counts, types),
           (const void* from, const int counts[], const int places[], const MPI_Datatype types[], void* to,
            const int to_counts[], const int to_places[], const MPI_Datatype to_types[]),
           (from, counts, places, types, to, to_counts, to_places, to_types))
COLLECTIVE(Reduce_scatter, Ireduce_scatter, CULPRIT_REDUCE_SCATTER, total(comm, counts, type),
           (const void* from, void* to, const int counts[], MPI_Datatype type, MPI_Op how),
           (from, to, counts, type, how))
COLLECTIVE(Reduce_scatter_block, Ireduce_scatter_block, CULPRIT_REDUCE_SCATTER,
           by_ranks(comm, sized(type, (uint64_t)count)),
           (const void* from, void* to, int count, MPI_Datatype type, MPI_Op how),
           (from, to, count, type, how))
COLLECTIVE(Gather, Igather, CULPRIT_GATHER, sent(from, n, type, to_n, to_type),
           (const void* from, int n, MPI_Datatype type, void* to, int to_n, MPI_Datatype to_type, int root),
           (from, n, type, to, to_n, to_type, root))
/* Bytes that a rank receives; an in-place root receives as much as it sends to each. */
COLLECTIVE(Scatter, Iscatter, CULPRIT_SCATTER, sent(to, to_n, to_type, n, type),
           (const void* from, int n, MPI_Datatype type, void* to, int to_n, MPI_Datatype to_type, int root),
           (from, n, type, to, to_n, to_type, root))
COLLECTIVE(Gatherv, Igatherv, CULPRIT_GATHER,
           from == MPI_IN_PLACE ? own_of(comm, counts, to_type) : sized(type, (uint64_t)n),
           (const void* from, int n, MPI_Datatype type, void* to, const int counts[], const int places[],
            MPI_Datatype to_type, int root),
           (from, n, type, to, counts, places, to_type, root))
COLLECTIVE(Scatterv, Iscatterv, CULPRIT_SCATTER,
           to == MPI_IN_PLACE ? own_of(comm, counts, type) : sized(to_type, (uint64_t)to_n),
           (const void* from, const int counts[], const int places[], MPI_Datatype type, void* to, int to_n,
            MPI_Datatype to_type, int root),
           (from, counts, places, type, to, to_n, to_type, root))
/* Records have no operation for these. A rank waits for earlier ranks only, so operations that all ranks
 * leave together would be wrong; a reduction only implies waiting. */
COLLECTIVE(Scan, Iscan, CULPRIT_REDUCE, sized(type, (uint64_t)count),
           (const void* from, void* to, int count, MPI_Datatype type, MPI_Op how),
           (from, to, count, type, how))
COLLECTIVE(Exscan, Iexscan, CULPRIT_REDUCE, sized(type, (uint64_t)count),
           (const void* from, void* to, int count, MPI_Datatype type, MPI_Op how),
           (from, to, count, type, how))

EXPORT int MPI_Barrier(MPI_Comm comm) {
  culprit_record record;
  const int on = shim_describe(&record, shim_comm_of(comm), CULPRIT_BARRIER, 0);
  int result;
  if (on) shim_enter(&record);
  result = PMPI_Barrier(comm);
  if (on) shim_leave(&record);
  return result;
}

EXPORT int MPI_Ibarrier(MPI_Comm comm, MPI_Request* request) {
  culprit_record record;
  const int on = shim_describe(&record, shim_comm_of(comm), CULPRIT_BARRIER, 0);
  const int result = PMPI_Ibarrier(comm, request);
  if (on) shim_post(result == MPI_SUCCESS ? *request : MPI_REQUEST_NULL, &record, NULL);
  return result;
}

/* ---- two ranks */

/* For one peer; 0: MPI_PROC_NULL, or not traced. */
static int describe_pair(culprit_record* record, MPI_Comm comm, int op, int peer, uint64_t bytes) {
  shim_comm* known = shim_comm_of(comm);
  return shim_describe(record, known, op, bytes) && shim_describe_pair(record, known, op, peer);
}

#define SEND(name)                                                                                        \
  EXPORT int MPI_##name(const void* data, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm) { \
    culprit_record record;                                                                                \
    const int on = describe_pair(&record, comm, CULPRIT_SEND, to, sized(type, (uint64_t)count));          \
    int result;                                                                                           \
    if (on) shim_enter(&record);                                                                          \
    result = PMPI_##name(data, count, type, to, tag, comm);                                               \
    if (on) shim_leave(&record);                                                                          \
    return result;                                                                                        \
  }                                                                                                       \
  EXPORT int MPI_I##name(const void* data, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm,  \
                         MPI_Request* request) {                                                          \
    culprit_record record;                                                                                \
    const int on = describe_pair(&record, comm, CULPRIT_SEND, to, sized(type, (uint64_t)count));          \
    const int result = PMPI_I##name(data, count, type, to, tag, comm, request);                           \
    if (on) shim_post(result == MPI_SUCCESS ? *request : MPI_REQUEST_NULL, &record, NULL);                \
    return result;                                                                                        \
  }
/* The nonblocking ones are Isend, Issend, ... */
#define MPI_ISend MPI_Isend
#define MPI_ISsend MPI_Issend
#define MPI_IRsend MPI_Irsend
#define MPI_IBsend MPI_Ibsend
#define PMPI_ISend PMPI_Isend
#define PMPI_ISsend PMPI_Issend
#define PMPI_IRsend PMPI_Irsend
#define PMPI_IBsend PMPI_Ibsend
SEND(Send)
SEND(Ssend)
SEND(Rsend)
SEND(Bsend)

/* A receive from any source has a peer only at its end: recorded then, with its entry time. */
static void leave_any(culprit_record* record, MPI_Comm comm, int result, const MPI_Status* status) {
  if (result == MPI_SUCCESS &&
      shim_describe_pair(record, shim_comm_of(comm), CULPRIT_RECV, status->MPI_SOURCE))
    shim_leave(record);
  else
    tracer_count_dropped();
}

EXPORT int MPI_Recv(void* data, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm,
                    MPI_Status* status) {
  culprit_record record;
  MPI_Status mine;
  const int any = from == MPI_ANY_SOURCE &&
                  shim_describe(&record, shim_comm_of(comm), CULPRIT_RECV, sized(type, (uint64_t)count));
  const int on = !any && describe_pair(&record, comm, CULPRIT_RECV, from, sized(type, (uint64_t)count));
  int result;
  if (any && status == MPI_STATUS_IGNORE) status = &mine;
  if (any) record.start_ns = culprit_now_ns();
  if (on) shim_enter(&record);
  result = PMPI_Recv(data, count, type, from, tag, comm, status);
  if (any) leave_any(&record, comm, result, status);
  if (on) shim_leave(&record);
  return result;
}

EXPORT int MPI_Irecv(void* data, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm,
                     MPI_Request* request) {
  culprit_record record;
  shim_comm* known = shim_comm_of(comm);
  const uint64_t bytes = sized(type, (uint64_t)count);
  const int any = from == MPI_ANY_SOURCE && shim_describe(&record, known, CULPRIT_RECV, bytes);
  const int on = any || describe_pair(&record, comm, CULPRIT_RECV, from, bytes);
  const int result = PMPI_Irecv(data, count, type, from, tag, comm, request);
  if (on) shim_post(result == MPI_SUCCESS ? *request : MPI_REQUEST_NULL, &record, any ? known : NULL);
  return result;
}

/* ---- matched messages, as in mpi4py's comm.recv(). They are counted at the match, because a later receive
 * takes the next message. */

/* Its sender and its number; 0: not traced. */
static int matched(culprit_record* record, MPI_Comm comm, const MPI_Status* status) {
  return shim_describe_pair(record, shim_comm_of(comm), CULPRIT_RECV, status->MPI_SOURCE);
}

EXPORT int MPI_Mprobe(int from, int tag, MPI_Comm comm, MPI_Message* message, MPI_Status* status) {
  culprit_record record;
  MPI_Status mine;
  const int any = from == MPI_ANY_SOURCE && shim_describe(&record, shim_comm_of(comm), CULPRIT_RECV, 0);
  const int on = !any && describe_pair(&record, comm, CULPRIT_RECV, from, 0);
  int result;
  if (any && status == MPI_STATUS_IGNORE) status = &mine;
  if (any) record.start_ns = culprit_now_ns();
  if (on) shim_enter(&record);
  result = PMPI_Mprobe(from, tag, comm, message, status);
  if (result != MPI_SUCCESS) {
    if (on) shim_leave(&record);
    if (any) tracer_count_dropped();
  } else if (on || (any && matched(&record, comm, status))) {
    if (any) shim_enter(&record);
    record.end_ns = culprit_now_ns();
    shim_matched(*message, &record);
  }
  return result;
}

/* It does not wait: only the receive takes time. */
EXPORT int MPI_Improbe(int from, int tag, MPI_Comm comm, int* flag, MPI_Message* message,
                       MPI_Status* status) {
  culprit_record record;
  MPI_Status mine;
  int result;
  if (status == MPI_STATUS_IGNORE) status = &mine;
  result = PMPI_Improbe(from, tag, comm, flag, message, status);
  if (result == MPI_SUCCESS && *flag && shim_describe(&record, shim_comm_of(comm), CULPRIT_RECV, 0) &&
      matched(&record, comm, status))
    shim_matched(*message, &record);
  return result;
}

EXPORT int MPI_Mrecv(void* data, int count, MPI_Datatype type, MPI_Message* message, MPI_Status* status) {
  const uint16_t taken = shim_take_message(*message, sized(type, (uint64_t)count));
  int result;
  shim_waited(taken);
  result = PMPI_Mrecv(data, count, type, message, status);
  shim_done(taken, NULL);
  return result;
}

EXPORT int MPI_Imrecv(void* data, int count, MPI_Datatype type, MPI_Message* message, MPI_Request* request) {
  const uint16_t taken = shim_take_message(*message, sized(type, (uint64_t)count));
  const int result = PMPI_Imrecv(data, count, type, message, request);
  shim_posted(taken, result == MPI_SUCCESS ? *request : MPI_REQUEST_NULL);
  return result;
}

/* ---- persistent requests */

#define SEND_INIT(name)                                                                         \
  EXPORT int MPI_##name##_init(const void* data, int count, MPI_Datatype type, int to, int tag, \
                               MPI_Comm comm, MPI_Request* request) {                           \
    const int result = PMPI_##name##_init(data, count, type, to, tag, comm, request);           \
    if (result == MPI_SUCCESS)                                                                  \
      shim_persistent(*request, comm, CULPRIT_SEND, to, sized(type, (uint64_t)count));          \
    return result;                                                                              \
  }
SEND_INIT(Send)
SEND_INIT(Ssend)
SEND_INIT(Rsend)
SEND_INIT(Bsend)

EXPORT int MPI_Recv_init(void* data, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm,
                         MPI_Request* request) {
  const int result = PMPI_Recv_init(data, count, type, from, tag, comm, request);
  if (result == MPI_SUCCESS)
    shim_persistent(*request, comm, CULPRIT_RECV, from, sized(type, (uint64_t)count));
  return result;
}

EXPORT int MPI_Start(MPI_Request* request) {
  shim_started(*request);
  return PMPI_Start(request);
}

EXPORT int MPI_Startall(int count, MPI_Request requests[]) {
  for (int i = 0; i < count; ++i) shim_started(requests[i]);
  return PMPI_Startall(count, requests);
}

/* ---- one call that sends and receives: both have its span */

typedef struct exchange {
  culprit_record sends, receives;
  int sending, receiving, any;
} exchange;

static void enter_exchange(exchange* e, MPI_Comm comm, int to, int from) {
  e->sending = describe_pair(&e->sends, comm, CULPRIT_SEND, to, e->sends.bytes);
  e->any = from == MPI_ANY_SOURCE &&
           shim_describe(&e->receives, shim_comm_of(comm), CULPRIT_RECV, e->receives.bytes);
  e->receiving = !e->any && describe_pair(&e->receives, comm, CULPRIT_RECV, from, e->receives.bytes);
  if (e->sending) shim_enter(&e->sends);
  if (e->any) e->receives.start_ns = culprit_now_ns();
  if (e->receiving) shim_enter(&e->receives);
}

static void leave_exchange(exchange* e, MPI_Comm comm, int result, const MPI_Status* status) {
  if (e->sending) shim_leave(&e->sends);
  if (e->receiving) shim_leave(&e->receives);
  if (e->any) leave_any(&e->receives, comm, result, status);
}

EXPORT int MPI_Sendrecv(const void* data, int count, MPI_Datatype type, int to, int tag, void* into,
                        int into_n, MPI_Datatype into_type, int from, int from_tag, MPI_Comm comm,
                        MPI_Status* status) {
  exchange e;
  MPI_Status mine;
  int result;
  e.sends.bytes = sized(type, (uint64_t)count);
  e.receives.bytes = sized(into_type, (uint64_t)into_n);
  if (status == MPI_STATUS_IGNORE) status = &mine;
  enter_exchange(&e, comm, to, from);
  result = PMPI_Sendrecv(data, count, type, to, tag, into, into_n, into_type, from, from_tag, comm, status);
  leave_exchange(&e, comm, result, status);
  return result;
}

EXPORT int MPI_Sendrecv_replace(void* data, int count, MPI_Datatype type, int to, int tag, int from,
                                int from_tag, MPI_Comm comm, MPI_Status* status) {
  exchange e;
  MPI_Status mine;
  int result;
  e.sends.bytes = e.receives.bytes = sized(type, (uint64_t)count);
  if (status == MPI_STATUS_IGNORE) status = &mine;
  enter_exchange(&e, comm, to, from);
  result = PMPI_Sendrecv_replace(data, count, type, to, tag, from, from_tag, comm, status);
  leave_exchange(&e, comm, result, status);
  return result;
}
