#include "comm_file.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>

/* The limit of tracer.c. */
enum { RINGS_MAX = 128 };
enum { ROUND_MS = 20, FINISH_MS = 2000 };
/* After this time without a record the process writes its joins again, with the time: a reader then knows
 * that it was alive while its operations did not end. Longer than the steps of most jobs. */
enum { HEARTBEAT_MS = 5000 };
/* Ranks per process with kept joins; most processes have one. */
enum { JOINS_MAX = 16 };
/* Records copied at a time: 64 KiB, on the writing thread's stack. */
enum { BATCH = 1024 };

enum ring_state { FREE, TAKEN, LIVE, GIVEN_BACK };

typedef struct ring_place {
  int state;          /* enum ring_state */
  culprit_ring* ring; /* used by its thread only */
  culprit_ring_header* header;
  const culprit_record* records;
} ring_place;

static struct {
  int wanted, descriptor;
  pid_t process; /* the child of a fork has no writing thread */
  pthread_t thread;
  int running;
  ring_place places[RINGS_MAX];
  uint64_t dropped;
  culprit_record joins[JOINS_MAX]; /* per rank, of its largest communicator; the writing thread's */
  int join_count, quiet_rounds;
  pthread_mutex_t mutex; /* for the three below; never held during a write */
  pthread_cond_t changed;
  int stopping, stopped;
} file = {.descriptor = -1, .mutex = PTHREAD_MUTEX_INITIALIZER};

static int write_all(const void* bytes, size_t size) {
  const char* at = bytes;
  while (size) {
    const ssize_t done = write(file.descriptor, at, size);
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0) return 0;
    at += done;
    size -= (size_t)done;
  }
  return 1;
}

/* A partial record would shift all later ones: after a failed write nothing is written. */
static void put(const culprit_record* records, size_t count) {
  if (file.descriptor >= 0 && write_all(records, count * sizeof *records)) return;
  if (file.descriptor >= 0) close(file.descriptor);
  file.descriptor = -1;
  __atomic_fetch_add(&file.dropped, count, __ATOMIC_RELAXED);
}

static void keep_join(const culprit_record* record) {
  int i = 0;
  while (i < file.join_count && file.joins[i].rank != record->rank) ++i;
  if (i == JOINS_MAX) return;
  if (i == file.join_count)
    ++file.join_count;
  else if (file.joins[i].comm_size > record->comm_size)
    return;
  file.joins[i] = *record;
}

static void put_heartbeat(void) {
  for (int i = 0; i < file.join_count; ++i) file.joins[i].start_ns = file.joins[i].end_ns = culprit_now_ns();
  if (file.join_count && file.descriptor >= 0) put(file.joins, (size_t)file.join_count);
}

/* Whether the ring held any record. */
static int drain(ring_place* place) {
  culprit_record batch[BATCH];
  const uint64_t mask = place->header->capacity - 1;
  uint64_t next = place->header->read;
  const uint64_t written = __atomic_load_n(&place->header->written, __ATOMIC_ACQUIRE);
  const int any = next != written;
  while (next != written) {
    size_t count = 0;
    while (count < BATCH && next != written) {
      batch[count] = place->records[next++ & mask];
      if (batch[count].op == CULPRIT_JOIN) keep_join(&batch[count]);
      ++count;
    }
    __atomic_store_n(&place->header->read, next, __ATOMIC_RELEASE);
    put(batch, count);
  }
  return any;
}

static void round_of_all(void) {
  int any = 0;
  for (int i = 0; i < RINGS_MAX; ++i) {
    ring_place* place = &file.places[i];
    const int state = __atomic_load_n(&place->state, __ATOMIC_ACQUIRE);
    if (state != LIVE && state != GIVEN_BACK) continue;
    any |= drain(place);
    if (state != GIVEN_BACK) continue;
    __atomic_fetch_add(&file.dropped, culprit_ring_dropped(place->ring), __ATOMIC_RELAXED);
    culprit_ring_close(place->ring);
    __atomic_store_n(&place->state, FREE, __ATOMIC_RELEASE);
  }
  file.quiet_rounds = any ? 0 : file.quiet_rounds + 1;
  if (file.quiet_rounds < HEARTBEAT_MS / ROUND_MS) return;
  file.quiet_rounds = 0;
  put_heartbeat();
}

static void after(struct timespec* at, long milliseconds) {
  clock_gettime(CLOCK_MONOTONIC, at);
  at->tv_nsec += milliseconds % 1000 * 1000000;
  at->tv_sec += milliseconds / 1000 + at->tv_nsec / 1000000000;
  at->tv_nsec %= 1000000000;
}

static void* work(void* ignored) {
  int stopping = 0;
  while (!stopping) {
    struct timespec until;
    after(&until, ROUND_MS);
    pthread_mutex_lock(&file.mutex);
    while (!file.stopping && pthread_cond_timedwait(&file.changed, &file.mutex, &until) == 0) {
    }
    stopping = file.stopping;
    pthread_mutex_unlock(&file.mutex);
    round_of_all();
  }
  pthread_mutex_lock(&file.mutex);
  file.stopped = 1;
  pthread_cond_broadcast(&file.changed);
  pthread_mutex_unlock(&file.mutex);
  return ignored;
}

