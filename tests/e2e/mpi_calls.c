/* Every call that libculprit-mpi.so stands before, with its result checked: mpi_calls, at 4 ranks. Exit
 * status 1 and a line where a result is wrong. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RANKS = 4, ROUNDS = 20 };

static int rank, wrong;

static void expect(int holds, const char* what) {
  if (holds) return;
  fprintf(stderr, "rank %d: wrong: %s\n", rank, what);
  wrong = 1;
}

static void collectives(MPI_Comm comm) {
  const int counts[RANKS] = {1, 1, 1, 1}, places[RANKS] = {0, 1, 2, 3};
  int one = rank + 1, sum = 0, all[RANKS], out[RANKS];
  int mine[RANKS] = {rank, rank, rank, rank};
  MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm);
  expect(sum == 10, "Allreduce");
  sum = 0;
  MPI_Reduce(&one, &sum, 1, MPI_INT, MPI_SUM, 2, comm);
  expect(sum == (rank == 2 ? 10 : 0), "Reduce");
  sum = rank == 1 ? 77 : 0;
  MPI_Bcast(&sum, 1, MPI_INT, 1, comm);
  expect(sum == 77, "Bcast");
  MPI_Allgather(&one, 1, MPI_INT, all, 1, MPI_INT, comm);
  expect(all[0] == 1 && all[3] == 4, "Allgather");
  all[rank] = rank * 10;
  MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, all, 1, MPI_INT, comm);
  expect(all[3] == 30, "Allgather in place");
  MPI_Allgatherv(&one, 1, MPI_INT, all, counts, places, MPI_INT, comm);
  expect(all[2] == 3, "Allgatherv");
  MPI_Alltoall(mine, 1, MPI_INT, out, 1, MPI_INT, comm);
  expect(out[0] == 0 && out[3] == 3, "Alltoall");
  MPI_Alltoallv(mine, counts, places, MPI_INT, out, counts, places, MPI_INT, comm);
  expect(out[1] == 1, "Alltoallv");
  MPI_Alltoallv(MPI_IN_PLACE, NULL, NULL, MPI_DATATYPE_NULL, out, counts, places, MPI_INT, comm);
  expect(out[1] == rank, "Alltoallv in place");
  MPI_Reduce_scatter(mine, &sum, counts, MPI_INT, MPI_SUM, comm);
  expect(sum == 6, "Reduce_scatter");
  MPI_Reduce_scatter_block(mine, &sum, 1, MPI_INT, MPI_SUM, comm);
  expect(sum == 6, "Reduce_scatter_block");
  MPI_Gather(&one, 1, MPI_INT, all, 1, MPI_INT, 0, comm);
  expect(rank != 0 || all[3] == 4, "Gather");
  if (rank == 0) memcpy(all, places, sizeof all);
  if (rank == 0)
    MPI_Scatter(all, 1, MPI_INT, MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, 0, comm);
  else
    MPI_Scatter(NULL, 0, MPI_DATATYPE_NULL, &sum, 1, MPI_INT, 0, comm);
  expect(rank == 0 || sum == rank, "Scatter");
  MPI_Barrier(comm);
}

static void nonblocking_collectives(MPI_Comm comm) {
  int one = rank + 1, sum = 0, gathered[RANKS], flag = 0, index = -1;
  MPI_Request requests[3];
  MPI_Iallreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm, &requests[0]);
  MPI_Iallgather(&one, 1, MPI_INT, gathered, 1, MPI_INT, comm, &requests[1]);
  MPI_Ibarrier(comm, &requests[2]);
  MPI_Waitany(3, requests, &index, MPI_STATUS_IGNORE);
  expect(index >= 0 && index < 3 && requests[index] == MPI_REQUEST_NULL, "Waitany");
  while (!flag) MPI_Testall(3, requests, &flag, MPI_STATUSES_IGNORE);
  expect(sum == 10 && gathered[1] == 2, "Testall");
}

static void pairs(MPI_Comm comm) {
  const int right = (rank + 1) % RANKS, left = (rank + RANKS - 1) % RANKS;
  int out = rank, in = -1, flag = 0, some = 0, done = 0, indices[2];
  MPI_Request requests[2];
  MPI_Status status, statuses[2];
  MPI_Sendrecv(&out, 1, MPI_INT, right, 1, &in, 1, MPI_INT, left, 1, comm, MPI_STATUS_IGNORE);
  expect(in == left, "Sendrecv");
  in = rank;
  MPI_Sendrecv_replace(&in, 1, MPI_INT, right, 2, MPI_ANY_SOURCE, 2, comm, &status);
  expect(in == left && status.MPI_SOURCE == left, "Sendrecv_replace from anybody");
  MPI_Sendrecv(&out, 1, MPI_INT, MPI_PROC_NULL, 1, &in, 1, MPI_INT, MPI_PROC_NULL, 1, comm, &status);
  expect(status.MPI_SOURCE == MPI_PROC_NULL, "Sendrecv with nobody");
  if (rank % 2 == 0) MPI_Ssend(&out, 1, MPI_INT, right, 3, comm);
  if (rank % 2 == 1) MPI_Recv(&in, 1, MPI_INT, MPI_ANY_SOURCE, 3, comm, MPI_STATUS_IGNORE);
  expect(rank % 2 == 0 || in == left, "Recv from anybody");
  if (rank % 2 == 0) MPI_Send(&out, 1, MPI_INT, right, 4, comm);
  if (rank % 2 == 1) MPI_Recv(&in, 1, MPI_INT, left, 4, comm, &status);
  MPI_Irecv(&in, 1, MPI_INT, left, 5, comm, &requests[0]);
  MPI_Isend(&out, 1, MPI_INT, right, 5, comm, &requests[1]);
  while (!flag) MPI_Test(&requests[0], &flag, &status);
  MPI_Wait(&requests[1], MPI_STATUS_IGNORE);
  expect(in == left && status.MPI_SOURCE == left, "Test");
  MPI_Irecv(&in, 1, MPI_INT, MPI_ANY_SOURCE, 6, comm, &requests[0]);
  MPI_Issend(&out, 1, MPI_INT, right, 6, comm, &requests[1]);
  while (done < 2) {
    MPI_Waitsome(2, requests, &some, indices, statuses);
    done += some;
  }
  expect(in == left, "Waitsome");
  MPI_Irecv(&in, 1, MPI_INT, MPI_ANY_SOURCE, 7, comm, &requests[0]);
  MPI_Isend(&out, 1, MPI_INT, right, 7, comm, &requests[1]);
  MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
  MPI_Isend(&out, 1, MPI_INT, right, 8, comm, &requests[0]);
  MPI_Request_free(&requests[0]);
  MPI_Recv(&in, 1, MPI_INT, left, 8, comm, MPI_STATUS_IGNORE);
}

/* More at a time than are followed. */
static void many(MPI_Comm comm) {
  enum { MANY = 10000 };
  static int in[MANY], out[MANY];
  static MPI_Request requests[2 * MANY];
  for (int i = 0; i < MANY; ++i) {
    out[i] = i;
    MPI_Irecv(&in[i], 1, MPI_INT, (rank + RANKS - 1) % RANKS, 9, comm, &requests[i]);
    MPI_Isend(&out[i], 1, MPI_INT, (rank + 1) % RANKS, 9, comm, &requests[MANY + i]);
  }
  MPI_Waitall(2 * MANY, requests, MPI_STATUSES_IGNORE);
  expect(in[0] == 0 && in[MANY - 1] == MANY - 1, "Waitall of many");
}

