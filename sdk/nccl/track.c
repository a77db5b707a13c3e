#include "track.h"

#include "comms.h"

/* Slots for pending operations. The largest known burst is an all-to-all over 8,192 ranks, built from sends
 * and receives; CUDA's launch queue has 1,024 entries. 2 MiB, allocated by the kernel on use. */
enum { SLOT_BITS = 14, SLOTS = 1 << SLOT_BITS };
/* NCCL has at most 64. */
enum { CHANNELS = 64, CHANNEL_BITS = 7 };

typedef struct slot {
  uint64_t word; /* generation, and in the lowest bit whether the slot is locked */
  culprit_record record;
  uint64_t begun, stamped, ended; /* channels */
  uint16_t comm;
  uint8_t channels; /* that will report; 0: unknown, then all that began */
  uint8_t active, reported;
} slot;

static slot slots[SLOTS];
static uint64_t cursor;
static track_counts counts;

static void count(uint64_t* what) { __atomic_fetch_add(what, 1, __ATOMIC_RELAXED); }

track_counts track_counted(void) {
  track_counts now;
  now.operations = __atomic_load_n(&counts.operations, __ATOMIC_RELAXED);
  now.lost = __atomic_load_n(&counts.lost, __ATOMIC_RELAXED);
  now.late = __atomic_load_n(&counts.late, __ATOMIC_RELAXED);
  return now;
}

/* ---- handles and slots */

static void* handle_of(uint64_t generation, uint32_t index, uint32_t channel) {
  return (void*)(uintptr_t)(generation << (SLOT_BITS + CHANNEL_BITS) | (uint64_t)channel << SLOT_BITS |
                            index);
}

/* CHANNELS: the handle of the operation itself, and the null handle. */
static uint32_t channel_of(void* handle) {
  const uint64_t value = (uint64_t)(uintptr_t)handle;
  const uint32_t channel = value >> SLOT_BITS & ((1u << CHANNEL_BITS) - 1);
  return channel ? channel - 1 : CHANNELS;
}

