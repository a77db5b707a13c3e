#include "tracer.h"

#include <pthread.h>
#include <stdlib.h>

#include "comm_file.h"

/* Threads of a process with records at a time. PyTorch has one or two communicating threads, and NCCL one
 * proxy thread per communicator; the daemon reads 1,024 rings per user. */
enum { RINGS_MAX = 128 };
/* Time until a thread without a ring tries again: a daemon that is installed or started later then sees the
 * job. */
enum { RETRY_S = 30 };

typedef struct thread_ring {
  culprit_ring* ring;
  time_t tried_s; /* CLOCK_MONOTONIC_COARSE; 0: never */
  int ended;      /* the thread is ending: it creates no ring */
} thread_ring;

static struct {
  pthread_once_t once;
  tracer_options options;
  char job[48], folder[448];
  pthread_key_t key; /* its destructor closes the ring of a thread that ends */
  int ready;         /* release, when all fields above are set */
  int rings;         /* threads with a ring */
  uint64_t dropped;  /* of ended threads, and records without a ring */
  uint32_t step;
} tracer = {.once = PTHREAD_ONCE_INIT, .step = CULPRIT_UNKNOWN};

static __thread thread_ring own;
static const tracer_options* starting;

static uint32_t number(const char* name) {
  const char* text = getenv(name);
  char* end;
  unsigned long value;
  if (!text || *text < '0' || *text > '9') return CULPRIT_UNKNOWN;
  errno = 0;
  value = strtoul(text, &end, 10);
  return errno || *end || value >= CULPRIT_UNKNOWN ? CULPRIT_UNKNOWN : (uint32_t)value;
}

/* The host's index of the local'th visible GPU. Names ("GPU-…", "MIG-…") and shorter lists give the local
 * rank, which is right if the launcher shows all GPUs. */
static uint32_t visible_device(uint32_t local) {
  const char* text = getenv("CUDA_VISIBLE_DEVICES");
  uint32_t found[64], count = 0;
  if (!text) text = getenv("ROCR_VISIBLE_DEVICES");
  while (text && *text >= '0' && *text <= '9' && count < 64) {
    char* end;
    const unsigned long value = strtoul(text, &end, 10);
    if (value > 1023 || (*end && *end != ',')) return local;
    found[count++] = (uint32_t)value;
    text = *end ? end + 1 : end;
  }
  if (count == 1) return found[0];
  return local < count ? found[local] : local;
}

/* A local rank is a device only if devices exist: visible to this process, or on this host. */
static int has_devices(void) {
  static const char* const shown[] = {"CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES",
                                      "ASCEND_RT_VISIBLE_DEVICES"};
  int known = 0;
  for (size_t i = 0; i < sizeof shown / sizeof *shown; ++i) {
    const char* text = getenv(shown[i]);
    if (text && *text && strcmp(text, "-1") != 0) return 1;
    known |= text != NULL;
  }
  return !known && (access("/dev/nvidiactl", F_OK) == 0 || access("/dev/kfd", F_OK) == 0 ||
                    access("/dev/davinci_manager", F_OK) == 0);
}

tracer_launch tracer_launched(void) {
  static const char* const kinds[][3] = {
      {"RANK", "WORLD_SIZE", "LOCAL_RANK"},
      {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK"},
      {"SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID"},
      {"PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID"},
  };
  tracer_launch launch = {CULPRIT_UNKNOWN, CULPRIT_UNKNOWN, CULPRIT_UNKNOWN};
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; ++i) {
    launch.rank = number(kinds[i][0]);
    launch.size = number(kinds[i][1]);
    launch.device = number(kinds[i][2]);
    if (launch.rank < launch.size && launch.size != CULPRIT_UNKNOWN) break;
    launch.rank = launch.size = launch.device = CULPRIT_UNKNOWN;
  }
  if (has_devices())
    launch.device = visible_device(launch.device);
  else
    launch.device = CULPRIT_UNKNOWN;
  return launch;
}

