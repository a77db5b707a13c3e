/* What calls of MPI take that have nothing to do: with libculprit-mpi.so and without, the difference is its
 * cost. mpi_cost [rounds], at one rank; "what median_ns p99_ns" for each operation, timed in groups of 16.
 * Between rounds it rests, as a program does that also works, so that a reader keeps up. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { GROUP = 16, GROUPS = 100 };

static double now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static void collective(void) {
  int data = 0;
  MPI_Bcast(&data, 1, MPI_INT, 0, MPI_COMM_SELF);
}

/* Two operations. */
static void exchange(void) {
  int in, out = 0;
  MPI_Request both[2];
  MPI_Irecv(&in, 1, MPI_INT, 0, 0, MPI_COMM_SELF, &both[0]);
  MPI_Isend(&out, 1, MPI_INT, 0, 0, MPI_COMM_SELF, &both[1]);
  MPI_Waitall(2, both, MPI_STATUSES_IGNORE);
}

static int by_size(const void* a, const void* b) {
  const double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}

static void measure(const char* what, void (*call)(void), int operations, int rounds) {
  const size_t count = (size_t)rounds * GROUPS;
  double* ns = malloc(count * sizeof *ns);
  if (!ns) exit(2);
  for (size_t i = 0; i < count; ++i) {
    const double before = now_ns();
    for (int g = 0; g < GROUP; ++g) call();
    ns[i] = (now_ns() - before) / GROUP / operations;
    if (i % GROUPS == 0) nanosleep(&(struct timespec){0, 30000000}, NULL);
  }
  qsort(ns, count, sizeof *ns, by_size);
  printf("%s %.1f %.1f\n", what, ns[count / 2], ns[count * 99 / 100]);
  free(ns);
}

int main(int count, char** arguments) {
  const int rounds = count > 1 ? atoi(arguments[1]) : 100;
  MPI_Init(&count, &arguments);
  measure("collective", collective, 1, rounds > 0 ? rounds : 1);
  measure("pair", exchange, 2, rounds > 0 ? rounds : 1);
  MPI_Finalize();
  return 0;
}
