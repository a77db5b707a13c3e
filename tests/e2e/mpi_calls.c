/* Every call that libculprit-mpi.so stands before, with its result checked: mpi_calls, at 4 ranks. Exit
 * status 1 and a line where a result is wrong. Steps 1 and 2 are those of `matched_late`. */
#define _GNU_SOURCE
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

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

static void collectives_of_unequal_parts(MPI_Comm comm) {
  const int counts[RANKS] = {1, 1, 1, 1}, places[RANKS] = {0, 1, 2, 3};
  const int in_bytes[RANKS] = {0, sizeof(int), 2 * sizeof(int), 3 * sizeof(int)};
  const MPI_Datatype types[RANKS] = {MPI_INT, MPI_INT, MPI_INT, MPI_INT};
  int one = rank + 1, got = 0, all[RANKS] = {0}, out[RANKS];
  int mine[RANKS] = {rank, rank, rank, rank};
  MPI_Request requests[5];
  MPI_Gatherv(&one, 1, MPI_INT, all, counts, places, MPI_INT, 3, comm);
  expect(rank != 3 || (all[0] == 1 && all[3] == 4), "Gatherv");
  if (rank == 3)
    MPI_Gatherv(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, all, counts, places, MPI_INT, 3, comm);
  else
    MPI_Gatherv(&one, 1, MPI_INT, NULL, NULL, NULL, MPI_DATATYPE_NULL, 3, comm);
  if (rank == 3)
    MPI_Scatterv(all, counts, places, MPI_INT, MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, 3, comm);
  else
    MPI_Scatterv(NULL, NULL, NULL, MPI_DATATYPE_NULL, &got, 1, MPI_INT, 3, comm);
  expect(rank == 3 || got == rank + 1, "Scatterv");
  MPI_Alltoallw(mine, counts, in_bytes, types, out, counts, in_bytes, types, comm);
  expect(out[0] == 0 && out[3] == 3, "Alltoallw");
  MPI_Alltoallw(MPI_IN_PLACE, NULL, NULL, NULL, out, counts, in_bytes, types, comm);
  expect(out[1] == rank, "Alltoallw in place");
  MPI_Scan(&one, &got, 1, MPI_INT, MPI_SUM, comm);
  expect(got == (rank + 1) * (rank + 2) / 2, "Scan");
  got = 0;
  MPI_Exscan(&one, &got, 1, MPI_INT, MPI_SUM, comm);
  expect(got == rank * (rank + 1) / 2, "Exscan");
  int gathered[RANKS] = {0}, scattered = 0, exchanged[RANKS], sum = 0, before = 0;
  MPI_Igatherv(&one, 1, MPI_INT, gathered, counts, places, MPI_INT, 0, comm, &requests[0]);
  MPI_Iscatterv(mine, counts, places, MPI_INT, &scattered, 1, MPI_INT, 2, comm, &requests[1]);
  MPI_Ialltoallw(mine, counts, in_bytes, types, exchanged, counts, in_bytes, types, comm, &requests[2]);
  MPI_Iscan(&one, &sum, 1, MPI_INT, MPI_SUM, comm, &requests[3]);
  MPI_Iexscan(&one, &before, 1, MPI_INT, MPI_SUM, comm, &requests[4]);
  MPI_Waitall(5, requests, MPI_STATUSES_IGNORE);
  expect(rank != 0 || gathered[3] == 4, "Igatherv");
  expect(scattered == 2 && exchanged[1] == 1, "Iscatterv, Ialltoallw");
  expect(sum - before == (rank ? one : sum), "Iscan, Iexscan");
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

static void further_nonblocking_collectives(MPI_Comm comm) {
  const int counts[RANKS] = {1, 1, 1, 1}, places[RANKS] = {0, 1, 2, 3};
  int root_value = rank == 1 ? 77 : 0;
  int one = rank + 1, sum = 0, part = 0, block = 0, mine[RANKS], scattered = 0;
  int gathered[RANKS] = {0}, all[RANKS], out[RANKS], exchanged[RANKS], some, over = 0, indices[9];
  MPI_Request requests[9];
  for (int i = 0; i < RANKS; ++i) mine[i] = rank;
  MPI_Ibcast(&root_value, 1, MPI_INT, 1, comm, &requests[0]);
  MPI_Ireduce(&one, &sum, 1, MPI_INT, MPI_SUM, 2, comm, &requests[1]);
  MPI_Iallgatherv(&one, 1, MPI_INT, all, counts, places, MPI_INT, comm, &requests[2]);
  MPI_Ialltoall(mine, 1, MPI_INT, out, 1, MPI_INT, comm, &requests[3]);
  MPI_Ialltoallv(mine, counts, places, MPI_INT, exchanged, counts, places, MPI_INT, comm, &requests[4]);
  MPI_Ireduce_scatter(mine, &part, counts, MPI_INT, MPI_SUM, comm, &requests[5]);
  MPI_Ireduce_scatter_block(mine, &block, 1, MPI_INT, MPI_SUM, comm, &requests[6]);
  MPI_Igather(&one, 1, MPI_INT, gathered, 1, MPI_INT, 0, comm, &requests[7]);
  MPI_Iscatter(mine, 1, MPI_INT, &scattered, 1, MPI_INT, 3, comm, &requests[8]);
  while (over < 9) {
    MPI_Testsome(9, requests, &some, indices, MPI_STATUSES_IGNORE);
    over += some;
  }
  expect(root_value == 77 && sum == (rank == 2 ? 10 : 0), "Ibcast, Ireduce");
  expect(all[2] == 3 && out[3] == 3 && exchanged[1] == 1, "Iallgatherv, Ialltoall, Ialltoallv");
  expect(part == 6 && block == 6, "Ireduce_scatter, Ireduce_scatter_block");
  expect((rank || gathered[3] == 4) && scattered == 3, "Igather, Iscatter");
}

static void sends_of_all_kinds(MPI_Comm comm) {
  static char room[2 * (sizeof(int) + MPI_BSEND_OVERHEAD)];
  const int right = (rank + 1) % RANKS, left = (rank + RANKS - 1) % RANKS;
  int in[4] = {-1, -1, -1, -1}, index, flag, over = 0, size;
  void* attached;
  MPI_Request requests[4], sends[2];
  MPI_Buffer_attach(room, sizeof room);
  for (int i = 0; i < 4; ++i) MPI_Irecv(&in[i], 1, MPI_INT, left, 40 + i, comm, &requests[i]);
  MPI_Barrier(comm); /* ready sends want their receives to be there */
  MPI_Rsend(&rank, 1, MPI_INT, right, 40, comm);
  MPI_Irsend(&rank, 1, MPI_INT, right, 41, comm, &sends[0]);
  MPI_Bsend(&rank, 1, MPI_INT, right, 42, comm);
  MPI_Ibsend(&rank, 1, MPI_INT, right, 43, comm, &sends[1]);
  while (over < 4) {
    MPI_Testany(4, requests, &index, &flag, MPI_STATUS_IGNORE);
    over += flag;
  }
  MPI_Waitall(2, sends, MPI_STATUSES_IGNORE);
  MPI_Buffer_detach(&attached, &size);
  for (int i = 0; i < 4; ++i) expect(in[i] == left, "Rsend, Irsend, Bsend, Ibsend");
}

static void further_communicators(void) {
  MPI_Comm made[4];
  MPI_Group all;
  MPI_Comm_group(MPI_COMM_WORLD, &all);
  MPI_Comm_create(MPI_COMM_WORLD, all, &made[0]);
  MPI_Comm_create_group(MPI_COMM_WORLD, all, 0, &made[1]);
  MPI_Comm_dup_with_info(MPI_COMM_WORLD, MPI_INFO_NULL, &made[2]);
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &made[3]);
  MPI_Group_free(&all);
  for (int i = 0; i < 4; ++i) {
    MPI_Barrier(made[i]);
    MPI_Comm_free(&made[i]);
  }
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
  expect(status.MPI_SOURCE == MPI_PROC_NULL, "Sendrecv with no peer");
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

static void matched(MPI_Comm comm) {
  const int right = (rank + 1) % RANKS, left = (rank + RANKS - 1) % RANKS;
  int in = -1, flag = 0, count = 0;
  MPI_Message message;
  MPI_Request request, sends[5];
  MPI_Status status;
  for (int i = 0; i < 5; ++i) MPI_Isend(&rank, 1, MPI_INT, right, 10 + i, comm, &sends[i]);
  MPI_Mprobe(left, 10, comm, &message, &status);
  MPI_Get_count(&status, MPI_INT, &count);
  MPI_Mrecv(&in, 1, MPI_INT, &message, &status);
  expect(in == left && count == 1 && status.MPI_SOURCE == left, "Mprobe, Mrecv");
  MPI_Mprobe(MPI_ANY_SOURCE, 11, comm, &message, MPI_STATUS_IGNORE);
  in = -1;
  MPI_Imrecv(&in, 1, MPI_INT, &message, &request);
  MPI_Wait(&request, &status);
  expect(in == left && status.MPI_SOURCE == left, "Mprobe of anybody, Imrecv");
  in = -1;
  while (!flag) MPI_Improbe(MPI_ANY_SOURCE, 12, comm, &flag, &message, MPI_STATUS_IGNORE);
  MPI_Mrecv(&in, 1, MPI_INT, &message, MPI_STATUS_IGNORE);
  expect(in == left, "Improbe, Mrecv");
  /* Received behind a later one. */
  MPI_Mprobe(left, 13, comm, &message, MPI_STATUS_IGNORE);
  MPI_Recv(&in, 1, MPI_INT, left, 14, comm, MPI_STATUS_IGNORE);
  in = -1;
  MPI_Imrecv(&in, 1, MPI_INT, &message, &request);
  for (flag = 0; !flag;) MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
  expect(in == left, "Mprobe, Imrecv, Test");
  MPI_Mprobe(MPI_PROC_NULL, 0, comm, &message, &status);
  MPI_Mrecv(&in, 1, MPI_INT, &message, &status);
  expect(status.MPI_SOURCE == MPI_PROC_NULL, "Mprobe of no peer");
  MPI_Waitall(5, sends, MPI_STATUSES_IGNORE);
}

static void persistent(MPI_Comm comm) {
  enum { STARTS = 5 };
  const int right = (rank + 1) % RANKS, left = (rank + RANKS - 1) % RANKS;
  int in = -1, from_any = -1, index, flag, some, indices[3];
  MPI_Request all[6], null_send;
  MPI_Status status;
  MPI_Send_init(&rank, 1, MPI_INT, right, 20, comm, &all[0]);
  MPI_Recv_init(&in, 1, MPI_INT, left, 20, comm, &all[1]);
  MPI_Recv_init(&from_any, 1, MPI_INT, MPI_ANY_SOURCE, 21, comm, &all[2]);
  MPI_Ssend_init(&rank, 1, MPI_INT, right, 22, comm, &all[3]);
  MPI_Rsend_init(&rank, 1, MPI_INT, right, 23, comm, &all[4]);
  MPI_Bsend_init(&rank, 1, MPI_INT, right, 23, comm, &all[5]); /* never started */
  MPI_Send_init(&rank, 1, MPI_INT, MPI_PROC_NULL, 20, comm, &null_send);
  for (int i = 0; i < STARTS; ++i) {
    in = from_any = -1;
    /* To persistent receives, one of them from anybody. */
    MPI_Startall(3, all);
    MPI_Send(&rank, 1, MPI_INT, right, 21, comm);
    if (i == 0) {
      MPI_Waitall(3, all, MPI_STATUSES_IGNORE);
    } else if (i == 1) {
      for (flag = 0; !flag;) MPI_Testall(3, all, &flag, MPI_STATUSES_IGNORE);
    } else if (i == 2) {
      for (int over = 0; over < 3; over += some) MPI_Waitsome(3, all, &some, indices, MPI_STATUSES_IGNORE);
    } else if (i == 3) {
      for (int over = 0; over < 3; ++over) MPI_Waitany(3, all, &index, MPI_STATUS_IGNORE);
    } else {
      MPI_Wait(&all[0], MPI_STATUS_IGNORE);
      MPI_Wait(&all[1], MPI_STATUS_IGNORE);
      for (flag = 0; !flag;) MPI_Test(&all[2], &flag, &status);
      expect(status.MPI_SOURCE == left, "Test of a persistent receive");
    }
    expect(in == left && from_any == left && all[1] != MPI_REQUEST_NULL, "Startall");
    /* To an ordinary receive. */
    in = -1;
    MPI_Start(&all[3]);
    MPI_Start(&null_send);
    MPI_Recv(&in, 1, MPI_INT, left, 22, comm, MPI_STATUS_IGNORE);
    MPI_Wait(&all[3], MPI_STATUS_IGNORE);
    MPI_Wait(&null_send, MPI_STATUS_IGNORE);
    expect(in == left, "Start");
  }
  MPI_Irecv(&in, 1, MPI_INT, left, 23, comm, &all[2]);
  MPI_Barrier(comm); /* a ready send wants the receive to be there */
  MPI_Start(&all[4]);
  MPI_Request_free(&all[4]); /* as soon as it is over */
  MPI_Wait(&all[2], MPI_STATUS_IGNORE);
  MPI_Request_free(&all[0]);
  MPI_Request_free(&all[1]);
  MPI_Request_free(&all[3]);
  MPI_Request_free(&all[5]);
  MPI_Request_free(&null_send);
}

/* Half a second is waited for a message, then half a second is the program's own between its matching and its
 * receive. */
static void matched_late(MPI_Comm comm) {
  const struct timespec pause = {0, 500000000};
  MPI_Message message;
  int in;
  MPI_Barrier(comm);
  MPI_Pcontrol(3, 1);
  if (rank == 0) {
    nanosleep(&pause, NULL);
    MPI_Send(&rank, 1, MPI_INT, 1, 30, comm);
  } else if (rank == 1) {
    MPI_Mprobe(0, 30, comm, &message, MPI_STATUS_IGNORE);
    MPI_Mrecv(&in, 1, MPI_INT, &message, MPI_STATUS_IGNORE);
  }
  MPI_Pcontrol(3, 2);
  if (rank == 0) {
    MPI_Send(&rank, 1, MPI_INT, 1, 31, comm);
  } else if (rank == 1) {
    MPI_Mprobe(0, 31, comm, &message, MPI_STATUS_IGNORE);
    nanosleep(&pause, NULL);
    MPI_Mrecv(&in, 1, MPI_INT, &message, MPI_STATUS_IGNORE);
  }
  MPI_Pcontrol(3, 3);
}

/* Of an intercommunicator, where most arguments mean nothing on most ranks. */
static void between_groups(MPI_Comm between) {
  const int root = rank == 0 ? MPI_ROOT : rank % 2 ? 1 : MPI_PROC_NULL; /* halves count downwards */
  int got[2] = {0, 0};
  MPI_Barrier(between);
  if (rank % 2)
    MPI_Gather(&rank, 1, MPI_INT, NULL, 0, MPI_DATATYPE_NULL, root, between);
  else
    MPI_Gather(NULL, 0, MPI_DATATYPE_NULL, got, 1, MPI_INT, root, between);
  expect(rank != 0 || got[0] + got[1] == 4, "Gather between groups");
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
    collectives_of_unequal_parts(copy);
    nonblocking_collectives(copy);
    further_nonblocking_collectives(copy);
    pairs(copy);
    sends_of_all_kinds(copy);
    matched(copy);
    persistent(copy);
    MPI_Comm_free(&copy);
  }
  further_communicators();
  matched_late(MPI_COMM_WORLD);
  MPI_Comm members;
  MPI_Comm_dup(MPI_COMM_WORLD, &members);
  many(members);
  MPI_Comm_free(&members);
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
  between_groups(between); /* not traced */
  MPI_Comm_free(&between);
  MPI_Comm_free(&line);
  MPI_Comm_free(&square);
  MPI_Comm_free(&turned);
  MPI_Comm_free(&halves);
  MPI_Finalize();
  return wrong;
}