static int hold(slot* s, uint64_t word) {
  return !(word & 1) &&
         __atomic_compare_exchange_n(&s->word, &word, word | 1, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
}

static void let_go(slot* s, uint64_t generation) {
  __atomic_store_n(&s->word, generation << 1, __ATOMIC_RELEASE);
}

/* The locked slot of a handle, or NULL if its operation has ended. */
typedef struct holding {
  slot* s;
  uint64_t generation;
  uint32_t index, channel;
} holding;

static int hold_handle(void* handle, holding* found) {
  const uint64_t value = (uint64_t)(uintptr_t)handle;
  found->index = value & (SLOTS - 1);
  found->channel = channel_of(handle);
  found->generation = value >> (SLOT_BITS + CHANNEL_BITS);
  found->s = &slots[found->index];
  if (hold(found->s, found->generation << 1)) {
    if (found->s->active) return 1;
    let_go(found->s, found->generation);
  }
  count(&counts.late);
  return 0;
}

/* An operation without further events. If any channel ended, so did the operation: the stops of the others
 * are missing, as at a teardown. Otherwise it stays unfinished. */
static int abandoned(slot* s, culprit_record* last) {
  const int finished = s->ended == s->begun && s->reported && s->channels == 0;
  if (!s->active) return 0;
  s->active = 0;
  if (finished) return 0;
  count(&counts.lost);
  *last = s->record;
  return s->record.end_ns != 0;
}

/* The next slot of the slab, locked, with a new generation. */
static int hold_free(holding* found, culprit_record* last, int* has_last) {
  /* Skips a locked slot; four in a row are not a coincidence. */
  for (int i = 0; i < 4; ++i) {
    const uint32_t index = __atomic_fetch_add(&cursor, 1, __ATOMIC_RELAXED) & (SLOTS - 1);
    slot* s = &slots[index];
    const uint64_t word = __atomic_load_n(&s->word, __ATOMIC_RELAXED);
    if (!hold(s, word)) continue;
    found->s = s;
    found->index = index;
    found->generation = (word >> 1) + 1;
    *has_last = abandoned(s, last);
    return 1;
  }
  return 0;
}

/* ---- operations */

static int op_of(const char* function, int p2p) {
  static const struct {
    const char* name;
    int op, p2p;
  } known[] = {
      {"AllReduce", CULPRIT_ALL_REDUCE, 0},
      {"AllGather", CULPRIT_ALL_GATHER, 0},
      {"ReduceScatter", CULPRIT_REDUCE_SCATTER, 0},
      {"Broadcast", CULPRIT_BROADCAST, 0},
      {"Reduce", CULPRIT_REDUCE, 0},
      {"AlltoAll", CULPRIT_ALL_TO_ALL, 0},
      {"AllToAll", CULPRIT_ALL_TO_ALL, 0},
      {"Gather", CULPRIT_GATHER, 0},
      {"Scatter", CULPRIT_SCATTER, 0},
      {"Send", CULPRIT_SEND, 1},
      {"Recv", CULPRIT_RECV, 1},
  };
  for (size_t i = 0; function && i < sizeof known / sizeof *known; ++i)
    if (known[i].p2p == p2p && strcmp(function, known[i].name) == 0) return known[i].op;
  return -1;
}

/* The first number in NCCL's type names ("ncclBfloat16", "ncclFloat8e4m3") is the size in bits. */
static uint64_t bytes_of(const char* datatype, uint64_t elements) {
  uint64_t bits = 0;
  while (datatype && *datatype && (*datatype < '0' || *datatype > '9')) ++datatype;
  while (datatype && *datatype >= '0' && *datatype <= '9' && bits < 128)
    bits = bits * 10 + (uint64_t)(*datatype++ - '0');
  return bits >= 8 && bits <= 128 && elements < UINT64_MAX / 16 ? elements * (bits / 8) : 0;
}

/* Sets the fields known at the enqueue. Returns 0 if the operation cannot be tracked. All ranks enqueue
 * alike, so an untracked collective is still counted. */
static int describe(nccl_comm* comm, const nccl_operation* operation, culprit_record* record) {
  const int op = op_of(operation->function, operation->p2p);
  if (!operation->p2p) record->seq = __atomic_fetch_add(&comm->collectives, 1, __ATOMIC_RELAXED);
  if (op < 0 || comm->global == CULPRIT_UNKNOWN) return 0;
  record->op = (uint16_t)op;
  if (operation->p2p) {
    record->peer = comm_rank_of_job(comm, operation->peer);
    if (record->peer == CULPRIT_UNKNOWN || operation->peer >= comm->pair_count) return 0;
    record->seq = __atomic_fetch_add(&comm->pairs[(uint64_t)operation->peer * 2 + (op == CULPRIT_RECV)], 1,
                                     __ATOMIC_RELAXED);
  }
  record->comm = comm->id;
  record->bytes = bytes_of(operation->datatype, operation->count);
  record->rank = comm->global;
  record->step = tracer_step();
  record->comm_size = comm->size;
  record->group = comm->group;
  record->device = comm_device();
  return 1;
}

void* operation_begin(nccl_comm* comm, const nccl_operation* operation) {
  culprit_record record = culprit_record_of(CULPRIT_JOIN, CULPRIT_GROUP_UNKNOWN), last;
  int has_last = 0;
  holding held;
  void* handle;
  if (!comm || !__atomic_load_n(&comm->bound, __ATOMIC_ACQUIRE) || !describe(comm, operation, &record) ||
      !hold_free(&held, &last, &has_last)) {
    count(&counts.lost);
    return NULL;
  }
  count(&counts.operations);
  record.flags = CULPRIT_DEVICE_TIMES;
  held.s->record = record;
  held.s->begun = held.s->stamped = held.s->ended = 0;
  __atomic_store_n(&held.s->comm, comm_index(comm), __ATOMIC_RELAXED);
  held.s->channels = operation->channels <= CHANNELS ? operation->channels : 0;
  held.s->active = 1;
  held.s->reported = 0;
  handle = handle_of(held.generation, held.index, 0);
  let_go(held.s, held.generation);
  if (has_last) tracer_push(&last);
  return handle;
}

/* ---- channels */

static uint64_t time_of(slot* s, uint64_t timer) {
  if (timer) return comm_time(comm_at(s->comm), timer);
  s->record.flags = 0;
  return culprit_now_ns();
}

static void end_at(slot* s, uint64_t time) {
  culprit_record* record = &s->record;
  if (time < record->start_ns) time = record->start_ns;
  if (time > record->end_ns) record->end_ns = time;
}

void* channel_begin(void* operation, uint8_t channel, uint64_t timer) {
  holding held;
  culprit_record entered;
  uint64_t time;
  int first;
  if (!operation) return NULL; /* of an untracked operation */
  if (channel >= CHANNELS) return count(&counts.lost), NULL;
  if (!hold_handle(operation, &held)) return NULL;
  time = time_of(held.s, timer);
  first = held.s->begun == 0;
  if (first || time < held.s->record.start_ns) held.s->record.start_ns = time;
  held.s->begun |= UINT64_C(1) << channel;
  held.s->ended &= ~(UINT64_C(1) << channel);
  held.s->stamped &= ~(UINT64_C(1) << channel);
  entered = held.s->record;
  let_go(held.s, held.generation);
  if (first) tracer_push(&entered);
  return handle_of(held.generation, held.index, channel + 1u);
}

void channel_stamp(void* channel, uint64_t timer) {
  holding held;
  if (!timer || channel_of(channel) == CHANNELS || !hold_handle(channel, &held)) return;
  end_at(held.s, time_of(held.s, timer));
  held.s->stamped |= UINT64_C(1) << held.channel;
  let_go(held.s, held.generation);
}

/* Whether all expected channels have ended, as far as known. */
static int complete(const slot* s) {
  return s->ended == s->begun && (s->channels == 0 || __builtin_popcountll(s->ended) >= s->channels);
}

void channel_end(void* channel) {
  holding held;
  culprit_record left;
  int whole;
  /* The stop of the operation itself is only the end of its enqueue. */
  if (channel_of(channel) == CHANNELS || !hold_handle(channel, &held)) return;
  const uint64_t bit = UINT64_C(1) << held.channel;
  if (!(held.s->begun & bit) || (held.s->ended & bit)) {
    let_go(held.s, held.generation);
    return count(&counts.late);
  }
  if (!(held.s->stamped & bit)) end_at(held.s, time_of(held.s, 0));
  held.s->ended |= bit;
  whole = complete(held.s);
  if (whole) {
    held.s->reported = 1;
    /* If their number is unknown, another channel may follow: its end is in another record, which replaces
     * this one. */
    if (held.s->channels) held.s->active = 0;
  }
  left = held.s->record;
  let_go(held.s, held.generation);
  if (whole) tracer_push(&left);
}

void comm_close(nccl_comm* comm) {
  const uint16_t index = comm_index(comm);
  for (uint32_t i = 0; i < SLOTS; ++i) {
    slot* s = &slots[i];
    const uint64_t word = __atomic_load_n(&s->word, __ATOMIC_RELAXED);
    culprit_record last;
    int has_last = 0;
    /* Other slots are not locked: that could make their proxy thread drop an event. */
    if (word == 0 || __atomic_load_n(&s->comm, __ATOMIC_RELAXED) != index || !hold(s, word)) continue;
    if (s->comm == index) has_last = abandoned(s, &last);
    let_go(s, word >> 1);
    if (has_last) tracer_push(&last);
  }
  comm_release(comm);
}
