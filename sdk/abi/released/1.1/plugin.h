/* Detectors as plugins: a shared library that finds faults which only its author can see. C11 or C++11, no
 * dependency but libc. An operator copies the library into a folder of `plugins` in culpritd.toml.
 *
 *   static const culprit_plugin plugin = {sizeof plugin, describe, create};
 *   CULPRIT_EXPORT const culprit_plugin* culprit_plugin_entry_v1(void) { return &plugin; }
 *
 * The daemon calls describe, then create. The detector then gets events in batches (observe) and calls at a
 * fixed interval (tick), and passes what it finds to culprit_host.emit.
 *
 * Growth. Version 1 lasts: members and values are added, never changed. Each struct begins with `size`, its
 * size where it was compiled, and grows at its end. Read a member that is newer than 1.0 only after
 * CULPRIT_HAS. Arrays are arrays of pointers, so that their structs can grow. Ignore unknown kinds of events.
 *
 * Ownership. Every pointer that crosses the border is borrowed: valid for the duration of the call, unless
 * its comment names a longer life. Copy a text that is needed later. Texts are UTF-8 and end with NUL; a NULL
 * text is an empty one. Neither side frees what the other one allocated.
 *
 * Threads. [detector]: calls of one detector come one at a time, from one thread. [any]: from any thread,
 * between the begin of create and the end of destroy. A detector may have threads of its own.
 *
 * Errors. Functions return 0 or a negative CULPRIT_ERROR_*. A detector whose function fails is restarted.
 * An exception must not cross the border (culprit/plugin.hpp keeps them in).
 *
 * Place. By default each plugin has a process of its own, with limits of memory, time and findings
 * (culprit_budget). Standard output and error of the process go to the daemon's log. */
#ifndef CULPRIT_PLUGIN_H
#define CULPRIT_PLUGIN_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define CULPRIT_ABI_MAJOR 1
#define CULPRIT_ABI_MINOR 1

#if defined(__GNUC__)
#define CULPRIT_EXPORT __attribute__((visibility("default")))
#else
#define CULPRIT_EXPORT
#endif

/* Whether the side that made *p knows the member: CULPRIT_HAS(host, culprit_host, extension). */
#define CULPRIT_HAS(p, type, member) ((p)->size >= offsetof(type, member) + sizeof((p)->member))

#define CULPRIT_NO_TIME INT64_MIN /* times are ns since 1970, UTC */
#define CULPRIT_NONE (-1)         /* of a rank, device, step or peer: unknown, or none */

enum {
  CULPRIT_OK = 0,
  CULPRIT_ERROR = -1,         /* no other fits */
  CULPRIT_ERROR_INVALID = -2, /* an argument is wrong; the daemon's log says which */
  CULPRIT_ERROR_LIMIT = -3,   /* over a limit of culprit_budget: dropped and counted */
  CULPRIT_ERROR_MEMORY = -4   /* out of memory */
};

/* ---- Events: what the daemon reads on its host ---- */

enum {
  CULPRIT_EVENT_LOG = 1,    /* a line of a log: culprit_line */
  CULPRIT_EVENT_METRIC = 2, /* a number of a training loop: culprit_metric */
  CULPRIT_EVENT_COMM = 3,   /* an operation of a communicator: culprit_comm */
  CULPRIT_EVENT_STEP = 4,   /* a heartbeat or a phase of a loop: culprit_step */
  CULPRIT_EVENT_STACK = 5,  /* the stacks of a process: culprit_stack */
  CULPRIT_EVENT_KERNEL = 6, /* a message of the kernel: culprit_line */
  CULPRIT_EVENT_COUNTER =
      7 /* a number of the host (a metric with "host/" before its name): culprit_counter */
};
#define CULPRIT_BIT(kind) (UINT64_C(1) << (kind))

/* A line of a log or of the kernel. Version 1. */
typedef struct culprit_line {
  uint64_t size;
  const char* text;              /* without its newline; bytes as written, perhaps not UTF-8 */
  uint64_t text_bytes;           /* without the NUL at the end; the text may contain others */
  const char* message_template;  /* the message without header, "<*>" for each variable part */
  const char* const* parameters; /* the variable parts, in order */
  uint64_t parameter_count;
  uint64_t line; /* of the source, from 1; 0: unknown */
} culprit_line;

/* One number of a rank. Version 1. */
typedef struct culprit_metric {
  uint64_t size;
  const char* name; /* "loss", "grad_norm/layer.3" */
  double value;     /* may be NaN or infinite */
  int64_t step;     /* from 0 */
} culprit_metric;

