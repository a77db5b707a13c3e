// What lines say of who came to a meeting.
#include "core/detect/hang/meeting_lines.h"

#include <boost/test/unit_test.hpp>

#include "library_lines.h"

using namespace culprit;
using namespace culprit::hang;

BOOST_AUTO_TEST_SUITE(meeting_lines)

namespace {

using Ranks = std::vector<uint32_t>;

MeetingLine read(std::string_view text) {
  const auto line = library_lines().meeting(text);
  BOOST_TEST_REQUIRE(line.has_value(), text);
  return *line;
}

}  // namespace

BOOST_AUTO_TEST_CASE(clients_of_the_store_are_counted) {
  const MeetingLine line = read(
      "torch.distributed.DistStoreError: Timed out after 301 seconds waiting for clients. 5/6 clients "
      "joined.");
  BOOST_TEST((line.came == 5u && line.all == 6u && line.starts && line.opens));
  BOOST_TEST(line.what == "the rendezvous");
  BOOST_TEST(line.waited_ns == 301 * kNsPerSecond);
  BOOST_TEST((read("Timed out after 6 seconds waiting for workers. 1/2 workers joined.").came == 1u));
}

BOOST_AUTO_TEST_CASE(old_and_new_barriers_of_the_store_count_their_ranks) {
  for (const char* key : {"worker_count", "num_workers_joined"}) {
    const MeetingLine line =
        read(std::string(
                 "RuntimeError: Timed out initializing process group in store based barrier on rank: 4, for "
                 "key: store_based_barrier_key:2 (world_size=12, ") +
             key + "=11, timeout=0:30:00)");
    BOOST_TEST((line.rank == 4u && line.came == 11u && line.all == 12u));
  }
  const MeetingLine line = read(
      "DistStoreError: Timed out waiting on barrier on rank 0, for key prefix: export/meta (world_size=8, "
      "missing_ranks=[5, 7], timeout=120)");
  BOOST_TEST((line.all == 8u && line.missing == Ranks{5, 7}));
  BOOST_TEST(line.what == "barrier export/meta");
}

BOOST_AUTO_TEST_CASE(names_of_hosts_are_no_ranks) {
  const MeetingLine line = read(
      "DistStoreError: Timed out waiting on barrier on rank 0, for key prefix: agents/ (world_size=3, "
      "missing_ranks=[gpu-17], timeout=120)");
  BOOST_TEST(line.missing.empty());
}

BOOST_AUTO_TEST_CASE(tasks_of_jax_stand_in_the_next_lines) {
  const MeetingLine first = read(
      "XlaRuntimeError: DEADLINE_EXCEEDED: Barrier timed out. Id: eval_sync::2. This usually happens because "
      "a task "
      "triggered the barrier too early or too slowly.");
  BOOST_TEST((first.opens && !first.starts && first.unit == MeetingUnit::kTask));
  BOOST_TEST(first.what == "barrier eval_sync");
  const MeetingLine share = read("# of tasks that reached the barrier: 14/16.");
  BOOST_TEST((!share.opens && share.came == 14u && share.all == 16u));
  BOOST_TEST(!library_lines().meeting(
      "The first task at the barrier: /job:jax_worker/replica:0/task:9. Some timed out task names:"));
}

BOOST_AUTO_TEST_CASE(a_name_alone_goes_on_with_the_list) {
  BOOST_TEST((read("  /job:jax_worker/replica:0/task:11").missing == Ranks{11}));
  BOOST_TEST(!library_lines().meeting("lost /job:jax_worker/replica:0/task:11"));
}

BOOST_AUTO_TEST_CASE(line_ends_that_are_written_out_are_read_in_one_line) {
  const MeetingLine line = read(
      R"(Barrier timed out. Id: [Init]Wait_for_all_tasks_to_register::0. Look at the logs.\n# of tasks that reached )"
      R"(the barrier: 2/4.\nThe first task at the barrier: /job:w/replica:0/task:0. Some timed out task names:\n)"
      R"(/job:w/replica:0/task:1\n/job:w/replica:0/task:3\n)");
  BOOST_TEST((line.starts && line.came == 2u && line.all == 4u && line.missing == Ranks{1, 3}));
}

BOOST_AUTO_TEST_CASE(tensors_of_horovod_list_who_is_ready_or_who_is_missing) {
  const MeetingLine old = read("Stalled ops:grads_a_0 [ready ranks: 0, 3], grads_b_0 [ready ranks: 3]");
  BOOST_TEST_REQUIRE(old.tensors.size() == 2);
  BOOST_TEST((old.tensors[0].name == "grads_a_0" && old.tensors[0].there == Ranks{0, 3}));
  BOOST_TEST((old.tensors[1].name == "grads_b_0" && old.tensors[1].there == Ranks{3}));
  const MeetingLine newer = read("allreduce.decoder.bias [missing ranks: 1, 2]");
  BOOST_TEST((newer.tensors.size() == 1 && newer.tensors[0].missing == Ranks{1, 2}));
  const MeetingLine row = read("6!: [allreduce.a, allreduce.b ...]");
  BOOST_TEST((row.tensors.size() == 2 && row.tensors[1].name == "allreduce.b" && row.cut));
  BOOST_TEST((row.tensors[0].missing == Ranks{6}));
  const MeetingLine labelled = read("[allreduce.a, allreduce.b]");
  BOOST_TEST((labelled.labelled && labelled.tensors.size() == 2 && labelled.tensors[0].missing.empty()));
}

BOOST_AUTO_TEST_CASE(other_lines_say_nothing) {
  for (const char* text :
       {"", "3/4 clients joined", "/", "Timed out after 5 seconds waiting for clients. 4/3 clients joined.",
        "2: loss", "rank 3: [0.1, 0.2]", "]3: [", "Barrier passed. Id: eval_sync::2.", "[ready ranks: none]",
        "global_world_sizes=[", "Timed out waiting on barrier on rank 0, for key prefix: a/ (world_size="})
    BOOST_TEST(!library_lines().meeting(text), text);
}

BOOST_AUTO_TEST_SUITE_END()