static int open_file(const comm_file_options* options, char* path, size_t size) {
  char header[128] = "CULPCOMM";
  const uint32_t version = 1, record_size = sizeof(culprit_record);
  char host[65] = "";
  if (gethostname(host, sizeof host - 1) != 0 || !*host || strchr(host, '/')) strcpy(host, "host");
  memcpy(header + 8, &version, 4);
  memcpy(header + 12, &record_size, 4);
  memcpy(header + 16, host, strnlen(host, 63));
  memcpy(header + 80, options->job, strnlen(options->job, 47));
  (void)mkdir(options->folder, 0777);
  /* Creation time on the wall clock, because folders outlive hosts: a restarted container has the same host
   * name and pid as the failed one, whose file must stay. */
  if ((size_t)snprintf(path, size, "%s/%s-%ld-%s-%llu.comm", options->folder, host, (long)getpid(),
                       options->tracer, (unsigned long long)culprit_now_ns()) >= size) {
    errno = ENAMETOOLONG;
    return 0;
  }
  file.descriptor = open(path, O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0644);
  return file.descriptor >= 0 && write_all(header, sizeof header);
}

void comm_file_start(const comm_file_options* options) {
  char path[512] = "";
  sigset_t all, before;
  pthread_condattr_t clock;
  int failed = 0;
  file.wanted = 1;
  file.process = getpid();
  if (!open_file(options, path, sizeof path)) failed = errno ? errno : EIO;
  pthread_condattr_init(&clock);
  pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
  pthread_cond_init(&file.changed, &clock);
  pthread_condattr_destroy(&clock);
  /* Signals of the job belong to its own threads. */
  sigfillset(&all);
  if (!failed) {
    pthread_sigmask(SIG_SETMASK, &all, &before);
    failed = pthread_create(&file.thread, NULL, work, NULL);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
  }
  if (failed)
    fprintf(stderr, "culprit: nothing is traced: %s: %s\n", *path ? path : options->folder, strerror(failed));
  __atomic_store_n(&file.running, !failed, __ATOMIC_RELEASE);
}

int comm_file_wanted(void) { return file.wanted; }

/* Like culprit_ring_create, in private memory. */
static culprit_ring* memory_ring(const culprit_ring_options* options) {
  culprit_ring* ring = culprit_ring_page_();
  void* mapped;
  if (!ring) return NULL;
  ring->mask = options->capacity - 1;
  ring->mapped = sizeof(culprit_ring_header) + (size_t)options->capacity * sizeof(culprit_record);
  ring->descriptor = -1;
  mapped =
      mmap(NULL, ring->mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  if (mapped == MAP_FAILED) {
    munmap(ring, sizeof *ring);
    return NULL;
  }
  ring->header = mapped;
  culprit_ring_header_(ring->header, options, options->capacity);
  ring->records = (culprit_record*)(void*)((char*)mapped + sizeof(culprit_ring_header));
  return ring;
}

culprit_ring* comm_file_ring(const culprit_ring_options* options) {
  if (!__atomic_load_n(&file.running, __ATOMIC_ACQUIRE)) return NULL;
  for (int i = 0; i < RINGS_MAX; ++i) {
    ring_place* place = &file.places[i];
    int expected = FREE;
    if (!__atomic_compare_exchange_n(&place->state, &expected, TAKEN, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
      continue;
    place->ring = memory_ring(options);
    if (place->ring) {
      place->header = place->ring->header;
      place->records = place->ring->records;
    }
    __atomic_store_n(&place->state, place->ring ? LIVE : FREE, __ATOMIC_RELEASE);
    return place->ring;
  }
  return NULL;
}

int comm_file_give_back(culprit_ring* ring) {
  for (int i = 0; file.wanted && i < RINGS_MAX; ++i) {
    ring_place* place = &file.places[i];
    if (__atomic_load_n(&place->state, __ATOMIC_ACQUIRE) != LIVE || place->ring != ring) continue;
    __atomic_store_n(&place->state, GIVEN_BACK, __ATOMIC_RELEASE);
    return 1;
  }
  return 0;
}

uint64_t comm_file_dropped(void) { return __atomic_load_n(&file.dropped, __ATOMIC_RELAXED); }

void comm_file_finish(void) {
  struct timespec until;
  int stopped;
  if (file.process != getpid()) return;
  if (!__atomic_exchange_n(&file.running, 0, __ATOMIC_ACQ_REL)) return;
  after(&until, FINISH_MS);
  pthread_mutex_lock(&file.mutex);
  file.stopping = 1;
  pthread_cond_broadcast(&file.changed);
  while (!file.stopped && pthread_cond_timedwait(&file.changed, &file.mutex, &until) == 0) {
  }
  stopped = file.stopped;
  pthread_mutex_unlock(&file.mutex);
  if (stopped) pthread_join(file.thread, NULL);
}