/* One communication operation of a rank. Version 1. */
typedef struct culprit_comm {
  uint64_t size;
  uint64_t start_ns;  /* the rank's entry, on its host's clock */
  uint64_t end_ns;    /* its exit; 0: not finished */
  uint64_t comm;      /* the same on all ranks of the communicator */
  uint64_t seq;       /* number within the communicator; of send and receive: within the pair */
  uint64_t bytes;     /* moved by this rank; 0: unknown */
  int64_t step;       /* CULPRIT_NONE: unknown */
  int64_t peer;       /* global rank, of send and receive */
  uint32_t comm_size; /* ranks of the communicator */
  uint32_t op;        /* enum culprit_op of culprit/ring.h */
  uint32_t group;     /* enum culprit_group of culprit/ring.h */
  uint32_t flags;     /* bit 0: times are of the device */
} culprit_comm;

enum { CULPRIT_STEP_AT = 0, CULPRIT_STEP_BEGIN = 1, CULPRIT_STEP_END = 2 };

/* Progress of a loop. Version 1. */
typedef struct culprit_step {
  uint64_t size;
  const char* phase; /* "evaluation", "checkpoint"; "": a heartbeat at `step` */
  int64_t step;      /* CULPRIT_NONE: unknown */
  uint32_t state;    /* CULPRIT_STEP_AT, or begin or end of the phase */
  uint32_t reserved; /* 0 */
} culprit_step;

typedef struct culprit_thread {
  uint64_t size;
  const char* name;
  const char* const* frames; /* from the innermost outwards, "train.py:forward:120" */
  uint64_t frame_count;
} culprit_thread;

/* The stacks of one process at one time. Version 1. */
typedef struct culprit_stack {
  uint64_t size;
  const culprit_thread* const* threads;
  uint64_t thread_count;
} culprit_stack;

/* One number of the host. Version 1. */
typedef struct culprit_counter {
  uint64_t size;
  const char* name; /* "psi_cpu_some_avg10" */
  double value;
} culprit_counter;

typedef struct culprit_event {
  uint64_t size;
  uint32_t kind;      /* CULPRIT_EVENT_* */
  uint32_t version;   /* of the body, from 1; a higher one has the members of the lower ones */
  int64_t time_ns;    /* as the event states it, else when it was read */
  const char* job;    /* "": of every job on the host, or unknown */
  const char* host;   /* the host that it is about */
  const char* source; /* the file as configured, "kernel", "trace" or "ring" */
  int64_t rank;       /* global */
  int64_t device;     /* local to the host */
  const void* body;   /* the struct of `kind` */
} culprit_event;

/* ---- Findings: what a detector reports ---- */

/* Words of a finding; culprit/plugin_test.h and `culprit plugin check` refuse others. New ones may come with
 * a minor version.
 *   category:  hardware, user (the job's own code, configuration or data), framework, platform, unknown
 *   component: gpu, gpu_memory, nvlink, pcie, network, nccl_comm, host_memory, host_kernel, storage, cpu,
 *              cuda_runtime, driver, framework, user_code, user_config, user_data, dependency, platform,
 *              numeric, unknown
 *   symptom:   launch_failure, crash, hang, slowdown, numeric (wrong numbers), other
 *   action:    isolate (take the host out of service), check, restart, rollback (to an earlier checkpoint),
 *              retry, mitigate, fix, none
 *   restart:   never (the same will happen again), elsewhere (not on this host or device), older (an earlier
 *              checkpoint), later (a service has to answer again), same (nothing has to differ), unknown */

enum {
  CULPRIT_INFO = 0,
  CULPRIT_WARNING = 1, /* degrades the job, or may */
  CULPRIT_ERR = 2,     /* the job probably fails or computes wrong numbers */
  CULPRIT_FATAL = 3    /* no job goes on after it */
};

enum {
  CULPRIT_HAPPENED = 0, /* an event: it does not end */
  CULPRIT_RAISED = 1,   /* a state that began; emit it once, not at each tick */
  CULPRIT_CLEARED = 2   /* the state ended: the one with the same id, host, job, peer, part, rank, device */
};

/* A number that belongs to a finding. */
typedef struct culprit_value {
  uint64_t size;
  const char* name; /* "temperature_c" */
  double value;
} culprit_value;

