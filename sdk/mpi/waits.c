/* Calls that wait for requests or test them. */
#include "shim.h"

#define EXPORT __attribute__((visibility("default")))

/* Tracked requests per call, equal to the limit of all: 16 KiB of the caller's stack. Further ones count as
 * ended when MPI reuses their handles. */
enum { WAITED = 8192 };
/* Statuses for a call without statuses of its own that waits for receives from any source. */
enum { STATUSES = 256 };

typedef struct waiting {
  int count;
  uint16_t* taken;
  MPI_Status* statuses; /* filled by the call; NULL: none */
  MPI_Status* mine;     /* STATUSES of them */
} waiting;

static void take(waiting* w, const MPI_Request* asked) {
  int wants = 0;
  const int all = w->count;
  if (w->count > WAITED) w->count = WAITED;
  for (int i = 0; i < w->count; ++i) {
    w->taken[i] = shim_take(asked[i]);
    wants |= shim_wants_status(w->taken[i]);
  }
  if (wants && w->statuses == MPI_STATUSES_IGNORE && all <= STATUSES) w->statuses = w->mine;
}

/* The i'th request ended if the call reports it, or if MPI cleared its handle, as it does except for
 * persistent requests. */
static void settle(waiting* w, const MPI_Request* asked, int i, const MPI_Status* status, int over) {
  if (!w->taken[i]) return;
  if (over || asked[i] == MPI_REQUEST_NULL)
    shim_done(w->taken[i], status);
  else
    shim_put_back(w->taken[i]);
  w->taken[i] = 0;
}

static void settle_all(waiting* w, const MPI_Request* asked, int over) {
  for (int i = 0; i < w->count; ++i)
    settle(w, asked, i, w->statuses == MPI_STATUSES_IGNORE ? NULL : &w->statuses[i], over);
}

/* Ends the requests that the call lists, with their statuses in its order; the others stay pending. */
static void settle_some(waiting* w, const MPI_Request* asked, int over, const int* indices) {
  for (int i = 0; over != MPI_UNDEFINED && i < over; ++i)
    if (indices[i] >= 0 && indices[i] < w->count)
      settle(w, asked, indices[i], w->statuses == MPI_STATUSES_IGNORE ? NULL : &w->statuses[i], 1);
  settle_all(w, asked, 0);
}

#define ONE(request_pointer)                      \
  uint16_t taken = shim_take(*(request_pointer)); \
  waiting w = {1, &taken, NULL, NULL};            \
  MPI_Status mine;                                \
  int result;                                     \
  if (status == MPI_STATUS_IGNORE) status = &mine

EXPORT int MPI_Wait(MPI_Request* request, MPI_Status* status) {
  ONE(request);
  result = PMPI_Wait(request, status);
  settle(&w, request, 0, status, result == MPI_SUCCESS);
  return result;
}

EXPORT int MPI_Test(MPI_Request* request, int* flag, MPI_Status* status) {
  ONE(request);
  result = PMPI_Test(request, flag, status);
  settle(&w, request, 0, status, result == MPI_SUCCESS && *flag);
  return result;
}

#define MANY                                  \
  uint16_t taken[WAITED];                     \
  MPI_Status mine[STATUSES];                  \
  waiting w = {count, taken, statuses, mine}; \
  int result;                                 \
  take(&w, asked)

EXPORT int MPI_Waitall(int count, MPI_Request asked[], MPI_Status statuses[]) {
  MANY;
  result = PMPI_Waitall(count, asked, w.statuses);
  settle_all(&w, asked, result == MPI_SUCCESS);
  return result;
}

EXPORT int MPI_Testall(int count, MPI_Request asked[], int* flag, MPI_Status statuses[]) {
  MANY;
  result = PMPI_Testall(count, asked, flag, w.statuses);
  settle_all(&w, asked, result == MPI_SUCCESS && *flag);
  return result;
}

EXPORT int MPI_Waitsome(int count, MPI_Request asked[], int* over, int indices[], MPI_Status statuses[]) {
  MANY;
  result = PMPI_Waitsome(count, asked, over, indices, w.statuses);
  settle_some(&w, asked, result == MPI_SUCCESS ? *over : 0, indices);
  return result;
}

EXPORT int MPI_Testsome(int count, MPI_Request asked[], int* over, int indices[], MPI_Status statuses[]) {
  MANY;
  result = PMPI_Testsome(count, asked, over, indices, w.statuses);
  settle_some(&w, asked, result == MPI_SUCCESS ? *over : 0, indices);
  return result;
}

/* One of many, with a single status. */
#define ANY                                        \
  uint16_t taken[WAITED];                          \
  MPI_Status mine;                                 \
  waiting w = {count, taken, &mine, &mine};        \
  int result;                                      \
  if (status == MPI_STATUS_IGNORE) status = &mine; \
  take(&w, asked);                                 \
  w.statuses = MPI_STATUSES_IGNORE

EXPORT int MPI_Waitany(int count, MPI_Request asked[], int* index, MPI_Status* status) {
  ANY;
  result = PMPI_Waitany(count, asked, index, status);
  if (result == MPI_SUCCESS && *index >= 0 && *index < w.count) settle(&w, asked, *index, status, 1);
  settle_all(&w, asked, 0);
  return result;
}

EXPORT int MPI_Testany(int count, MPI_Request asked[], int* index, int* flag, MPI_Status* status) {
  ANY;
  result = PMPI_Testany(count, asked, index, flag, status);
  if (result == MPI_SUCCESS && *flag && *index >= 0 && *index < w.count) settle(&w, asked, *index, status, 1);
  settle_all(&w, asked, 0);
  return result;
}

/* No call will wait for it. */
EXPORT int MPI_Request_free(MPI_Request* request) {
  shim_done(shim_take(*request), NULL);
  shim_forget(*request);
  return PMPI_Request_free(request);
}