static void close_own(void* ignored) {
  culprit_ring* ring = own.ring;
  (void)ignored;
  own.ring = NULL;
  own.ended = 1;
  if (!ring) return;
  __atomic_fetch_sub(&tracer.rings, 1, __ATOMIC_RELAXED);
  if (comm_file_give_back(ring)) return; /* the writer counts and closes it after reading all records */
  __atomic_fetch_add(&tracer.dropped, culprit_ring_dropped(ring), __ATOMIC_RELAXED);
  culprit_ring_close(ring);
}

static void copy(char* to, size_t size, const char* from) {
  size_t length = from ? strnlen(from, size) : 0;
  if (length >= size) length = 0; /* a cut name would be another name */
  if (length) memcpy(to, from, length);
  to[length] = 0;
}

static void start(void) {
  const char* job = getenv("CULPRIT_JOB");
  const char* folder = getenv("CULPRIT_RINGS");
  const char* files = getenv("CULPRIT_COMM_DIR");
  tracer.options = *starting;
  copy(tracer.job, sizeof tracer.job, job && *job ? job : getenv("SLURM_JOB_ID"));
  copy(tracer.folder, sizeof tracer.folder, folder && *folder ? folder : CULPRIT_RING_FOLDER);
  if (files && *files) {
    const comm_file_options options = {files, tracer.options.name, tracer.job};
    comm_file_start(&options);
  }
  if (pthread_key_create(&tracer.key, close_own) == 0) __atomic_store_n(&tracer.ready, 1, __ATOMIC_RELEASE);
}

void tracer_start(const tracer_options* options) {
  static pthread_mutex_t one = PTHREAD_MUTEX_INITIALIZER;
  pthread_mutex_lock(&one);
  starting = options;
  pthread_once(&tracer.once, start);
  pthread_mutex_unlock(&one);
}

static culprit_ring* make_ring(void) {
  culprit_ring_options options = {sizeof options, tracer.folder, tracer.job, 0, 0, 0};
  const int before = errno;
  culprit_ring* ring;
  options.rank = tracer.options.rank;
  options.device = tracer.options.device;
  options.capacity = tracer.options.capacity;
  ring = comm_file_wanted() ? comm_file_ring(&options) : culprit_ring_create(&options, NULL, 0);
  errno = before; /* the job's own calls read errno */
  return ring;
}

static culprit_ring* ring_of_thread(void) {
  struct timespec now;
  if (own.ended || !__atomic_load_n(&tracer.ready, __ATOMIC_ACQUIRE)) return NULL;
  clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
  if (own.tried_s && now.tv_sec - own.tried_s < RETRY_S) return NULL;
  own.tried_s = now.tv_sec + !now.tv_sec;
  if (__atomic_fetch_add(&tracer.rings, 1, __ATOMIC_RELAXED) < RINGS_MAX) {
    own.ring = make_ring();
    if (own.ring && pthread_setspecific(tracer.key, &own) == 0) return own.ring;
    if (own.ring) culprit_ring_close(own.ring);
    own.ring = NULL;
  }
  __atomic_fetch_sub(&tracer.rings, 1, __ATOMIC_RELAXED);
  return NULL;
}

int tracer_push(const culprit_record* record) {
  culprit_ring* ring = own.ring;
  if (!ring) ring = ring_of_thread();
  if (ring) return culprit_ring_push(ring, record); /* the writer counts its own */
  tracer_count_dropped();
  return 0;
}

void tracer_count_dropped(void) { __atomic_fetch_add(&tracer.dropped, 1, __ATOMIC_RELAXED); }

uint64_t tracer_dropped(void) {
  return __atomic_load_n(&tracer.dropped, __ATOMIC_RELAXED) + culprit_ring_dropped(own.ring) +
         comm_file_dropped();
}

void tracer_set_step(uint32_t step) { __atomic_store_n(&tracer.step, step, __ATOMIC_RELAXED); }
uint32_t tracer_step(void) { return __atomic_load_n(&tracer.step, __ATOMIC_RELAXED); }

void tracer_finish(void) { comm_file_finish(); }

/* Also for a program that ends without destroying its communicators. */
__attribute__((destructor)) static void at_exit(void) { tracer_finish(); }