/* Invalid (nothing is reported, emit returns CULPRIT_ERROR_INVALID): an id that is not 1 to 64 characters
 * of [a-z0-9._-], or begins with "culprit."; an empty title; a severity, state or confidence out of range;
 * a rank or device below -1, or a device above 63; a time before 1970; a host, job or peer over 256 bytes;
 * more than 64 values, one without a name, or two of one name. Texts over 2,000 bytes are cut, and shorter if
 * all of the finding takes over 64 KiB. */
typedef struct culprit_detector_finding {
  uint64_t size;
  const char* id;        /* the fault, stable over versions: "gpu.thermal_throttle" */
  const char* title;     /* the fault in a few words, without names and numbers */
  const char* text;      /* what was observed, with names and numbers: the line of evidence */
  const char* category;  /* a word of the table above; "": unknown, as is a word that is not in it */
  const char* component; /* the same */
  const char* symptom;   /* the same; "": other */
  const char* action;    /* the same; "": none */
  const char* remedy;    /* what to do, for a person */
  const char* host;      /* "": this host */
  const char* job;       /* "": every job on this host */
  const char* peer;      /* of a link: the host at its other end; "": no link */
  const char* part;      /* of the host or device: "mlx5_0/1", "/mnt/data", "nvlink 3"; "": the whole */
  int64_t rank;          /* global */
  int64_t device;        /* local to the host */
  int64_t time_ns;       /* CULPRIT_NO_TIME: now */
  double confidence;     /* probability that the fault is there, 0 to 1 */
  uint32_t severity;     /* CULPRIT_INFO to CULPRIT_FATAL */
  uint32_t state;        /* CULPRIT_HAPPENED, _RAISED, _CLEARED */
  const culprit_value* const* values;
  uint64_t value_count;
  const char* restart; /* a word of the table above; "" or NULL: by category and action. Since 1.1 */
} culprit_detector_finding;

/* ---- The daemon, as the detector sees it ---- */

/* The limits of this detector, and what it has used of them. 0: no limit. */
typedef struct culprit_budget {
  uint64_t size;
  uint64_t memory_bytes; /* of the process; in process: a wish */
  uint64_t memory_used;
  uint64_t cpu_ppm; /* millionths of a core, averaged over a minute */
  uint64_t call_ns; /* longest time of one call; after that the process is killed */
  uint64_t findings_per_minute;
  uint64_t findings_left; /* of this minute */
} culprit_budget;

typedef struct culprit_host culprit_host;
struct culprit_host {
  uint64_t size;
  void* context;       /* the daemon's */
  const char* version; /* of Culprit, "0.1.0"; lives as long as the host */
  const char* name;    /* of this host; lives as long as the host */
  /* [any] Adds a line to the daemon's log. `severity`: CULPRIT_INFO to CULPRIT_FATAL. */
  void (*log)(const culprit_host* host, uint32_t severity, const char* text);
  /* [detector] Reports a finding. Copies all of it. */
  int32_t (*emit)(const culprit_host* host, const culprit_detector_finding* finding);
  /* [any] The text of an option: from the configuration, else its default. NULL: no such option. Lives as
   * long as the host. */
  const char* (*option)(const culprit_host* host, const char* name);
  /* [any] Fills in as much of *budget as its size covers. */
  int32_t (*budget)(const culprit_host* host, culprit_budget* budget);
  /* [any] A further interface, "NAME/VERSION"; NULL: unknown. Lives as long as the host. 1.0 has none. */
  const void* (*extension)(const culprit_host* host, const char* id);
};

/* ---- The detector ---- */

typedef struct culprit_detector culprit_detector;
struct culprit_detector {
  uint64_t size;
  void* context; /* the detector's */
  /* [detector] Takes a batch of events of the kinds described, oldest first per source. NULL if the detector
   * describes no kinds. */
  int32_t (*observe)(culprit_detector* detector, const culprit_event* const* events, uint64_t count);
  /* [detector] Called every tick_ms. `now_ns`: wall clock. NULL if tick_ms is 0. */
  int32_t (*tick)(culprit_detector* detector, int64_t now_ns);
  /* [detector] The last call. Frees the detector. */
  void (*destroy)(culprit_detector* detector);

  /* Optional from here: NULL if absent. */