int main(int count, char** arguments) {
  int provided, size;
  MPI_Comm halves, turned, square;
  const int dims[2] = {2, 2}, periods[2] = {0, 0}, remain[2] = {1, 0};
  MPI_Init_thread(&count, &arguments, MPI_THREAD_MULTIPLE, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (size != RANKS) MPI_Abort(MPI_COMM_WORLD, 2);
  for (int round = 0; round < ROUNDS; ++round) {
    MPI_Comm copy;
    MPI_Comm_dup(MPI_COMM_WORLD, &copy);
    MPI_Comm_set_name(copy, "dp");
    collectives(copy);
    nonblocking_collectives(copy);
    pairs(copy);
    MPI_Comm_free(&copy);
  }
  many(MPI_COMM_WORLD);
  MPI_Comm_split(MPI_COMM_WORLD, rank % 2, -rank, &halves);
  MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &turned);
  MPI_Cart_create(MPI_COMM_WORLD, 2, dims, periods, 0, &square);
  MPI_Comm line;
  MPI_Cart_sub(square, remain, &line);
  MPI_Barrier(halves);
  MPI_Barrier(turned);
  MPI_Barrier(line);
  int other = -1, me = rank, there;
  MPI_Comm_rank(turned, &there);
  MPI_Sendrecv(&me, 1, MPI_INT, (there + 1) % RANKS, 0, &other, 1, MPI_INT, (there + 3) % RANKS, 0, turned,
               MPI_STATUS_IGNORE);
  expect(other == (rank + 1) % RANKS, "Sendrecv in a turned communicator");
  MPI_Comm between;
  MPI_Intercomm_create(halves, 0, MPI_COMM_WORLD, rank % 2 ? 2 : 3, 0, &between);
  MPI_Barrier(between); /* not traced */
  MPI_Comm_free(&between);
  MPI_Comm_free(&line);
  MPI_Comm_free(&square);
  MPI_Comm_free(&turned);
  MPI_Comm_free(&halves);
  MPI_Finalize();
  return wrong;
}
