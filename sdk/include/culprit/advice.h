/* Advice: how the daemon of the host speaks to the loop of a training job (docs/formats.md section 3,
 * "Advice"). C99 and C++, header only, no dependencies but libc. Linux.
 *
 *   culprit_advice_reader reader = culprit_advice_open();
 *   culprit_advice advice;
 *   if (culprit_advice_read(&reader, NULL, "llama-70b-0412", step, &advice))
 *     ...                                        all ranks agree first: one alone may be the sick one
 *   culprit_advice_done(&reader, advice.id);     it is not given again
 *   culprit_advice_close(&reader);
 *
 * Conventions. One thread per reader. Nothing waits or prints; what is torn, of another version, or not the
 * daemon's own is no advice. A read compares eight mapped bytes; once a second it also looks for the file.
 * Advice from before culprit_advice_open() is not given: call it at the start of the process. */
#ifndef CULPRIT_ADVICE_H
#define CULPRIT_ADVICE_H

#include "culprit/ring.h"

#ifdef __cplusplus
extern "C" {
#endif

enum culprit_advice_kind {
  CULPRIT_ROLLBACK = 1,     /* to a checkpoint from before step `argument` */
  CULPRIT_SKIP_BATCHES = 2, /* so many */
  CULPRIT_LOWER_LR = 3,     /* by this factor */
  CULPRIT_CLIP = 4,         /* gradients to this norm */
  CULPRIT_CHECK_RANK = 5,
  CULPRIT_SAVE_NOW = 6,
  CULPRIT_STOP = 7
};

typedef struct culprit_advice {
  uint64_t id; /* greater: newer */
  double argument;
  int64_t effective_step;
  uint64_t made_ns; /* CLOCK_BOOTTIME */
  uint32_t lasts_ms;
  uint16_t kind; /* enum culprit_advice_kind */
} culprit_advice;

/* Private to these functions. */
typedef struct culprit_advice_reader {
  const uint64_t* words; /* of the mapped record; NULL: none */
  uint64_t read;         /* the sequence of what was read last */
  uint64_t done;
  uint64_t begin_ns, look_ns;
  dev_t device;
  ino_t inode;
  culprit_advice current; /* id 0: none */
} culprit_advice_reader;
static inline uint64_t culprit_boot_ns_(void) {
  struct timespec now;
  clock_gettime(CLOCK_BOOTTIME, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static inline uint64_t culprit_fnv1a_(const void* data, size_t size) {
  const unsigned char* bytes = (const unsigned char*)data;
  uint64_t value = 0xcbf29ce484222325u;
  size_t at;
  for (at = 0; at < size; ++at) value = (value ^ bytes[at]) * 0x100000001b3u;
  return value;
}

static inline culprit_advice_reader culprit_advice_open(void) {
  culprit_advice_reader reader;
  memset(&reader, 0, sizeof reader);
  reader.begin_ns = culprit_boot_ns_();
  return reader;
}

/* Of 64 bytes that do not change. Returns 1, or 0: no advice. */
static inline int culprit_advice_decode_(const unsigned char* bytes, culprit_advice* out) {
  uint64_t sequence, sum;
  uint16_t version;
  memcpy(&sequence, bytes, sizeof sequence);
  memcpy(&version, bytes + 12, sizeof version);
  memcpy(&out->kind, bytes + 14, sizeof out->kind);
  memcpy(&out->id, bytes + 16, sizeof out->id);
  memcpy(&out->argument, bytes + 24, sizeof out->argument);
  memcpy(&out->effective_step, bytes + 32, sizeof out->effective_step);
  memcpy(&out->made_ns, bytes + 40, sizeof out->made_ns);
  memcpy(&out->lasts_ms, bytes + 48, sizeof out->lasts_ms);
  memcpy(&sum, bytes + 56, sizeof sum);
  if (!sequence || (sequence & 1) || memcmp(bytes + 8, "CPAD", 4) != 0 || version != 1) return 0;
  if (!out->kind || out->kind > CULPRIT_STOP || !out->id || out->id >> 63) return 0;
  if (!(out->argument - out->argument == 0) || out->effective_step < 0) return 0; /* NaN, infinite */
  return sum == culprit_fnv1a_(bytes + 8, 48);
}

static inline void culprit_advice_close(culprit_advice_reader* reader) {
  if (reader->words) munmap((void*)(uintptr_t)reader->words, 64);
  reader->words = NULL;
  reader->inode = 0;
}

/* Maps the record if it is there and another one. Refuses links, and what others own or may write. */
static inline void culprit_advice_look_(culprit_advice_reader* reader, const char* folder, const char* job) {
  char path[512], parent[512];
  struct stat rings, own, found;
  void* mapped;
  int descriptor;
  const char* name = job && *job ? job : "default";
  int length = snprintf(parent, sizeof parent, "%s/advice", folder ? folder : CULPRIT_RING_FOLDER);
  if (length < 0 || (size_t)length >= sizeof parent) return;
  length = snprintf(path, sizeof path, "%s/%lu-%016llx", parent, (unsigned long)geteuid(),
                    (unsigned long long)culprit_fnv1a_(name, strlen(name)));
  if (length < 0 || (size_t)length >= sizeof path || lstat(path, &found) != 0) return;
  if (reader->words && found.st_dev == reader->device && found.st_ino == reader->inode) return;
  if (stat(folder ? folder : CULPRIT_RING_FOLDER, &rings) != 0 || lstat(parent, &own) != 0) return;
  if (!S_ISDIR(own.st_mode) || (own.st_uid != rings.st_uid && own.st_uid != 0) || (own.st_mode & 022)) return;
  descriptor = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  if (descriptor < 0) return;
  if (fstat(descriptor, &found) == 0 && S_ISREG(found.st_mode) && found.st_size == 64 &&
      (found.st_uid == rings.st_uid || found.st_uid == 0) && !(found.st_mode & 022)) {
    mapped = mmap(NULL, 64, PROT_READ, MAP_SHARED, descriptor, 0);
    if (mapped != MAP_FAILED) {
      culprit_advice_close(reader);
      reader->words = (const uint64_t*)mapped;
      reader->device = found.st_dev;
      reader->inode = found.st_ino;
      reader->read = 0;
    }
  }
  close(descriptor);
}

/* What is torn is left for the next read. */
static inline void culprit_advice_take_(culprit_advice_reader* reader, uint64_t sequence) {
  uint64_t copy[8];
  culprit_advice found;
  memcpy(copy, reader->words, sizeof copy);
  __atomic_thread_fence(__ATOMIC_ACQUIRE);
  if ((sequence & 1) || copy[0] != sequence || __atomic_load_n(reader->words, __ATOMIC_RELAXED) != sequence)
    return;
  reader->read = sequence;
  if (!culprit_advice_decode_((const unsigned char*)copy, &found)) return;
  if (found.id > reader->done && found.made_ns >= reader->begin_ns) reader->current = found;
}

/* 1: `advice` is set; 0: none for this step. `folder`: of the rings, or NULL; `job`: as the daemon names
 * it. */
static inline int culprit_advice_read(culprit_advice_reader* reader, const char* folder, const char* job,
                                      int64_t step, culprit_advice* advice) {
  const uint64_t now = culprit_boot_ns_();
  uint64_t sequence;
  if (now >= reader->look_ns) {
    reader->look_ns = now + 1000000000u;
    culprit_advice_look_(reader, folder, job);
  }
  if (!reader->words) return 0;
  sequence = __atomic_load_n(reader->words, __ATOMIC_ACQUIRE);
  if (sequence != reader->read) culprit_advice_take_(reader, sequence);
  if (!reader->current.id || step < reader->current.effective_step) return 0;
  if (now > reader->current.made_ns + (uint64_t)reader->current.lasts_ms * 1000000u) {
    reader->done = reader->current.id;
    reader->current.id = 0;
    return 0;
  }
  *advice = reader->current;
  return 1;
}

/* Advice up to this id is not given again. */
static inline void culprit_advice_done(culprit_advice_reader* reader, uint64_t id) {
  if (id > reader->done) reader->done = id;
  if (reader->current.id <= reader->done) reader->current.id = 0;
}

#ifdef __cplusplus
}
#endif
#endif
