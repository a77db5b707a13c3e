#include "shim.h"

#include <pthread.h>
#include <stdlib.h>

/* Distinct member sets of a process's communicators. */
enum { SETS = 4096 };
/* Tracked pending requests. A rank that exchanges with 8,192 others at once has more; the rest counts as
 * dropped. */
enum { PENDING = 8192, BUCKETS = 4096 };

static struct {
  int on; /* between init and finalize */
  int keyval;
  int threads; /* MPI_THREAD_MULTIPLE */
  uint32_t rank, world, device;
  MPI_Group group;       /* of MPI_COMM_WORLD */
  pthread_mutex_t mutex; /* of created communicators */
  struct {
    uint64_t hash, made;
  } sets[SETS];
  uint64_t freed; /* incremented on changes, so that threads drop their cached communicators */
} shim = {.mutex = PTHREAD_MUTEX_INITIALIZER};

/* Requests. Locked for some instructions, and only if several threads call MPI. */
static struct {
  pthread_mutex_t mutex;
  shim_pending pool[PENDING]; /* 0 is none */
  uint16_t buckets[BUCKETS];
  uint16_t unused, fresh; /* list of freed entries, and the first unused one */
} requests = {.mutex = PTHREAD_MUTEX_INITIALIZER, .fresh = 1};

static __thread struct {
  MPI_Comm comm;
  shim_comm* known;
  uint64_t freed;
} last;

/* ---- communicators */

static uint64_t mix(uint64_t value) {
  value = (value ^ value >> 30) * UINT64_C(0xbf58476d1ce4e5b9); /* splitmix64's finaliser */
  value = (value ^ value >> 27) * UINT64_C(0x94d049bb133111eb);
  return value ^ value >> 31;
}

/* Number of earlier communicators with these members; UINT64_MAX if there is no room to count. */
static uint64_t count_made(uint64_t hash) {
  for (uint64_t i = 0; i < SETS; ++i) {
    const uint64_t at = (hash + i) % SETS;
    if (shim.sets[at].made && shim.sets[at].hash != hash) continue;
    shim.sets[at].hash = hash;
    return shim.sets[at].made++;
  }
  return UINT64_MAX;
}

/* Receives from any source may outlive their communicator: their sender is then unknown. */
static void orphan_pending(const shim_comm* freed);

static int forget(MPI_Comm comm, int keyval, void* value, void* extra) {
  shim_comm* known = value;
  (void)comm, (void)keyval, (void)extra;
  __atomic_fetch_add(&shim.freed, 1, __ATOMIC_RELEASE);
  orphan_pending(known);
  free(known->members);
  free(known->pairs);
  free(known);
  return MPI_SUCCESS;
}

/* World ranks of all members, or NULL. */
static uint32_t* members_of(MPI_Comm comm, int size) {
  MPI_Group group;
  uint32_t* members = malloc((size_t)size * sizeof *members);
  int* numbers = malloc((size_t)size * 2 * sizeof *numbers);
  int good = members && numbers && PMPI_Comm_group(comm, &group) == MPI_SUCCESS;
  if (good) {
    for (int i = 0; i < size; ++i) numbers[i] = i;
    good = PMPI_Group_translate_ranks(group, size, numbers, shim.group, numbers + size) == MPI_SUCCESS;
    PMPI_Group_free(&group);
  }
  for (int i = 0; good && i < size; ++i) {
    if (numbers[size + i] < 0) good = 0; /* MPI_UNDEFINED */
    members[i] = (uint32_t)numbers[size + i];
  }
  free(numbers);
  if (good) return members;
  free(members);
  return NULL;
}

static void push_join(const shim_comm* known) {
  culprit_record record = culprit_record_of(CULPRIT_JOIN, (enum culprit_group)known->group);
  record.start_ns = record.end_ns = culprit_now_ns();
  record.comm = known->id;
  record.rank = shim.rank;
  record.comm_size = known->size;
  record.device = shim.device;
  record.step = tracer_step();
  tracer_push(&record);
}