  /* [detector] Forgets what was observed, as if just created. For later versions: those of the daemon up to
   * 0.1 never call it. They destroy the detector and create another. */
  int32_t (*reset)(culprit_detector* detector);
  /* [detector] Writes the state for a later load_state into buffer[0..capacity) if it fits. Returns its size
   * in bytes, or a negative error. Called with NULL and 0 to learn the size. Used when a new version of the
   * library takes over, and at a stop of the daemon. At most 1 MiB. */
  int64_t (*save_state)(culprit_detector* detector, void* buffer, uint64_t capacity);
  /* [detector] Continues from the state of an earlier instance, perhaps of another version; the first call,
   * if at all. An error means: start without it. */
  int32_t (*load_state)(culprit_detector* detector, const void* state, uint64_t bytes);
  /* [any] A further interface, as in culprit_host. */
  const void* (*extension)(culprit_detector* detector, const char* id);
};

/* ---- The plugin ---- */

enum {
  CULPRIT_OPTION_TEXT = 0,
  CULPRIT_OPTION_INTEGER = 1,
  CULPRIT_OPTION_NUMBER = 2,
  CULPRIT_OPTION_BOOLEAN = 3
};

/* An option of the plugin: `options = { NAME = value }` in its `[[plugin]]` table of culpritd.toml. The
 * daemon checks name, type and range before create. */
typedef struct culprit_option {
  uint64_t size;
  const char* name;          /* [a-z0-9_], at most 64 */
  const char* default_value; /* as text: "85", "true" */
  const char* about;         /* one sentence, with its unit */
  double minimum, maximum;   /* of integers and numbers, inclusive; equal: no range */
  uint32_t type;             /* CULPRIT_OPTION_* */
  uint32_t reserved;         /* 0 */
} culprit_option;

/* All of it constant, and alive as long as the library. */
typedef struct culprit_description {
  uint64_t size;
  uint32_t abi_major; /* CULPRIT_ABI_MAJOR and _MINOR of the header in use */
  uint32_t abi_minor;
  const char* name;    /* [a-z0-9_], 1 to 64; unique on a host; the file is NAME.so */
  const char* version; /* of the plugin, "1.4.2" */
  const char* vendor;
  const char* about; /* one sentence */
  uint64_t events;   /* CULPRIT_BIT of each wanted kind; others are not delivered */
  uint64_t tick_ms;  /* interval of tick, 100 to 86,400,000 (a day); 0: no ticks */
  const culprit_option* const* options;
  uint64_t option_count;
} culprit_description;

typedef struct culprit_plugin {
  uint64_t size;
  /* Cheap, without side effects; may be called without create. */
  const culprit_description* (*describe)(void);
  /* Returns a detector, or NULL after a line to host->log that says why not. `host` lives until destroy ends.
   * At most one detector lives in a process of its own; in process there may be several. */
  culprit_detector* (*create)(const culprit_host* host);
} culprit_plugin;

/* The only symbol that a plugin exports. Returns a constant. */
CULPRIT_EXPORT const culprit_plugin* culprit_plugin_entry_v1(void);

/* No struct has padding at its end, where a new member would be overlooked. Sizes are in sdk/abi/v1.txt. */
#if defined(__cplusplus)
#define CULPRIT_ASSERT_SIZE(type, bytes) static_assert(sizeof(void*) != 8 || sizeof(type) == (bytes), #type)
#else
#define CULPRIT_ASSERT_SIZE(type, bytes) _Static_assert(sizeof(void*) != 8 || sizeof(type) == (bytes), #type)
#endif
CULPRIT_ASSERT_SIZE(culprit_line, 56);
CULPRIT_ASSERT_SIZE(culprit_metric, 32);
CULPRIT_ASSERT_SIZE(culprit_comm, 80);
CULPRIT_ASSERT_SIZE(culprit_step, 32);
CULPRIT_ASSERT_SIZE(culprit_thread, 32);
CULPRIT_ASSERT_SIZE(culprit_stack, 24);
CULPRIT_ASSERT_SIZE(culprit_counter, 24);
CULPRIT_ASSERT_SIZE(culprit_event, 72);
CULPRIT_ASSERT_SIZE(culprit_value, 24);
CULPRIT_ASSERT_SIZE(culprit_detector_finding, 168);
CULPRIT_ASSERT_SIZE(culprit_budget, 56);
CULPRIT_ASSERT_SIZE(culprit_host, 72);
CULPRIT_ASSERT_SIZE(culprit_detector, 72);
CULPRIT_ASSERT_SIZE(culprit_option, 56);
CULPRIT_ASSERT_SIZE(culprit_description, 80);
CULPRIT_ASSERT_SIZE(culprit_plugin, 24);

#ifdef __cplusplus
}
#endif
#endif
