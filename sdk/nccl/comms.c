#include "comms.h"

#include <pthread.h>
#include <stdlib.h>

enum { COMMS_MAX = 1024, GROUPS_MAX = 256 };
enum comm_state { FREE, OPEN };
/* Records per ring of a proxy thread; some versions have one thread per communicator. 4,096 records are 2,000
 * operations between two reads of the daemon, and 256 KiB. */
enum { RING_RECORDS = 4096 };
/* A GPU's timer counts from the Unix epoch or from its own start, years apart. A time stamp arrives seconds
 * late, or minutes late if the process was stopped. */
static const int64_t another_epoch_ns = 3600 * INT64_C(1000000000);
static const int64_t shift_unknown = INT64_MIN;
/* The daemon's limit of ranks. */
static const uint32_t ranks_max = 1u << 20;

typedef struct members {
  uint8_t kind;
  uint32_t count;
  uint32_t* ranks; /* never freed: communicators refer to it */
} members;

static nccl_comm comms[COMMS_MAX];
static struct {
  pthread_mutex_t mutex; /* for init, finalize and group_members; never locked by other calls */
  members groups[GROUPS_MAX];
  int group_count;
  int started;
  tracer_launch launch;
  /* Whether NCCL's numbers are used because the launcher does not number ranks; open communicators; and the
   * one that represents the whole job. */
  int by_nccl, open;
  struct {
    int made, several; /* several of its ranks are in this process */
    uint64_t id;
    uint32_t size, rank;
  } job;
} known = {.mutex = PTHREAD_MUTEX_INITIALIZER};

static void start_once(uint32_t rank) {
  tracer_options options = {"nccl", rank, 0, RING_RECORDS};
  if (known.started) return;
  known.started = 1;
  known.launch = tracer_launched();
  known.by_nccl = known.launch.rank == CULPRIT_UNKNOWN;
  options.device = known.launch.device;
  if (!known.by_nccl) options.rank = known.launch.rank;
  tracer_start(&options);
}

uint32_t comm_device(void) { return known.launch.device; }

static int of_some_ranks(uint8_t kind) { return kind != CULPRIT_GROUP_UNKNOWN && kind != CULPRIT_WORLD; }

/* Whether its numbers are the job's ranks: true for the first communicator, unless its name is that of a
 * group, or until a larger one is created. A process with several ranks has several copies of it. */
static int is_job(const nccl_comm* comm) {
  if (known.job.made && comm->id == known.job.id) {
    known.job.several |= comm->rank != known.job.rank;
    return 1;
  }
  if (of_some_ranks(comm->group)) return 0;
  if (known.job.made && comm->size <= known.job.size)
    return known.job.several && comm->size && comm->size == known.job.size;
  known.job.made = 1;
  known.job.several = 0;
  known.job.id = comm->id;
  known.job.size = comm->size;
  known.job.rank = comm->rank;
  return 1;
}

/* The launcher's number of the process. Without a launcher, or with several ranks per process (the launcher
 * then counts processes): NCCL's numbers. CULPRIT_UNKNOWN: a group with unknown members. */
static uint32_t own_rank(const nccl_comm* comm) {
  if (known.launch.size != CULPRIT_UNKNOWN && comm->size > known.launch.size) known.by_nccl = 1;
  for (int i = 0; i < COMMS_MAX; ++i)
    if (comms[i].state == OPEN && comms[i].bound && comms[i].id == comm->id && comms[i].rank != comm->rank)
      known.by_nccl = 1;
  if (!known.by_nccl) return known.launch.rank;
  if (is_job(comm)) return comm->rank;
  return known.job.made && !known.job.several ? known.job.rank : CULPRIT_UNKNOWN;
}

/* The latest declared group with this rank at this position. For an unknown rank: the only group of this
 * size and kind. */
static const members* given_members(const nccl_comm* comm) {
  const members* found = NULL;
  for (int i = known.group_count; i-- > 0;) {
    const members* given = &known.groups[i];
    if (given->count != comm->size) continue;
    if (given->ranks[comm->rank] == comm->global) return given;
    if (comm->global != CULPRIT_UNKNOWN || (given->kind && comm->group && given->kind != comm->group))
      continue;
    if (found && memcmp(found->ranks, given->ranks, given->count * sizeof *given->ranks) != 0) return NULL;
    found = given;
  }
  return found;
}

/* NCCL numbers ranks and peers within the communicator; it has no ranks of the job. These are known if the
 * communicator has all ranks in order, if the program declared them (group_members), and for pipelines by
 * name: stages are the outermost dimension of Megatron-LM, DeepSpeed and PyTorch's meshes
 * (daemon/docs/formats.md section 6), so stage s of n has the s-th n-th part of all ranks. */
static void number(nccl_comm* comm) {
  const uint32_t world = known.by_nccl ? known.job.size : known.launch.size;
  const members* given = comm->size ? given_members(comm) : NULL;
  comm->numbering = NUMBERS_UNKNOWN;
  if (given) {
    comm->numbering = NUMBERS_GIVEN;
    comm->members = given->ranks;
    comm->global = given->ranks[comm->rank];
    if (given->kind) comm->group = given->kind;
  } else if (comm->size && comm->global == comm->rank && comm->size >= world) {
    comm->numbering = NUMBERS_SAME;
  } else if (comm->group == CULPRIT_PP && comm->size && world && world % comm->size == 0 &&
             comm->global / (world / comm->size) == comm->rank) {
    comm->numbering = NUMBERS_STRIDE;
    comm->stride = world / comm->size;
  }
}

