/* The parts of NCCL's profiler interface that the plugin reads: our own declarations of the binary interface,
 * versions 3 to 6. Versions 5 and 6 are equal in these parts. The checks below pin the known sizes and
 * offsets. */
#ifndef CULPRIT_NCCL_ABI_H
#define CULPRIT_NCCL_ABI_H

#include <stddef.h>
#include <stdint.h>

enum nccl_event { NCCL_COLL = 2, NCCL_P2P = 4, NCCL_KERNEL_CHANNEL = 64 };
enum nccl_state { NCCL_KERNEL_CHANNEL_STOP = 22 };
enum nccl_result { NCCL_SUCCESS = 0 };
enum nccl_log { NCCL_LOG_INFO = 3 };

/* Version 3 starts coll and p2p with the communicator's name and hash, 16 bytes; version 4 moved them to
 * init. */
typedef struct nccl_descriptor_v3 {
  uint8_t type;
  void* parent;
  int rank;
  union {
    struct {
      const char* comm_name;
      uint64_t comm_hash, sequence;
      const char* function;
      const void *send_buffer, *receive_buffer;
      size_t count;
      int root;
      const char* datatype;
      uint8_t channels, warps;
      const char *algorithm, *protocol;
    } coll;
    struct {
      const char* comm_name;
      uint64_t comm_hash;
      const char* function;
      void* buffer;
      const char* datatype;
      size_t count;
      int peer;
    } p2p;
    struct {
      uint8_t channel;
    } kernel;
  } of;
} nccl_descriptor_v3;

#define NCCL_UNION(more)                             \
  union {                                            \
    struct {                                         \
      uint64_t sequence;                             \
      const char* function;                          \
      const void *send_buffer, *receive_buffer;      \
      size_t count;                                  \
      int root;                                      \
      const char* datatype;                          \
      uint8_t channels, warps;                       \
      const char *algorithm, *protocol;              \
      more                                           \
    } coll;                                          \
    struct {                                         \
      const char* function;                          \
      void* buffer;                                  \
      const char* datatype;                          \
      size_t count;                                  \
      int peer;                                      \
      uint8_t channels; /* v4 under 2.28: not set */ \
      more                                           \
    } p2p;                                           \
    struct {                                         \
      uint8_t channel;                               \
      uint64_t timer; /* ns, on the GPU's clock */   \
    } kernel;                                        \
  }

typedef struct nccl_descriptor_v4 {
  uint8_t type;
  void* parent;
  int rank;
  NCCL_UNION() of;
} nccl_descriptor_v4;

typedef struct nccl_descriptor_v5 {
  uint64_t type;
  void* parent;
  int rank;
  NCCL_UNION(void* parent_group;) of;
} nccl_descriptor_v5;

typedef union nccl_state_args {
  struct {
    uint64_t timer;
  } kernel;
} nccl_state_args;

typedef void (*nccl_log_function)(int level, unsigned long flags, const char* file, int line,
                                  const char* format, ...);

/* The table of each version; only the parameters of `init` differ. */
#define NCCL_PROFILER(version, descriptor, ...)                                \
  typedef struct nccl_profiler_##version {                                     \
    const char* name;                                                          \
    int (*init)(__VA_ARGS__);                                                  \
    int (*start_event)(void* context, void** handle, descriptor* event);       \
    int (*stop_event)(void* handle);                                           \
    int (*record_event_state)(void* handle, int state, nccl_state_args* args); \
    int (*finalize)(void* context);                                            \
  } nccl_profiler_##version

NCCL_PROFILER(v3, nccl_descriptor_v3, void** context, int* mask);
NCCL_PROFILER(v4, nccl_descriptor_v4, void** context, int* mask, const char* comm_name, uint64_t comm_hash,
              int nodes, int ranks, int rank, nccl_log_function log);
NCCL_PROFILER(v5, nccl_descriptor_v5, void** context, uint64_t comm_id, int* mask, const char* comm_name,
              int nodes, int ranks, int rank, nccl_log_function log);
typedef nccl_profiler_v5 nccl_profiler_v6;

#ifdef __cplusplus
#define NCCL_ASSERT(condition) static_assert(condition, #condition)
#else
#define NCCL_ASSERT(condition) _Static_assert(condition, #condition)
#endif
NCCL_ASSERT(sizeof(nccl_profiler_v4) == 48);
NCCL_ASSERT(sizeof(nccl_descriptor_v3) == 120);
NCCL_ASSERT(sizeof(nccl_descriptor_v4) == 104);
NCCL_ASSERT(sizeof(nccl_descriptor_v5) == 112);
#define NCCL_ASSERT_HEAD(d) \
  NCCL_ASSERT(offsetof(d, parent) == 8 && offsetof(d, rank) == 16 && offsetof(d, of) == 24)
NCCL_ASSERT_HEAD(nccl_descriptor_v3);
NCCL_ASSERT_HEAD(nccl_descriptor_v4);
NCCL_ASSERT_HEAD(nccl_descriptor_v5);
#define NCCL_ASSERT_UNION(d)                                                                \
  NCCL_ASSERT(offsetof(d, of.coll.sequence) == 24 && offsetof(d, of.coll.function) == 32 && \
              offsetof(d, of.coll.count) == 56 && offsetof(d, of.coll.root) == 64 &&        \
              offsetof(d, of.coll.datatype) == 72 && offsetof(d, of.coll.channels) == 80 && \
              offsetof(d, of.coll.warps) == 81 && offsetof(d, of.coll.algorithm) == 88 &&   \
              offsetof(d, of.coll.protocol) == 96);                                         \
  NCCL_ASSERT(offsetof(d, of.p2p.function) == 24 && offsetof(d, of.p2p.buffer) == 32 &&     \
              offsetof(d, of.p2p.datatype) == 40 && offsetof(d, of.p2p.count) == 48 &&      \
              offsetof(d, of.p2p.peer) == 56 && offsetof(d, of.p2p.channels) == 60);        \
  NCCL_ASSERT(offsetof(d, of.kernel.channel) == 24 && offsetof(d, of.kernel.timer) == 32)
NCCL_ASSERT_UNION(nccl_descriptor_v4);
NCCL_ASSERT_UNION(nccl_descriptor_v5);
NCCL_ASSERT(offsetof(nccl_descriptor_v5, of.coll.parent_group) == 104);
NCCL_ASSERT(offsetof(nccl_descriptor_v5, of.p2p.parent_group) == 64);

#endif
