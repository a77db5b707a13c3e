/* libculprit: the engine of Culprit to embed in another program. C99, no dependencies.
 *
 *   culprit_job* job = culprit_create(NULL, error, sizeof error);
 *   const culprit_source info = {sizeof info, "node-3.log", "node-3", -1, -1};
 *   int source = culprit_open(job, &info);
 *   culprit_feed(job, source, bytes, size);      for each block of bytes; lines may be split anywhere
 *   while (culprit_poll(job, &finding)) ...      findings so far
 *   char* json = culprit_report(job);            the report, one line of JSON; free with culprit_free
 *   culprit_destroy(job);
 *
 * Conventions. A job belongs to one thread at a time; different jobs are independent. Pointers given in are
 * borrowed for the call. Structs begin with their own size, so that they can grow at their end: set `size`
 * to sizeof. Text is UTF-8, or as in the log. Nothing here exits, prints, reads a file or a clock. Functions
 * that fail return NULL or a negative number; culprit_error then has one sentence. */
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
  int32_t utc_offset_s; /* zone of times without one, seconds east of UTC */
  int32_t no_rules;     /* not 0: without the built-in rules */
  const char* rules;    /* text of an additional rule file, or NULL */
} culprit_options;

typedef struct culprit_source {
  size_t size;      /* sizeof(culprit_source) */
  const char* name; /* its name in the report, for example a path */
  const char* host; /* of the writer, or NULL: from its lines, host_pattern of job_toml, or name */
  int64_t rank;     /* global rank, or -1: from the same */
  int64_t local;    /* local device, or -1: from the same */
} culprit_source;

/* A match of a rule of severity error or fatal, and its line. Strings live until the next call with the same
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

/* Returns a job, or NULL with a sentence in error[0..error_size). options may be NULL. */
CULPRIT_API culprit_job* culprit_create(const culprit_options* options, char* error, size_t error_size);
CULPRIT_API void culprit_destroy(culprit_job* job);

/* Opens a source of log text. Returns its number, or -1 for an invalid rank or device. */
CULPRIT_API int culprit_open(culprit_job* job, const culprit_source* source);

/* Adds bytes to a source. Returns 0, or -1 for a source that is not open. If any call runs out of memory, a
 * part of the input is lost, and only culprit_destroy may be called. */
CULPRIT_API int culprit_feed(culprit_job* job, int source, const char* bytes, size_t size);

/* Ends a source: its last line counts even without a newline. Returns 0 or -1. */
CULPRIT_API int culprit_close(culprit_job* job, int source);

/* Returns 1 and the next finding, or 0 if there is none. */
CULPRIT_API int culprit_poll(culprit_job* job, culprit_finding* finding);

/* Returns the report so far as one line of JSON, to be freed with culprit_free; NULL if out of memory. */
CULPRIT_API char* culprit_report(culprit_job* job);
CULPRIT_API void culprit_free(char* text);

/* The error of the last failed call with this job; "" if none failed. Lives until the next call. */
CULPRIT_API const char* culprit_error(const culprit_job* job);

#ifdef __cplusplus
}
#endif
#endif