static void push_join(const nccl_comm* comm) {
  culprit_record record = culprit_record_of(CULPRIT_JOIN, CULPRIT_GROUP_UNKNOWN);
  if (comm->global == CULPRIT_UNKNOWN) return;
  record.start_ns = record.end_ns = culprit_now_ns();
  record.comm = comm->id;
  record.rank = comm->global;
  record.comm_size = comm->size;
  record.group = comm->group;
  record.device = comm_device();
  record.step = tracer_step();
  tracer_push(&record);
}

static void bind_locked(nccl_comm* comm, const comm_options* options) {
  const uint32_t world = known.launch.size;
  comm->id = options->id;
  comm->size = options->size;
  comm->rank = options->rank;
  comm->group = tracer_group_of(options->name);
  if (world != CULPRIT_UNKNOWN && world > 1) {
    if (comm->size == 0 && comm->group == CULPRIT_WORLD) comm->size = world;
    if (comm->size == world) comm->group = CULPRIT_WORLD;
  }
  comm->global = own_rank(comm);
  number(comm);
  if (comm->numbering != NUMBERS_UNKNOWN) comm->pairs = calloc((size_t)comm->size * 2, sizeof *comm->pairs);
  comm->pair_count = comm->pairs ? comm->size : 0;
  push_join(comm);
  __atomic_store_n(&comm->bound, 1, __ATOMIC_RELEASE);
}

nccl_comm* comm_open(const comm_options* options) {
  nccl_comm* comm = NULL;
  if (options->size > ranks_max || (options->size && options->rank >= options->size)) return NULL;
  pthread_mutex_lock(&known.mutex);
  start_once(options->size && !of_some_ranks(tracer_group_of(options->name)) ? options->rank
                                                                             : CULPRIT_UNKNOWN);
  for (int i = 0; !comm && i < COMMS_MAX; ++i)
    if (comms[i].state == FREE) comm = &comms[i];
  if (comm) {
    comm->bound = 0;
    comm->members = NULL;
    comm->pairs = NULL;
    comm->pair_count = 0;
    __atomic_store_n(&comm->collectives, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&comm->shift, shift_unknown, __ATOMIC_RELAXED);
    comm->state = OPEN;
    ++known.open;
    if (options->size) bind_locked(comm, options);
  }
  pthread_mutex_unlock(&known.mutex);
  return comm;
}

void comm_bind(nccl_comm* comm, const comm_options* options) {
  if (__atomic_load_n(&comm->bound, __ATOMIC_ACQUIRE) || options->rank >= ranks_max) return;
  pthread_mutex_lock(&known.mutex);
  if (!comm->bound) bind_locked(comm, options);
  pthread_mutex_unlock(&known.mutex);
}

void comm_release(nccl_comm* comm) {
  pthread_mutex_lock(&known.mutex);
  free(comm->pairs);
  comm->pairs = NULL;
  comm->pair_count = 0;
  comm->state = FREE;
  if (--known.open == 0) known.job.made = 0; /* later communicators may number the ranks differently */
  pthread_mutex_unlock(&known.mutex);
}

uint16_t comm_index(const nccl_comm* comm) { return (uint16_t)(comm - comms); }
nccl_comm* comm_at(uint16_t index) { return &comms[index]; }

uint32_t comm_rank_of_job(const nccl_comm* comm, uint32_t rank) {
  if (rank >= comm->size) return CULPRIT_UNKNOWN;
  switch (comm->numbering) {
    case NUMBERS_SAME:
      return rank;
    case NUMBERS_GIVEN:
      return comm->members[rank];
    case NUMBERS_STRIDE:
      return rank * comm->stride + comm->global % comm->stride;
    default:
      return CULPRIT_UNKNOWN;
  }
}

uint64_t comm_time(nccl_comm* comm, uint64_t timer) {
  int64_t shift = __atomic_load_n(&comm->shift, __ATOMIC_RELAXED);
  if (shift == shift_unknown) {
    const int64_t apart = (int64_t)(culprit_now_ns() - timer);
    int64_t expected = shift_unknown;
    shift = apart < another_epoch_ns && apart > -another_epoch_ns ? 0 : apart;
    if (!__atomic_compare_exchange_n(&comm->shift, &expected, shift, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
      shift = expected;
  }
  return timer + (uint64_t)shift;
}

int group_members(uint8_t kind, const uint32_t* ranks, uint32_t count) {
  uint32_t* copy;
  int stored = 0;
  if (!ranks || count == 0 || count > ranks_max || kind > CULPRIT_EDP) return 0;
  for (uint32_t i = 0; i < count; ++i)
    if (ranks[i] >= ranks_max) return 0;
  copy = malloc(count * sizeof *copy);
  if (!copy) return 0;
  memcpy(copy, ranks, count * sizeof *copy);
  pthread_mutex_lock(&known.mutex);
  if (known.group_count < GROUPS_MAX) {
    const members group = {kind, count, copy};
    known.groups[known.group_count++] = group;
    stored = 1;
  }
  pthread_mutex_unlock(&known.mutex);
  if (!stored) free(copy);
  return stored;
}
