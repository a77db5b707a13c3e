/* NCCL's profiler plugin: libnccl-profiler-culprit.so. It is installed outside the loader's search path, so
 * NCCL_PROFILER_PLUGIN must be its full path (README.md). NCCL_PROFILER_PLUGIN=culprit works only if
 * LD_LIBRARY_PATH has its folder. NCCL takes the newest version that it knows from the tables below. Every
 * call returns success. */
#include "abi.h"
#include "track.h"

#define EXPORT __attribute__((visibility("default")))

/* One mask per process; the last init wins, so it never changes. */
enum { MASK = NCCL_COLL | NCCL_P2P | NCCL_KERNEL_CHANNEL };

static nccl_log_function log_function;

/* ---- for programs, by ctypes or linked */

/* The step of operations that are enqueued from now on. */
EXPORT void culprit_nccl_set_step(uint32_t step) { tracer_set_step(step); }

/* Declares the job's ranks of a group, in the group's order, and its kind (enum culprit_group). Required for
 * sends and receives in a group without all ranks, before its first use. Returns 1 if taken. */
EXPORT int culprit_nccl_group(uint8_t kind, const uint32_t* ranks, uint32_t count) {
  return group_members(kind, ranks, count);
}

/* ---- shared by all versions */

static int open_comm(void** context, const comm_options* options, nccl_log_function log) {
  if (log) __atomic_store_n(&log_function, log, __ATOMIC_RELAXED);
  if (context) *context = comm_open(options);
  return NCCL_SUCCESS;
}

static int finalize(void* context) {
  nccl_comm* comm = context;
  const nccl_log_function log = __atomic_load_n(&log_function, __ATOMIC_RELAXED);
  track_counts counts;
  if (!comm) return NCCL_SUCCESS;
  comm_close(comm);
  counts = track_counted();
  if (log)
    log(NCCL_LOG_INFO, ~0ul, __func__, __LINE__,
        "culprit: of this process so far: %llu operations followed, %llu lost, %llu late calls, %llu "
        "records dropped",
        (unsigned long long)counts.operations, (unsigned long long)counts.lost,
        (unsigned long long)counts.late, (unsigned long long)tracer_dropped());
  return NCCL_SUCCESS;
}

static int stop_event(void* handle) {
  channel_end(handle);
  return NCCL_SUCCESS;
}

static int record_state(void* handle, int state, nccl_state_args* args) {
  if (state == NCCL_KERNEL_CHANNEL_STOP && args) channel_stamp(handle, args->kernel.timer);
  return NCCL_SUCCESS;
}

/* ---- version 3: no communicator at init, no times of the device, a number of channels that is a maximum */

static int init_v3(void** context, int* mask) {
  const comm_options none = {NULL, 0, 0, 0};
  if (mask) *mask = MASK;
  return open_comm(context, &none, NULL);
}

static int start_v3(void* context, void** handle, nccl_descriptor_v3* event) {
  nccl_comm* comm = context;
  const int p2p = event->type == NCCL_P2P;
  *handle = NULL;
  if (event->type == NCCL_KERNEL_CHANNEL) {
    *handle = channel_begin(event->parent, event->of.kernel.channel, 0);
  } else if (p2p || event->type == NCCL_COLL) {
    const comm_options bound = {event->of.coll.comm_name, event->of.coll.comm_hash, 0, (uint32_t)event->rank};
    nccl_operation what = {event->of.coll.function, event->of.coll.datatype, event->of.coll.count, p2p, 0, 0};
    if (p2p) {
      what.function = event->of.p2p.function;
      what.datatype = event->of.p2p.datatype;
      what.count = event->of.p2p.count;
      what.peer = (uint32_t)event->of.p2p.peer;
    }
    if (comm) comm_bind(comm, &bound);
    *handle = operation_begin(comm, &what);
  }
  return NCCL_SUCCESS;
}

static int record_v3(void* handle, int state, nccl_state_args* args) {
  (void)handle, (void)state, (void)args;
  return NCCL_SUCCESS;
}

/* ---- versions 4 to 6. Under NCCL 2.28 and later nothing sets the channels of version 4's p2p. */

#define START(version, trusted)                                                                           \
  static int start_##version(void* context, void** handle, nccl_descriptor_##version* event) {            \
    *handle = NULL;                                                                                       \
    if (event->type == NCCL_KERNEL_CHANNEL) {                                                             \
      *handle = channel_begin(event->parent, event->of.kernel.channel, event->of.kernel.timer);           \
    } else if (event->type == NCCL_COLL) {                                                                \
      const nccl_operation what = {                                                                       \
          event->of.coll.function, event->of.coll.datatype, event->of.coll.count, 0, 0,                   \
          event->of.coll.channels};                                                                       \
      *handle = operation_begin(context, &what);                                                          \
    } else if (event->type == NCCL_P2P) {                                                                 \
      const nccl_operation what = {event->of.p2p.function,       event->of.p2p.datatype,                  \
                                   event->of.p2p.count,          1,                                       \
                                   (uint32_t)event->of.p2p.peer, (trusted) ? event->of.p2p.channels : 0}; \
      *handle = operation_begin(context, &what);                                                          \
    }                                                                                                     \
    return NCCL_SUCCESS;                                                                                  \
  }
START(v4, 0)
START(v5, 1)

static int init_v4(void** context, int* mask, const char* name, uint64_t hash, int nodes, int ranks, int rank,
                   nccl_log_function log) {
  const comm_options options = {name, hash, (uint32_t)ranks, (uint32_t)rank};
  (void)nodes;
  if (mask) *mask = MASK;
  return open_comm(context, &options, log);
}

static int init_v5(void** context, uint64_t id, int* mask, const char* name, int nodes, int ranks, int rank,
                   nccl_log_function log) {
  return init_v4(context, mask, name, id, nodes, ranks, rank, log);
}

EXPORT nccl_profiler_v3 ncclProfiler_v3 = {"Culprit", init_v3, start_v3, stop_event, record_v3, finalize};
EXPORT nccl_profiler_v4 ncclProfiler_v4 = {"Culprit", init_v4, start_v4, stop_event, record_state, finalize};
EXPORT nccl_profiler_v5 ncclProfiler_v5 = {"Culprit", init_v5, start_v5, stop_event, record_state, finalize};
EXPORT nccl_profiler_v6 ncclProfiler_v6 = {"Culprit", init_v5, start_v5, stop_event, record_state, finalize};
