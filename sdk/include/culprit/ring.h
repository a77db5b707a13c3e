/* Rings: how a training process hands its communication records to the daemon of its host. C99 and C++,
 * header only, no dependencies but libc. Linux.
 *
 *   culprit_ring_options options = {sizeof options, NULL, "llama-70b-0412", rank, device, 0};
 *   culprit_ring* ring = culprit_ring_create(&options, error, sizeof error);
 *   culprit_record record = culprit_record_of(CULPRIT_ALL_REDUCE, CULPRIT_DP);
 *   record.start_ns = culprit_now_ns();
 *   ...                                          the operation itself
 *   record.end_ns = culprit_now_ns();
 *   culprit_ring_push(ring, &record);            some nanoseconds; never waits, calls or allocates
 *   culprit_ring_close(ring);
 *
 * Conventions.
 * 1. One ring belongs to one thread: only that thread pushes and closes. A thread that ends closes its ring.
 * 2. The job never waits for the daemon and never fails because of it. A full ring (the daemon is slow,
 *    stopped or absent) drops the new record and counts it. If the folder does not exist (no daemon on this
 *    host), create returns NULL, and push and close accept NULL.
 * 3. After fork() the child has no ring: push has no effect there; the child creates its own.
 * 4. Structs of options begin with their own size, so that they can grow at their end: set `size` to sizeof.
 *    Pointer arguments are borrowed for the call.
 * 5. On failure create returns NULL with errno and a sentence in error[0..error_size). Nothing here exits or
 *    prints.
 * 6. The file outlives the process: the daemon drains and removes it. While its ring is open, the process
 *    holds an advisory lock on it. By the lock the daemon knows, also across containers, that the producer
 *    lives. A process that opens and closes the file a second time loses the lock.
 * 7. The file has mode 0660 if the folder passes on its group (setgid: mode 3777, group of the daemon), so
 *    that the daemon can read it and advance the read counter; else 0600. Never more: a user with write
 *    access could truncate the file, and that would kill the process that maps it.
 * 8. In strict C99 (-std=c99) include this before any header of the system, or define _DEFAULT_SOURCE. */
#ifndef CULPRIT_RING_H
#define CULPRIT_RING_H

#if !defined(_GNU_SOURCE) && !defined(_DEFAULT_SOURCE)
#define _DEFAULT_SOURCE 1
#endif

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#if !defined(__USE_MISC) && defined(__GLIBC__)
#error "include culprit/ring.h before any header of the system, or define _DEFAULT_SOURCE"
#endif