static shim_comm* make_known(MPI_Comm comm) {
  int inter = 1, size = 0, rank = 0;
  uint64_t hash = 0, made;
  shim_comm* known;
  if (PMPI_Comm_test_inter(comm, &inter) != MPI_SUCCESS || inter) return NULL;
  PMPI_Comm_size(comm, &size);
  PMPI_Comm_rank(comm, &rank);
  known = calloc(1, sizeof *known);
  if (!known) return NULL;
  known->size = (uint32_t)size;
  known->rank = (uint32_t)rank;
  known->members = members_of(comm, size);
  known->pairs = calloc((size_t)size * 2, sizeof *known->pairs);
  for (int i = 0; known->members && i < size; ++i) hash = mix(hash + known->members[i] + 1);
  made = known->members && known->pairs ? count_made(hash) : UINT64_MAX;
  known->id = mix(hash + made);
  known->group = known->size == shim.world ? CULPRIT_WORLD : CULPRIT_GROUP_UNKNOWN;
  if (made != UINT64_MAX && PMPI_Comm_set_attr(comm, shim.keyval, known) == MPI_SUCCESS) {
    push_join(known);
    return known;
  }
  free(known->members);
  free(known->pairs);
  free(known);
  return NULL;
}

static shim_comm* find(MPI_Comm comm) {
  void* value = NULL;
  int found = 0;
  if (PMPI_Comm_get_attr(comm, shim.keyval, &value, &found) == MPI_SUCCESS && found) return value;
  pthread_mutex_lock(&shim.mutex);
  if (PMPI_Comm_get_attr(comm, shim.keyval, &value, &found) != MPI_SUCCESS || !found)
    value = make_known(comm);
  pthread_mutex_unlock(&shim.mutex);
  return value;
}

shim_comm* shim_comm_of(MPI_Comm comm) {
  uint64_t freed;
  if (!shim_on() || comm == MPI_COMM_NULL) return NULL;
  freed = __atomic_load_n(&shim.freed, __ATOMIC_ACQUIRE);
  if (last.known && last.comm == comm && last.freed == freed) return last.known;
  last.known = find(comm);
  last.comm = comm;
  last.freed = freed;
  return last.known;
}

void shim_comm_named(MPI_Comm comm, const char* name) {
  shim_comm* known = shim_comm_of(comm);
  const uint8_t group = tracer_group_of(name);
  if (!known || group == CULPRIT_GROUP_UNKNOWN) return;
  known->group = group;
  push_join(known);
}

void shim_start(int thread_level) {
  const tracer_launch launch = tracer_launched();
  tracer_options options = {"mpi", 0, launch.device, CULPRIT_RING_CAPACITY};
  int rank = 0, size = 0;
  PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
  PMPI_Comm_size(MPI_COMM_WORLD, &size);
  options.rank = shim.rank = (uint32_t)rank;
  shim.world = (uint32_t)size;
  shim.device = launch.device;
  shim.threads = thread_level == MPI_THREAD_MULTIPLE;
  if (PMPI_Comm_group(MPI_COMM_WORLD, &shim.group) != MPI_SUCCESS) return;
  if (PMPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, forget, &shim.keyval, NULL) != MPI_SUCCESS) return;
  tracer_start(&options);
  __atomic_store_n(&shim.on, 1, __ATOMIC_RELEASE);
  shim_comm_of(MPI_COMM_WORLD);
}

void shim_stop(void) {
  if (__atomic_exchange_n(&shim.on, 0, __ATOMIC_ACQ_REL)) PMPI_Group_free(&shim.group);
  tracer_finish();
}

int shim_on(void) { return __atomic_load_n(&shim.on, __ATOMIC_ACQUIRE); }

/* ---- records */

static void fill(culprit_record* record, const shim_comm* comm, int op, uint64_t bytes) {
  record->start_ns = record->end_ns = 0;
  record->comm = comm->id;
  record->bytes = bytes;
  record->rank = shim.rank;
  record->step = tracer_step();
  record->peer = CULPRIT_UNKNOWN;
  record->comm_size = comm->size;
  record->op = (uint16_t)op;
  record->group = comm->group;
  record->flags = 0;
  record->device = shim.device;
}

int shim_describe(culprit_record* record, shim_comm* comm, int op, uint64_t bytes) {
  if (!comm) return 0;
  fill(record, comm, op, bytes);
  if (op != CULPRIT_SEND && op != CULPRIT_RECV)
    record->seq = __atomic_fetch_add(&comm->collectives, 1, __ATOMIC_RELAXED);
  return 1;
}

