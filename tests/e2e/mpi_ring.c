/* A training loop as the tests of libculprit-mpi.so want it: mpi_ring STEPS WORK_US [SLOW_RANK FACTOR]. Each
 * step works (sleeps, as a rank does whose GPU works: more ranks than cores must not disturb each other),
 * passes 64 KiB on along the ring, sums over its pair and over all ranks. Rank 0 tells the median step in
 * microseconds and the operations of a step: "STEP_US OPERATIONS". */
#define _GNU_SOURCE
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { PAYLOAD = 16384, OPERATIONS = 6 };

static float from[PAYLOAD], to[PAYLOAD];

static void work(long microseconds) {
  struct timespec pause = {microseconds / 1000000, microseconds % 1000000 * 1000};
  nanosleep(&pause, NULL);
}

static int by_size(const void* a, const void* b) {
  const double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}

int main(int count, char** arguments) {
  int rank, size;
  MPI_Comm pair;
  if (count != 3 && count != 5) return 2;
  MPI_Init(&count, &arguments);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Comm_split(MPI_COMM_WORLD, rank / 2, rank, &pair);
  const int steps = atoi(arguments[1]);
  const int slow = count == 5 && atoi(arguments[3]) == rank;
  const long work_us = (long)(atol(arguments[2]) * (slow ? atof(arguments[4]) : 1));
  double* took = malloc((size_t)steps * sizeof *took);
  for (int step = 0; step < steps; ++step) {
    const double began = MPI_Wtime();
    MPI_Request both[2];
    MPI_Pcontrol(3, step);
    work(work_us);
    MPI_Irecv(to, PAYLOAD, MPI_FLOAT, (rank + size - 1) % size, 0, MPI_COMM_WORLD, &both[0]);
    MPI_Isend(from, PAYLOAD, MPI_FLOAT, (rank + 1) % size, 0, MPI_COMM_WORLD, &both[1]);
    MPI_Waitall(2, both, MPI_STATUSES_IGNORE);
    MPI_Allreduce(MPI_IN_PLACE, from, 1024, MPI_FLOAT, MPI_SUM, pair);
    MPI_Iallreduce(from, to, 1024, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD, &both[0]);
    MPI_Wait(&both[0], MPI_STATUS_IGNORE);
    MPI_Bcast(to, 16, MPI_FLOAT, 0, pair);
    MPI_Allreduce(from, to, PAYLOAD, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    took[step] = (MPI_Wtime() - began) * 1e6;
  }
  qsort(took, (size_t)steps, sizeof *took, by_size);
  if (rank == 0) printf("%.1f %d\n", steps ? took[steps / 2] : 0.0, OPERATIONS);
  free(took);
  MPI_Comm_free(&pair);
  MPI_Finalize();
  return 0;
}
