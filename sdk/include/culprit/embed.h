/* libculprit: the engine of Culprit to embed in another program. C99, no dependencies.
 *
 *   culprit_job* job = culprit_create(NULL, error, sizeof error);
 *   const culprit_source info = {sizeof info, "node-3.log", "node-3", -1, -1};
 *   int source = culprit_open(job, &info);
 *   culprit_feed(job, source, bytes, size);      as often as bytes arrive; lines may be cut anywhere
 *   while (culprit_poll(job, &finding)) ...      what was found so far
 *   char* json = culprit_report(job);            the report, one line of JSON; free with culprit_free
 *   culprit_destroy(job);
 *
 * Conventions. A job belongs to one thread at a time; different jobs are independent. Pointers given in are
 * borrowed for the call. Structs begin with their own size, so that they can grow at their end: set `size`
 * to sizeof. Text is UTF-8 or what the log holds. Nothing here exits, prints, reads a file or a clock.
 * Functions that can fail give NULL or a negative number and leave a sentence with culprit_error. */
#ifndef CULPRIT_EMBED_H
#define CULPRIT_EMBED_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(_WIN32)
#define CULPRIT_API
#else
#define CULPRIT_API __attribute__((visibility("default")))
#endif

typedef struct culprit_job culprit_job;

typedef struct culprit_options {
  size_t size;          /* sizeof(culprit_options) */
  const char* job_toml; /* text of a job.toml, or NULL */
  const char* pool;     /* text of a pool saved by `culprit pool build`, or NULL */
  int32_t utc_offset_s; /* zone of times that name none, seconds east of UTC */
  int32_t no_rules;     /* not 0: without the rules that are built in */
  const char* rules;    /* text of a rule file to use beside them, or NULL */
} culprit_options;

typedef struct culprit_source {
  size_t size;      /* sizeof(culprit_source) */
  const char* name; /* as the report shall name it, for example a path */
  const char* host; /* who writes it, or NULL: told by its lines, job_toml's host_pattern or the name */
  int64_t rank;     /* global rank, or -1: told likewise */
  int64_t local;    /* local device, or -1: told likewise */
} culprit_source;

/* A rule of severity error or fatal that fired, and its line. Strings live until the next call with the same
 * job. */
typedef struct culprit_finding {
  size_t size; /* set by the caller to sizeof(culprit_finding) */
  const char* title;
  const char* host; /* NULL: unknown */
  const char* source;
  uint64_t line;   /* from 1 */
  int64_t time_ns; /* INT64_MIN: unknown */
  const char* text;
} culprit_finding;

/* Version of the library: "0.1.0". */
CULPRIT_API const char* culprit_version(void);

/* A job, or NULL with a sentence in error[0..error_size). options may be NULL. */
CULPRIT_API culprit_job* culprit_create(const culprit_options* options, char* error, size_t error_size);
CULPRIT_API void culprit_destroy(culprit_job* job);

/* Opens a source of log text; gives its number, or -1 for a rank or device that is none. */
CULPRIT_API int culprit_open(culprit_job* job, const culprit_source* source);

/* More bytes of a source. 0, or -1 for a source that is not open. Where memory is out, here or in another
 * call, what was fed is lost in part, and the job is fit for culprit_destroy only. */
CULPRIT_API int culprit_feed(culprit_job* job, int source, const char* bytes, size_t size);

/* The source has ended: its last line counts even without a newline. 0 or -1. */
CULPRIT_API int culprit_close(culprit_job* job, int source);

/* 1 and the next finding, or 0 where there is none. */
CULPRIT_API int culprit_poll(culprit_job* job, culprit_finding* finding);

/* The report so far as one line of JSON, to be freed with culprit_free; NULL where memory is out. */
CULPRIT_API char* culprit_report(culprit_job* job);
CULPRIT_API void culprit_free(char* text);

/* The sentence of the last call with this job that failed; "" where none did. Lives until the next call. */
CULPRIT_API const char* culprit_error(const culprit_job* job);

#ifdef __cplusplus
}
#endif
#endif