int shim_describe_pair(culprit_record* record, shim_comm* comm, int op, int peer) {
  if (peer < 0 || (uint32_t)peer >= comm->size) return 0;
  record->peer = comm->members[peer];
  record->seq =
      __atomic_fetch_add(&comm->pairs[(size_t)peer * 2 + (op == CULPRIT_RECV)], 1, __ATOMIC_RELAXED);
  return 1;
}

void shim_enter(culprit_record* record) {
  if (record->start_ns == 0) record->start_ns = culprit_now_ns();
  tracer_push(record);
}

static void leave(culprit_record* record, uint64_t own_ns) {
  const uint64_t end = culprit_now_ns() - own_ns;
  record->end_ns = end < record->start_ns ? record->start_ns : end; /* the clock was set back */
  tracer_push(record);
}

void shim_leave(culprit_record* record) { leave(record, 0); }

/* ---- requests */

static void lock(void) {
  if (shim.threads) pthread_mutex_lock(&requests.mutex);
}
static void unlock(void) {
  if (shim.threads) pthread_mutex_unlock(&requests.mutex);
}

static uint64_t handle_of(MPI_Request request) { return (uint64_t)(uintptr_t)request; }

static uint16_t* bucket(uint64_t handle) { return &requests.buckets[mix(handle) % BUCKETS]; }

static uint16_t find_pending(uint64_t handle) {
  uint16_t at = *bucket(handle);
  while (at && requests.pool[at].handle != handle) at = requests.pool[at].next;
  return at;
}

static void link_pending(uint16_t at) {
  uint16_t* head = bucket(requests.pool[at].handle);
  requests.pool[at].next = *head;
  *head = at;
}

static uint16_t unused_pending(void) {
  const uint16_t at = requests.unused;
  if (at) {
    requests.unused = requests.pool[at].next;
    return at;
  }
  return requests.fresh < PENDING ? requests.fresh++ : 0;
}

static void unlink_pending(uint16_t at) {
  uint16_t* link = bucket(requests.pool[at].handle);
  while (*link != at) link = &requests.pool[*link].next;
  *link = requests.pool[at].next;
}

static void give_unused(uint16_t at) {
  requests.pool[at].next = requests.unused;
  requests.unused = at;
}

static void orphan_pending(const shim_comm* freed) {
  static shim_comm nobody;
  lock();
  for (uint16_t i = 1; i < requests.fresh; ++i) {
    if (requests.pool[i].any_source == freed) requests.pool[i].any_source = &nobody;
    if (requests.pool[i].again == freed) requests.pool[i].again = &nobody;
  }
  unlock();
}

/* Drops the pending entry of a reused handle: its request ended at its posting (MPI has one handle for all of
 * those) or in an unrecorded call. */
typedef struct ended {
  culprit_record record;
  int known, lost;
} ended;

static void end_unseen(ended* was, const shim_pending* pending) {
  was->known = !pending->idle && !pending->any_source;
  was->lost = !pending->idle && pending->any_source;
  was->record = pending->record;
}

static void tell_ended(ended* was) {
  if (was->lost) tracer_count_dropped();
  if (!was->known) return;
  if (was->record.start_ns == 0) was->record.start_ns = culprit_now_ns();
  shim_leave(&was->record);
}

/* Stores `pending` under its handle. 0: no room. */
static int keep(const shim_pending* pending) {
  ended was = {.known = 0, .lost = 0};
  uint16_t at, same;
  lock();
  same = find_pending(pending->handle);
  if (same) {
    end_unseen(&was, &requests.pool[same]);
    unlink_pending(same);
    give_unused(same);
  }
  at = unused_pending();
  if (at) {
    requests.pool[at] = *pending;
    link_pending(at);
  }
  unlock();
  tell_ended(&was);
  return at != 0;
}

/* Takes the pending entry for a wait. 0: unknown, or not pending. */
static uint16_t take_out(uint64_t handle) {
  uint16_t at;
  lock();
  at = find_pending(handle);
  if (at && requests.pool[at].idle) at = 0;
  if (at) unlink_pending(at);
  unlock();
  return at;
}

