/* Hands the records of a `.comm` file to the daemon as the processes that they are of would, at their pace:
 *
 *   ring_replay TRACE.comm FOLDER JOB RANK [SPEED [BEGIN]]
 *
 * One process is one rank. Times are moved so that the trace's first record is at BEGIN (nanoseconds since
 * the Unix epoch, the same for all ranks of a host, whose clock is one; else now), and divided by SPEED (1).
 * What never ended in the trace never ends: the process then waits to be killed. */
#include "culprit/ring.h"

#include <stdlib.h>

#define HEADER 128

static int by_end(const void* left, const void* right) {
  const culprit_record *a = (const culprit_record*)left, *b = (const culprit_record*)right;
  const uint64_t at = a->end_ns ? a->end_ns : a->start_ns, other = b->end_ns ? b->end_ns : b->start_ns;
  return at < other ? -1 : at > other;
}

static void wait_for(uint64_t due) {
  const uint64_t now = culprit_now_ns();
  struct timespec pause;
  if (due <= now) return;
  pause.tv_sec = (time_t)((due - now) / 1000000000u);
  pause.tv_nsec = (long)((due - now) % 1000000000u);
  nanosleep(&pause, NULL);
}

/* The rank's records, and when the trace begins. NULL where the file cannot be read. */
static culprit_record* read_records(const char* path, uint32_t rank, size_t* count, uint64_t* first) {
  FILE* file = fopen(path, "rb");
  culprit_record record, *records = NULL;
  size_t room = 0;
  if (!file || fseek(file, HEADER, SEEK_SET) != 0) return NULL;
  *first = UINT64_MAX;
  for (*count = 0; fread(&record, sizeof record, 1, file) == 1;) {
    if (record.start_ns < *first) *first = record.start_ns;
    if (record.rank != rank) continue;
    if (*count == room) records = (culprit_record*)realloc(records, (room = 2 * room + 64) * sizeof record);
    if (!records) break;
    records[(*count)++] = record;
  }
  fclose(file);
  return records;
}

int main(int argument_count, char** arguments) {
  char error[256];
  culprit_ring_options options = {sizeof options, NULL, NULL, CULPRIT_UNKNOWN, CULPRIT_UNKNOWN, 0};
  culprit_ring* ring;
  culprit_record* records;
  size_t count = 0, i;
  uint64_t first = 0, began;
  double speed;
  int unfinished = 0;
  if (argument_count < 5) return 2;
  options.folder = arguments[2];
  options.job = arguments[3];
  options.rank = (uint32_t)strtoul(arguments[4], NULL, 10);
  speed = argument_count > 5 ? strtod(arguments[5], NULL) : 1;
  records = read_records(arguments[1], options.rank, &count, &first);
  if (!records || count == 0 || speed <= 0) {
    fprintf(stderr, "ring_replay: %s: no records of rank %s\n", arguments[1], arguments[4]);
    return 1;
  }
  options.device = records[0].device;
  qsort(records, count, sizeof *records, by_end);
  ring = culprit_ring_create(&options, error, sizeof error);
  if (!ring) {
    fprintf(stderr, "ring_replay: %s\n", error);
    return 1;
  }
  began = argument_count > 6 ? strtoull(arguments[6], NULL, 10) : culprit_now_ns();
  for (i = 0; i < count; ++i) {
    culprit_record record = records[i];
    record.rank = record.device = CULPRIT_UNKNOWN; /* the ring says it */
    record.start_ns = began + (uint64_t)((double)(record.start_ns - first) / speed);
    if (record.end_ns) record.end_ns = began + (uint64_t)((double)(record.end_ns - first) / speed);
    unfinished |= !record.end_ns;
    wait_for(record.end_ns ? record.end_ns : record.start_ns);
    culprit_ring_push(ring, &record);
  }
  printf("end\n");
  fflush(stdout);
  while (unfinished) pause();
  culprit_ring_close(ring);
  return 0;
}