#ifdef __cplusplus
extern "C" {
#endif

#define CULPRIT_RING_FOLDER "/dev/shm/culprit" /* as the daemon's [trace] rings */
#define CULPRIT_RING_CAPACITY 16384u           /* 1 MiB: the daemon reads every 10 to 200 ms */
#define CULPRIT_RING_CAPACITY_MAX 1048576u     /* the daemon refuses larger ones */
#define CULPRIT_UNKNOWN 0xffffffffu            /* of step, peer and device */

enum culprit_op {
  CULPRIT_JOIN = 0,
  CULPRIT_ALL_REDUCE = 1,
  CULPRIT_ALL_GATHER = 2,
  CULPRIT_REDUCE_SCATTER = 3,
  CULPRIT_BROADCAST = 4,
  CULPRIT_REDUCE = 5,
  CULPRIT_ALL_TO_ALL = 6,
  CULPRIT_SEND = 7,
  CULPRIT_RECV = 8,
  CULPRIT_BARRIER = 9,
  CULPRIT_GATHER = 10,
  CULPRIT_SCATTER = 11
};

enum culprit_group {
  CULPRIT_GROUP_UNKNOWN = 0,
  CULPRIT_WORLD = 1,
  CULPRIT_DP = 2,
  CULPRIT_TP = 3,
  CULPRIT_PP = 4,
  CULPRIT_EP = 5,
  CULPRIT_CP = 6,
  CULPRIT_EDP = 7
};

enum culprit_flags { CULPRIT_DEVICE_TIMES = 1 }; /* start and end are on the device's clock */

/* One operation of one rank. It may be pushed at entry (end_ns 0) and again at exit. */
typedef struct culprit_record {
  uint64_t start_ns; /* entry into the operation, culprit_now_ns() */
  uint64_t end_ns;   /* exit; 0 while unfinished */
  uint64_t comm;     /* communicator id, the same on all of its ranks */
  uint64_t seq;   /* number of the operation in the communicator, from 0; send, recv: between the two ranks */
  uint64_t bytes; /* moved per rank; 0: unknown */
  uint32_t rank;  /* global; push sets no field */
  uint32_t step;  /* training iteration, or CULPRIT_UNKNOWN */
  uint32_t peer;  /* global rank, of send and recv; else CULPRIT_UNKNOWN */
  uint32_t comm_size; /* ranks in the communicator */
  uint16_t op;        /* enum culprit_op */
  uint8_t group;      /* enum culprit_group */
  uint8_t flags;      /* enum culprit_flags */
  uint32_t device;    /* local index, or CULPRIT_UNKNOWN */
} culprit_record;

typedef struct culprit_ring_options {
  size_t size;        /* sizeof(culprit_ring_options) */
  const char* folder; /* NULL: CULPRIT_RING_FOLDER */
  const char* job;    /* at most 47 bytes count; NULL: the daemon determines it */
  uint32_t rank;      /* global, or CULPRIT_UNKNOWN */
  uint32_t device;    /* local index, or CULPRIT_UNKNOWN */
  uint32_t capacity;  /* records, a power of two; 0: CULPRIT_RING_CAPACITY */
} culprit_ring_options;

/* The first page of the file (docs/formats.md). Counts are since creation, each on its own cache line. */
typedef struct culprit_ring_header {
  char magic[8]; /* "CULPRING" */
  uint32_t version;
  uint32_t record_size;
  uint64_t capacity;
  char unused_24[40];
  uint64_t written; /* by the producer, release */
  char unused_72[56];
  uint64_t read; /* by the daemon */
  char unused_136[56];
  uint64_t dropped; /* by the producer */
  char unused_200[56];
  char job[48];
  char unused_304[16];
  uint32_t rank;
  uint32_t device;
  char unused_328[3768];
} culprit_ring_header;

#define CULPRIT_RING_ASSERT(name, condition) typedef char culprit_assert_##name[(condition) ? 1 : -1]
CULPRIT_RING_ASSERT(record, sizeof(culprit_record) == 64 && offsetof(culprit_record, op) == 56 &&
                                offsetof(culprit_record, device) == 60);
CULPRIT_RING_ASSERT(header, sizeof(culprit_ring_header) == 4096);
CULPRIT_RING_ASSERT(counts, offsetof(culprit_ring_header, written) == 64 &&
                                offsetof(culprit_ring_header, read) == 128 &&
                                offsetof(culprit_ring_header, dropped) == 192);
CULPRIT_RING_ASSERT(identity, offsetof(culprit_ring_header, job) == 256 &&
                                  offsetof(culprit_ring_header, rank) == 320 &&
                                  offsetof(culprit_ring_header, device) == 324);
#undef CULPRIT_RING_ASSERT

/* Private to these functions. It is in a page that the kernel wipes in the child of a fork, so the child
 * finds a ring without records. The page costs nothing per push; a check of the pid would. */
typedef struct culprit_ring {
  culprit_ring_header* header;
  culprit_record* records; /* NULL: closed, or the child of a fork */
  uint64_t mask;           /* capacity - 1 */
  uint64_t written;
  uint64_t
      read_seen; /* the daemon's count as last looked at: its cache line is left alone until it is reached */
  uint64_t dropped;
  size_t mapped;
  int descriptor;
} culprit_ring;

/* Wall clock in nanoseconds since the Unix epoch; some 20-25 ns. */
static inline uint64_t culprit_now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* A record whose other fields are unknown yet. */
static inline culprit_record culprit_record_of(enum culprit_op op, enum culprit_group group) {
  culprit_record record;
  memset(&record, 0, sizeof record);
  record.rank = record.step = record.peer = record.device = CULPRIT_UNKNOWN;
  record.op = (uint16_t)op;
  record.group = (uint8_t)group;
  return record;
}

static inline void culprit_ring_fail_(char* error, size_t error_size, const char* subject, const char* what) {
  const int saved = errno;
  if (error && error_size) snprintf(error, error_size, "%s: %s", subject, what ? what : strerror(saved));
  errno = saved;
}

/* Creates the file under its temporary name: locked, sized, with every page allocated (so that a full disk
 * fails here, not with SIGBUS at a push). Returns the descriptor, or -1. */
static inline int culprit_ring_file_(const char* path, const char* folder, off_t size) {
  struct stat status;
  struct flock lock;
  int descriptor, failed;
  if (stat(folder, &status) != 0) return -1;
  descriptor = open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (descriptor < 0) return -1;
  memset(&lock, 0, sizeof lock);
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  /* Some file systems refuse it; then the daemon checks the process instead. */
  (void)fcntl(descriptor, F_SETLK, &lock);
  failed = posix_fallocate(descriptor, 0, size);
  if (!failed && (status.st_mode & S_ISGID) && fchmod(descriptor, 0660) != 0) failed = errno;
  if (!failed) return descriptor;
  unlink(path);
  close(descriptor);
  errno = failed;
  return -1;
}

static inline void culprit_ring_header_(culprit_ring_header* header, const culprit_ring_options* options,
                                        uint64_t capacity) {
  size_t length = 0;
  while (options->job && length < sizeof header->job - 1 && options->job[length]) ++length;
  memcpy(header->magic, "CULPRING", sizeof header->magic);
  header->version = 1;
  header->record_size = sizeof(culprit_record);
  header->capacity = capacity;
  if (length) memcpy(header->job, options->job, length);
  header->rank = options->rank;
  header->device = options->device;
}

/* Allocates the page of culprit_ring itself. */
static inline culprit_ring* culprit_ring_page_(void) {
  void* page = mmap(NULL, sizeof(culprit_ring), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) return NULL;
#ifdef MADV_WIPEONFORK
  (void)madvise(page, sizeof(culprit_ring), MADV_WIPEONFORK);
#endif
  return (culprit_ring*)page;
}

/* Maps the file and renames it. Returns 0, or -1 with errno; `ring` keeps the partial state. */
static inline int culprit_ring_open_(culprit_ring* ring, const culprit_ring_options* options,
                                     const char* making, const char* path) {
  void* mapped =
      mmap(NULL, ring->mapped, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, ring->descriptor, 0);
  if (mapped == MAP_FAILED) return -1;
  ring->header = (culprit_ring_header*)mapped;
  culprit_ring_header_(ring->header, options, ring->mask + 1);
  if (rename(making, path) != 0) {
    const int failed = errno;
    munmap(mapped, ring->mapped);
    errno = failed;
    return -1;
  }
  ring->records = (culprit_record*)(void*)((char*)mapped + sizeof(culprit_ring_header));
  return 0;
}

/* Creates a ring for the calling thread, or returns NULL. */
static inline culprit_ring* culprit_ring_create(const culprit_ring_options* options, char* error,
                                                size_t error_size) {
  char path[512], making[520];
  struct timespec boot;
  culprit_ring* ring;
  const char* folder = options->folder ? options->folder : CULPRIT_RING_FOLDER;
  const uint64_t capacity = options->capacity ? options->capacity : CULPRIT_RING_CAPACITY;
  int length;
  if (options->size < sizeof *options || (capacity & (capacity - 1)) ||
      capacity > CULPRIT_RING_CAPACITY_MAX) {
    errno = EINVAL;
    culprit_ring_fail_(error, error_size, "ring",
                       "size or capacity of the options is wrong (a power of two)");
    return NULL;
  }
  /* <start> is the creation time on the boot clock. It makes the name unique; a process younger than the
   * ring has only reused the pid. */
  clock_gettime(CLOCK_BOOTTIME, &boot);
  length =
      snprintf(path, sizeof path, "%s/%ld-%ld-%llu.ring", folder, (long)getpid(), (long)syscall(SYS_gettid),
               (unsigned long long)boot.tv_sec * 1000000000u + (unsigned long long)boot.tv_nsec);
  if (length < 0 || (size_t)length >= sizeof path) {
    errno = ENAMETOOLONG;
    culprit_ring_fail_(error, error_size, "ring", "the folder's name is too long");
    return NULL;
  }
  snprintf(making, sizeof making, "%s.tmp", path);
  ring = culprit_ring_page_();
  if (!ring) {
    culprit_ring_fail_(error, error_size, folder, NULL);
    return NULL;
  }
  ring->mask = capacity - 1;
  ring->mapped = sizeof(culprit_ring_header) + (size_t)capacity * sizeof(culprit_record);
  ring->descriptor = culprit_ring_file_(making, folder, (off_t)ring->mapped);
  if (ring->descriptor >= 0 && culprit_ring_open_(ring, options, making, path) == 0) return ring;
  culprit_ring_fail_(error, error_size, folder, NULL);
  if (ring->descriptor >= 0) {
    const int failed = errno;
    unlink(making);
    close(ring->descriptor);
    errno = failed;
  }
  {
    const int failed = errno;
    munmap(ring, sizeof *ring);
    errno = failed;
  }
  return NULL;
}

/* The daemon's read counter. Loaded twice: another process writes it, and a torn value must not free records
 * that are unread. */
static inline uint64_t culprit_ring_read_(const culprit_ring_header* header) {
  const uint64_t one = __atomic_load_n(&header->read, __ATOMIC_ACQUIRE);
  const uint64_t two = __atomic_load_n(&header->read, __ATOMIC_ACQUIRE);
  return one < two ? one : two;
}

/* Whether there is no room. An impossible count (another program wrote to the file) means no room. */
static inline int culprit_ring_full_(culprit_ring* ring) {
  const uint64_t read = culprit_ring_read_(ring->header);
  if (read > ring->read_seen && read <= ring->written) ring->read_seen = read;
  return ring->written - ring->read_seen > ring->mask;
}

/* 1: taken; 0: dropped and counted, because the ring is full or absent. Wait-free. */
static inline int culprit_ring_push(culprit_ring* ring, const culprit_record* record) {
  if (!ring || !ring->records) return 0;
  if (ring->written - ring->read_seen > ring->mask && culprit_ring_full_(ring)) {
    __atomic_store_n(&ring->header->dropped, ++ring->dropped, __ATOMIC_RELEASE);
    return 0;
  }
  memcpy(&ring->records[ring->written & ring->mask], record, sizeof *record);
  __atomic_store_n(&ring->header->written, ++ring->written, __ATOMIC_RELEASE);
  return 1;
}

/* Records dropped so far. */
static inline uint64_t culprit_ring_dropped(const culprit_ring* ring) { return ring ? ring->dropped : 0; }

/* Pushed records stay for the daemon, which removes the file. */
static inline void culprit_ring_close(culprit_ring* ring) {
  if (!ring) return;
  if (ring->records) {
    munmap(ring->header, ring->mapped);
    close(ring->descriptor);
  }
  munmap(ring, sizeof *ring);
}

#ifdef __cplusplus
}
#endif
#endif