void shim_post(MPI_Request request, const culprit_record* record, shim_comm* any_source) {
  const shim_pending pending = {.handle = handle_of(request), .record = *record, .any_source = any_source};
  if (request == MPI_REQUEST_NULL || !keep(&pending)) tracer_count_dropped();
}

uint16_t shim_take(MPI_Request request) {
  const uint16_t at = request == MPI_REQUEST_NULL || !shim_on() ? 0 : take_out(handle_of(request));
  shim_waited(at);
  return at;
}

void shim_waited(uint16_t taken) {
  shim_pending* pending = &requests.pool[taken];
  culprit_record* record = &pending->record;
  if (!taken) return;
  if (record->end_ns) {
    const uint64_t now = culprit_now_ns();
    pending->own_ns = now < record->end_ns ? 0 : now - record->end_ns;
    record->end_ns = 0;
  } else if (record->start_ns == 0 && pending->any_source) {
    record->start_ns = culprit_now_ns();
  } else if (record->start_ns == 0) {
    shim_enter(record);
  }
}

int shim_wants_status(uint16_t taken) { return taken && requests.pool[taken].any_source; }

void shim_done(uint16_t taken, const MPI_Status* status) {
  shim_pending* pending;
  if (!taken) return;
  pending = &requests.pool[taken];
  if (!pending->any_source ||
      (status && shim_describe_pair(&pending->record, pending->any_source, CULPRIT_RECV, status->MPI_SOURCE)))
    leave(&pending->record, pending->own_ns);
  else
    tracer_count_dropped();
  lock();
  pending->idle = 1;
  if (pending->again)
    link_pending(taken);
  else
    give_unused(taken);
  unlock();
}

void shim_put_back(uint16_t taken) {
  if (!taken) return;
  lock();
  link_pending(taken);
  unlock();
}

/* ---- matched messages */

/* Handles of messages differ from those of pending requests: in Open MPI both are addresses, in MPICH a
 * message is a request. */
static uint64_t handle_of_message(MPI_Message message) { return (uint64_t)(uintptr_t)message; }

void shim_matched(MPI_Message message, const culprit_record* record) {
  shim_pending pending = {.handle = handle_of_message(message), .record = *record};
  if (keep(&pending)) return;
  shim_leave(&pending.record);
}

uint16_t shim_take_message(MPI_Message message, uint64_t bytes) {
  const uint16_t at = shim_on() ? take_out(handle_of_message(message)) : 0;
  if (at) requests.pool[at].record.bytes = bytes;
  return at;
}

void shim_posted(uint16_t taken, MPI_Request request) {
  shim_pending pending;
  if (!taken) return;
  lock();
  pending = requests.pool[taken];
  give_unused(taken);
  unlock();
  pending.handle = handle_of(request);
  if (request == MPI_REQUEST_NULL || !keep(&pending)) tracer_count_dropped();
}

/* ---- persistent requests */

void shim_persistent(MPI_Request request, MPI_Comm comm, int op, int peer, uint64_t bytes) {
  shim_pending pending = {.handle = handle_of(request), .peer = peer, .idle = 1};
  pending.again = shim_comm_of(comm);
  if (peer == MPI_PROC_NULL || !pending.again) return;
  fill(&pending.record, pending.again, op, bytes);
  if (!keep(&pending)) tracer_count_dropped();
}

void shim_started(MPI_Request request) {
  ended was = {.known = 0, .lost = 0};
  shim_pending* pending;
  uint16_t at;
  if (!shim_on()) return;
  lock();
  at = find_pending(handle_of(request));
  pending = &requests.pool[at];
  if (at && pending->again) {
    culprit_record* record = &pending->record;
    end_unseen(&was, pending);
    fill(record, pending->again, record->op, record->bytes);
    pending->any_source = pending->peer == MPI_ANY_SOURCE ? pending->again : NULL;
    pending->idle =
        !pending->any_source && !shim_describe_pair(record, pending->again, record->op, pending->peer);
  }
  unlock();
  tell_ended(&was);
}

void shim_forget(MPI_Request request) {
  uint16_t at;
  lock();
  at = find_pending(handle_of(request));
  if (at) unlink_pending(at);
  if (at) give_unused(at);
  unlock();
}
