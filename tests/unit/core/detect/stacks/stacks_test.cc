#include "core/detect/stacks/stacks.h"

#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>
#include <set>

#include "base/limits.h"
#include "core/detect/stacks/members.h"
#include "core/detect/stacks/observations.h"
#include "core/detect/stacks/tree.h"
#include "ingest/stack_json.h"

using namespace culprit;
using namespace culprit::stacks;
namespace data = boost::unit_test::data;

namespace {

using Stack = std::vector<std::string>;  // "file:function:line", innermost first

const Stack kProgram = {"train.py:train_step:120", "train.py:main:31", "train.py:<module>:40"};

Stack on_program(Stack inner) {
  inner.insert(inner.end(), kProgram.begin(), kProgram.end());
  return inner;
}
const Stack kAllReduce = on_program(
    {"torch/distributed/distributed_c10d.py:all_reduce:2805", "torch/distributed/c10d_logger.py:wrapper:83"});
const Stack kBarrier = on_program({"torch/distributed/distributed_c10d.py:barrier:4000"});
const Stack kLoading = on_program({"threading.py:wait:320", "queue.py:get:171",
                                   "torch/utils/data/dataloader.py:_try_get_data:1011",
                                   "torch/utils/data/dataloader.py:__next__:633"});
const Stack kReceives = on_program({"torch/distributed/distributed_c10d.py:batch_isend_irecv:2100"});
const Stack kDeviceWait = on_program({"torch/cuda/__init__.py:synchronize:792"});

std::string quoted(const Stack& stack) {
  std::string out;
  for (const std::string& f : stack) out += (out.empty() ? "\"" : ",\"") + f + "\"";
  return out;
}

struct Job {
  Samples samples;
  JobFile job;
  std::vector<std::string> beside;  // stacks of other threads

  // A process without a rank, where others have one.
  void add_stranger(uint32_t pid, const Stack& stack) {
    add_line("{\"kind\":\"stack\",\"host\":\"node-0\",\"pid\":" + std::to_string(pid) +
                 ",\"threads\":[{\"name\":\"MainThread\",\"frames\":[" + quoted(stack) + "]}]}",
             "");
  }
  void add_line(const std::string& line, const std::string& file) {
    for (StackDump& dump : ingest::parse_stack_json(line).dumps) {
      dump.file = file;
      samples.add(dump);
    }
  }
  void add(uint32_t rank, const Stack& stack, TimeNs second = 0, const std::string& more = "",
           const std::string& file = "") {
    std::string line = "{\"kind\":\"stack\",\"rank\":" + std::to_string(rank) + ",\"host\":\"node-" +
                       std::to_string(rank / 8) +
                       "\",\"time_ns\":" + std::to_string((1'790'000'000 + second) * kNsPerSecond) + more +
                       ",\"threads\":[{\"name\":\"MainThread\",\"frames\":[" + quoted(stack) + "]}";
    for (const std::string& other : beside) line += "," + other;
    add_line(line + "]}", file);
  }
  StackAnswer answer(bool known_hang = true) {
    const GroupLayout layout(job);
    return analyse_stacks({samples, layout, {}, known_hang});
  }
};

std::set<uint32_t> accused(const StackAnswer& answer) {
  std::set<uint32_t> out;
  for (const Suspect& s : answer.suspects) out.insert(s.ranks.begin(), s.ranks.end());
  return out;
}
const Finding* fault(const StackAnswer& answer) {
  for (const Finding& f : answer.findings)
    if (f.kind == FindingKind::kFault) return &f;
  return nullptr;
}

// `n` ranks, one of them elsewhere.
StackAnswer one_elsewhere(uint32_t n, uint32_t odd, const Stack& stack, const std::string& more = "") {
  Job job;
  for (uint32_t r = 0; r < n; ++r) job.add(r, r == odd ? stack : kAllReduce, 0, r == odd ? more : "");
  return job.answer();
}

struct Case {
  const char* name;
  Stack inner;  // on the program's frames
  Component component;
  const char* more = "";
};
std::ostream& operator<<(std::ostream& out, const Case& c) { return out << c.name; }

const std::vector<Case> kCases = {
    {"loader",
     {"threading.py:wait:320", "torch/utils/data/dataloader.py:__next__:633"},
     Component::kUserData},
    {"file",
     {"libc.so.6:__read", "dataset.py:__getitem__:7", "torch/utils/data/_utils/fetch.py:fetch:51"},
     Component::kStorage},
    {"checkpoint", {"libc.so.6:fsync", "torch/serialization.py:save:628"}, Component::kStorage},
    {"blocked in the kernel", {"dataset.py:read_shard:7"}, Component::kStorage, ",\"state\":\"D\""},
    {"lock", {"threading.py:acquire:20"}, Component::kUserCode},
    {"native lock", {"libc.so.6:pthread_mutex_lock", "libfoo.so:foo::run(int)"}, Component::kUserCode},
    {"garbage", {"python3.11:gc_collect_main.isra.0", "python3.11:PyGC_Collect"}, Component::kUserCode},
    {"host code", {"tokenizer.py:encode:99"}, Component::kUserCode},
    {"sleep", {"libc.so.6:clock_nanosleep@GLIBC_2.17"}, Component::kUserCode},
    {"driver", {"libc.so.6:ioctl", "libcuda.so.1:?", "libcudart.so:cudaMalloc"}, Component::kGpu},
    {"compiler", {"torch/_inductor/codegen/triton.py:codegen:7"}, Component::kFramework},
    {"stopped",
     {"torch/distributed/distributed_c10d.py:all_reduce:2805"},
     Component::kPlatform,
     ",\"state\":\"T\""},
};

}  // namespace

BOOST_AUTO_TEST_SUITE(stacks_detector)

BOOST_DATA_TEST_CASE(one_that_is_not_where_its_peers_wait_is_named_with_its_class, data::make(kCases), c) {
  const StackAnswer answer = one_elsewhere(16, 11, on_program(c.inner), c.more);
  BOOST_TEST(accused(answer) == std::set<uint32_t>{11}, boost::test_tools::per_element());
  BOOST_REQUIRE(fault(answer));
  BOOST_TEST((fault(answer)->component == c.component), fault(answer)->title);
  BOOST_TEST(fault(answer)->why[0].find("15 of 16 processes wait in all_reduce") != std::string::npos,
             fault(answer)->why[0]);
  BOOST_TEST(answer.hangs);
  BOOST_TEST(answer.clusters[0].healthy);
  BOOST_TEST(!answer.clusters[1].healthy);
}

BOOST_AUTO_TEST_CASE(a_wait_for_the_device_accuses_nobody) {
  for (const Stack& inner :
       {Stack{"torch/cuda/__init__.py:synchronize:792"}, Stack{"libcudart.so.12:cudaStreamSynchronize"},
        Stack{"libcuda.so.1:cuLaunchKernel"}, Stack{"torch/autograd/graph.py:_engine_run_backward:769"},
        Stack{"libcudart.so.12:cudaMemcpyAsync", "torch/utils/data/dataloader.py:__next__:633"}}) {
    const StackAnswer answer = one_elsewhere(16, 3, on_program(inner));
    BOOST_TEST(accused(answer).empty(), inner[0]);
  }
}

BOOST_AUTO_TEST_CASE(a_known_place_accuses_where_the_others_wait_for_their_devices) {
  for (const Stack& inner :
       {Stack{"/usr/lib/python3.11/logging/__init__.py:acquire:918"},
        Stack{"gc_control.py:collect_cycles:29"},
        Stack{"selectors.py:poll:415", "torch/utils/data/dataloader.py:_try_get_data:1133"},
        Stack{"torch/serialization.py:write_record:1021", "torch/serialization.py:save:943"}}) {
    Job job;
    for (uint32_t r = 0; r < 16; ++r) {
      const std::string line = r % 2 ? "clip.py:get_norm:97" : "pipeline.py:send_forward:377";
      job.add(r, r == 9 ? on_program(inner) : on_program({"torch/cuda/__init__.py:synchronize:1040", line}));
    }
    BOOST_TEST(accused(job.answer()) == std::set<uint32_t>{9}, boost::test_tools::per_element());
  }
}

BOOST_AUTO_TEST_CASE(native_collectives_of_all_libraries_are_waits) {
  for (const char* call :
       {"libnccl.so.2:ncclCommInitRankConfig", "libmpi.so.40:PMPI_Allreduce",
        "libtorch_cpu.so:c10d::ProcessGroupGloo::AsyncWork::wait(std::chrono::duration<long>)",
        "libtorch_cuda.so:c10d::ProcessGroupNCCL::WorkNCCL::synchronizeInternal(long)",
        "libgloo.so:gloo::allreduce(gloo::AllreduceOptions const&)",
        "libtorch_cpu.so:c10d::TCPStore::wait(std::vector<int> const&)"}) {
    Job job;
    for (uint32_t r = 0; r < 8; ++r)
      job.add(r, r == 2 ? kLoading : on_program({"libc.so.6:poll", std::string(call)}));
    BOOST_TEST(accused(job.answer()) == std::set<uint32_t>{2}, boost::test_tools::per_element());
  }
}

BOOST_AUTO_TEST_CASE(our_own_wrapper_of_a_collective_waits_as_the_collective_does) {
  Job job;
  for (uint32_t r = 0; r < 8; ++r) {
    Stack inner = {"torch/distributed/distributed_c10d.py:all_reduce:1541"};
    if (r != 6)
      inner.insert(inner.begin(), "/opt/venv/lib/python3.11/site-packages/culprit/distributed.py:waits:3");
    job.add(r, r == 2 ? kLoading : on_program(inner));
  }
  const StackAnswer answer = job.answer();
  BOOST_TEST(accused(answer) == std::set<uint32_t>{2}, boost::test_tools::per_element());
  BOOST_REQUIRE(fault(answer));
  BOOST_TEST(fault(answer)->title.find("7 of 8 processes wait in all_reduce") != std::string::npos,
             fault(answer)->title);
}

BOOST_AUTO_TEST_CASE(a_wait_that_does_not_name_its_operation_is_no_other_collective) {
  Job job;
  for (uint32_t r = 0; r < 8; ++r)
    job.add(r, r == 2 ? Stack{"libc.so.6:poll", "libtorch_cpu.so:c10d::Work::wait(long)"} : kAllReduce);
  BOOST_TEST(accused(job.answer()).empty());
}

BOOST_AUTO_TEST_CASE(a_stack_without_a_name_accuses_nobody) {
  Job job;
  for (uint32_t r = 0; r < 8; ++r) job.add(r, r == 2 ? Stack{"libnccl.so.2:??", ":??", ":??"} : kAllReduce);
  BOOST_TEST(accused(job.answer()).empty());
}

BOOST_AUTO_TEST_CASE(code_of_the_program_within_a_collective_is_no_wait) {
  const StackAnswer answer =
      one_elsewhere(8, 5,
                    on_program({"pickle_helper.py:reduce_state:9",
                                "torch/distributed/distributed_c10d.py:all_gather_object:1"}));
  BOOST_TEST(accused(answer) == std::set<uint32_t>{5}, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_thread_that_computes_gradients_stands_for_the_main_thread_that_waits_for_it) {
  Job job;
  const Stack main = on_program({"torch/autograd/graph.py:_engine_run_backward:769"});
  for (uint32_t r = 0; r < 8; ++r) {
    const char* inner = r == 4 ? "torch/utils/data/dataloader.py:__next__:1"
                               : "torch/distributed/distributed_c10d.py:reduce_scatter_tensor:1";
    job.beside = {std::string("{\"name\":\"\",\"frames\":[\"") + inner +
                      "\",\"hooks.py:hook:3\",\"torch/autograd/function.py:apply:300\"]}",
                  R"({"name":"pin_memory","frames":["threading.py:wait:1","threading.py:_bootstrap:2"]})"};
    job.add(r, main);
  }
  BOOST_TEST(accused(job.answer()) == std::set<uint32_t>{4}, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(samples_tell_slow_from_stuck) {
  Job stuck, slow;
  for (TimeNs s = 0; s < 5; ++s)
    for (uint32_t r = 0; r < 8; ++r) {
      stuck.add(r, r == 2 ? on_program({"libtokens.so:encode"}) : kAllReduce, 10 * s);
      slow.add(r, r == 2 ? on_program({"tokenizer.py:encode:" + std::to_string(90 + s)}) : kAllReduce,
               10 * s);
    }
  const StackAnswer is_stuck = stuck.answer(), is_slow = slow.answer();
  BOOST_TEST(accused(is_stuck) == std::set<uint32_t>{2}, boost::test_tools::per_element());
  BOOST_TEST(accused(is_slow) == std::set<uint32_t>{2}, boost::test_tools::per_element());
  BOOST_TEST(fault(is_stuck)->why[1] ==
             "its stack is the same in 5 samples over 40.0s: it is stuck, not slow");
  BOOST_TEST(fault(is_slow)->why[1].find("slow or working") != std::string::npos);
  BOOST_TEST(fault(is_stuck)->confidence > fault(is_slow)->confidence);
  BOOST_TEST((is_stuck.hangs && !is_slow.hangs));
}

BOOST_AUTO_TEST_CASE(a_process_that_is_no_rank_counts_for_nobody) {
  for (const Stack& inner : {Stack{"torch/utils/data/dataloader.py:__next__:633"},
                             Stack{"torch/distributed/elastic/agent/server/api.py:_invoke_run:700"},
                             Stack{"exporter.py:serve:3"}}) {
    Job job;
    for (uint32_t r = 0; r < 8; ++r) job.add(r, kAllReduce);
    job.add_stranger(999, on_program(inner));
    const StackAnswer answer = job.answer();
    BOOST_TEST(accused(answer).empty(), inner[0]);
    BOOST_REQUIRE(fault(answer));
    BOOST_TEST(fault(answer)->title == "8 of 8 processes wait in all_reduce, and none is late");
    BOOST_TEST(answer.missing.at(0).find("process 999 of node-0") != std::string::npos);
  }
}

BOOST_AUTO_TEST_CASE(a_worker_or_launcher_with_a_ranks_number_does_not_stand_for_the_rank) {
  Job job;
  for (uint32_t r = 0; r < 8; ++r) job.add(r, kAllReduce);
  job.add(3, {"multiprocessing/connection.py:recv:250", "torch/utils/data/_utils/worker.py:_worker_loop:275"},
          1);
  BOOST_TEST(accused(job.answer()).empty());
}

BOOST_AUTO_TEST_CASE(a_rank_of_two_hosts_at_a_time_accuses_nobody) {
  Job job;
  for (uint32_t r = 0; r < 8; ++r) job.add(r, kAllReduce);
  job.add_line(
      "{\"kind\":\"stack\",\"rank\":0,\"host\":\"other-9\",\"threads\":[{\"name\":\"MainThread\","
      "\"frames\":[" +
          quoted(kLoading) + "]}]}",
      "");
  const StackAnswer answer = job.answer();
  BOOST_TEST(accused(answer).empty());
  BOOST_TEST(answer.missing.at(0).find("rank 0 are of several hosts") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(stacks_of_one_moment_prove_no_hang) {
  Job once, copied, close, apart;
  for (uint32_t r = 0; r < 8; ++r) {
    const Stack& stack = r == 5 ? kLoading : kAllReduce;
    for (Job* job : {&once, &copied, &close, &apart}) job->add(r, stack, 0, "", "a");
    copied.add(r, stack, 0, "", "copy of a");
    close.add(r, stack, 1, "", "b");
    apart.add(r, stack, 20, "", "b");
  }
  for (Job* job : {&once, &copied, &close}) {
    const StackAnswer answer = job->answer(false);
    BOOST_REQUIRE(fault(answer));
    BOOST_TEST((fault(answer)->confidence < 0.5 && !answer.hangs && !fault(answer)->fatal));
    BOOST_TEST(answer.missing.at(0).find("a second dump") != std::string::npos);
  }
  BOOST_TEST(copied.samples.processes()[0]->samples.size() == 1u);
  const StackAnswer answer = apart.answer(false);
  BOOST_TEST((answer.hangs && fault(answer)->confidence > 0.5 && answer.missing.empty()));
}

BOOST_AUTO_TEST_CASE(a_rank_in_python_code_that_may_wait_for_its_device_is_not_proven_to_be_late) {
  Job job;
  const Stack plain = {"train.py:loss_value:91"};
  for (TimeNs s = 0; s < 3; ++s)
    for (uint32_t r = 0; r < 8; ++r) job.add(r, r == 3 ? on_program(plain) : kAllReduce, 10 * s);
  BOOST_TEST(fault(job.answer())->confidence < 0.5);
  using State = hang::ObservedState;
  BOOST_TEST((observations_of(job.samples).observations[3].state == State::kUnknown));
  // A known place next to it is the suspect.
  for (TimeNs s = 0; s < 3; ++s) job.add(6, kLoading, 10 * s);
  BOOST_TEST(accused(job.answer()) == std::set<uint32_t>{6}, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(halves_in_two_collectives_are_a_question_to_the_program) {
  Job job;
  for (uint32_t r = 0; r < 8; ++r)
    job.add(r, r < 4 ? kAllReduce : on_program({"torch/distributed/distributed_c10d.py:all_gather:3"}));
  const StackAnswer answer = job.answer();
  BOOST_REQUIRE(fault(answer));
  BOOST_TEST(fault(answer)->title ==
             "4 of 8 processes wait in all_gather, and 4 in all_reduce: a mismatch of the program, or "
             "different groups");
  BOOST_TEST((fault(answer)->category == Category::kUser && fault(answer)->confidence < 0.5));
}

BOOST_AUTO_TEST_CASE(a_read_is_of_the_file_system_only_where_that_is_known) {
  const Stack read = {"libc.so.6:__read", "python3.11:_Py_read"};
  Stack input = read, piped = read;
  input.push_back("python3.11:builtin_input.lto_priv.0");
  piped.insert(piped.end(), {"multiprocessing/connection.py:_recv:383",
                             "torch/utils/data/dataloader.py:_try_get_data:1133"});
  const struct {
    Stack inner;
    const char* more;
    Component component;
    const char* phrase;
  } cases[] = {
      {read, "", Component::kUserCode, "in a read or write of a file, pipe or socket"},
      {read, ",\"state\":\"S\",\"wchan\":\"folio_wait_bit_common\"", Component::kStorage, "file system"},
      {read, ",\"state\":\"S\",\"wchan\":\"n_tty_read\"", Component::kUserCode, "waiting for input"},
      {input, "", Component::kUserCode, "waiting for input"},
      {{"/usr/lib/python3.11/pdb.py:interaction:3"}, "", Component::kUserCode, "waiting for input"},
      {piped, "", Component::kUserData, "in the data loader"}};
  for (const auto& c : cases) {
    const StackAnswer answer = one_elsewhere(8, 2, on_program(c.inner), c.more);
    BOOST_REQUIRE(fault(answer));
    BOOST_TEST((fault(answer)->component == c.component), fault(answer)->title);
    BOOST_TEST(fault(answer)->title.find(c.phrase) != std::string::npos, fault(answer)->title);
  }
}

BOOST_AUTO_TEST_CASE(a_dump_without_a_frame_is_no_stack) {
  const StackAnswer answer = one_elsewhere(8, 2, {}, ",\"state\":\"S\"");
  BOOST_TEST(accused(answer).empty());
  BOOST_TEST(answer.missing.at(0).find("rank 2") != std::string::npos);
  // The kernel's state says more.
  BOOST_TEST(accused(one_elsewhere(8, 2, {}, ",\"state\":\"D\"")) == std::set<uint32_t>{2},
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_job_that_moves_has_no_hang_and_no_suspect) {
  Job job;
  for (TimeNs s = 0; s < 3; ++s)
    for (uint32_t r = 0; r < 8; ++r) {
      const bool waits = (r + s) % 2 == 0;
      job.add(r, waits ? kAllReduce : on_program({"model.py:forward:" + std::to_string(r + s)}), s);
    }
  const StackAnswer answer = job.answer();
  BOOST_TEST((!answer.hangs && accused(answer).empty() && !fault(answer)));
}

BOOST_AUTO_TEST_CASE(one_rank_in_another_collective_is_a_fault_of_the_program) {
  const StackAnswer answer = one_elsewhere(8, 6, kBarrier);
  BOOST_REQUIRE(fault(answer));
  BOOST_TEST(accused(answer) == std::set<uint32_t>{6}, boost::test_tools::per_element());
  BOOST_TEST((fault(answer)->category == Category::kUser && fault(answer)->by_no_device));
  BOOST_TEST(fault(answer)->why[0].find("called at train.py:train_step:120") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(a_whole_tensor_group_that_waits_apart_is_not_told_from_its_stuck_rank) {
  Job job;
  job.job.parallel = Parallel{4, 1, 8, 1, 1};
  for (uint32_t r = 0; r < 32; ++r) job.add(r, r / 4 == 3 ? kBarrier : kAllReduce);
  const StackAnswer answer = job.answer();
  BOOST_TEST((accused(answer) == std::set<uint32_t>{12, 13, 14, 15}));
  BOOST_REQUIRE(fault(answer));
  BOOST_TEST((fault(answer)->category == Category::kUnknown));
  BOOST_TEST(fault(answer)->confidence < 0.5);
}

BOOST_AUTO_TEST_CASE(the_group_of_several_outliers_is_named_with_its_innocent_hosts) {
  Job job;
  job.job.parallel = Parallel{1, 8, 4, 1, 1};  // a pipeline group has each fourth rank
  for (uint32_t r = 0; r < 32; ++r)
    job.add(r, r % 4 == 1 && r < 16 ? on_program({"a.py:f:" + std::to_string(r)}) : kReceives);
  const GroupLayout layout(job.job);
  const auto place = [](uint32_t rank) { return RankPlace{"node-" + std::to_string(rank / 4), rank % 4}; };
  const StackAnswer answer = analyse_stacks({job.samples, layout, place, true});
  BOOST_REQUIRE(fault(answer));
  BOOST_TEST((accused(answer) == std::set<uint32_t>{1, 5, 9, 13}));
  BOOST_TEST(
      fault(answer)->why.back() ==
      "all 4 of them are in one pipeline group: ranks 1,5,9,13,17,21,25,29; taking out its 8 hosts takes out "
      "about 7 innocent ones");
}

BOOST_AUTO_TEST_CASE(if_most_are_late_no_rank_is_named) {
  Job job;
  for (uint32_t r = 0; r < 16; ++r)
    job.add(r, r < 2 ? kBarrier : on_program({"libc.so.6:fsync", "torch/serialization.py:save:628"}));
  const StackAnswer answer = job.answer();
  BOOST_TEST(accused(answer).empty());
  BOOST_REQUIRE(fault(answer));
  BOOST_TEST((fault(answer)->component == Component::kStorage && fault(answer)->by_no_device));
}

BOOST_AUTO_TEST_CASE(silence_names_a_rank_only_if_all_others_wait_and_never_hardware) {
  Job job;
  for (uint32_t r = 0; r < 7; ++r) job.add(r, kAllReduce);
  job.samples.add_silent(7, "Error: 503");
  const StackAnswer answer = job.answer();
  BOOST_TEST(accused(answer) == std::set<uint32_t>{7}, boost::test_tools::per_element());
  BOOST_TEST((fault(answer)->category == Category::kUnknown));
  job.add(3, kLoading, 5);
  BOOST_TEST(accused(job.answer()) == std::set<uint32_t>{3}, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_single_process_or_no_common_place_accuses_nobody) {
  Job single, scattered;
  single.add(0, kLoading);
  for (uint32_t r = 0; r < 8; ++r) scattered.add(r, on_program({"a.py:f" + std::to_string(r) + ":1"}));
  for (Job* job : {&single, &scattered}) {
    const StackAnswer answer = job->answer();
    BOOST_TEST((accused(answer).empty() && !fault(answer) && !answer.hangs));
    BOOST_TEST(!answer.clusters.empty());
  }
}

BOOST_AUTO_TEST_CASE(an_observation_says_in_which_collective_a_rank_is_or_that_it_is_in_none) {
  Job job;
  job.add(0, kAllReduce);
  job.add(1, kLoading);
  job.add(2, kDeviceWait);
  job.add(3, kAllReduce, 0, ",\"state\":\"T\"");
  job.samples.add_silent(4, "Error: 503");
  const StackObservations got = observations_of(job.samples);
  BOOST_REQUIRE(got.observations.size() == 4u);
  using State = hang::ObservedState;
  const State expected[] = {State::kInCall, State::kElsewhere, State::kUnknown, State::kStopped};
  for (size_t r = 0; r < 4; ++r)
    BOOST_TEST((got.observations[r].state == expected[r] && got.observations[r].rank == r));
  BOOST_TEST((got.observations[0].call->op == "all_reduce" &&
              got.observations[0].call->site == "train.py:train_step:120"));
  BOOST_TEST(!got.observations[1].call);
  BOOST_TEST((got.exits.size() == 1u && got.exits[0].rank == 4u));
}

BOOST_AUTO_TEST_CASE(frames_of_other_installations_compare_as_equal) {
  BOOST_TEST(normal_file("/opt/conda/lib/python3.11/site-packages/torch/nn/module.py", false) ==
             "torch/nn/module.py");
  BOOST_TEST(normal_file("/a/torch/nn/module.py", false) == "torch/nn/module.py");
  BOOST_TEST(normal_file("/usr/lib/python3.10/threading.py", false) == "threading.py");
  BOOST_TEST(normal_file("/usr/lib/libcuda.so.535.54", true) == "libcuda.so");
  BOOST_TEST(normal_function("void at::native::f<float, (int)3>(at::Tensor const&, long) [clone .isra.0]",
                             true) == "at::native::f");
  BOOST_TEST(normal_function("read@@GLIBC_2.2.5", true) == "read");
  BOOST_TEST(normal_function("foo+0x1b", true) == "foo");
  BOOST_TEST(normal_function("(anonymous namespace)::run(int)", true) == "{anonymous}::run");
  BOOST_TEST(normal_function("", true) == "?");
}

BOOST_AUTO_TEST_CASE(sets_of_ranks_are_short) {
  std::vector<uint32_t> ranks;
  for (uint32_t r = 0; r < 64; ++r)
    if (r != 11) ranks.push_back(r);
  BOOST_TEST(rank_ranges(ranks) == "0-10,12-63");
  BOOST_TEST(rank_ranges({7, 3, 3}) == "3,7");
  BOOST_TEST(rank_ranges({}) == "-");
  BOOST_TEST(rank_ranges({1, 3, 5, 7}, 2) == "1,3, 2 more");
}

BOOST_AUTO_TEST_CASE(the_tree_joins_chains_and_puts_what_differs_first) {
  const std::vector<StackCluster> clusters = {{{"c", "b", "a"}, {0, 1, 2}, true},
                                              {{"d", "b", "a"}, {3}, false}};
  const StackTree tree = make_tree(clusters);
  BOOST_REQUIRE(tree.roots.size() == 1u);
  const TreeNode& root = tree.nodes[tree.roots[0]];
  BOOST_TEST((root.frames == std::vector<std::string>{"a", "b"}));
  BOOST_TEST((root.ranks.size() == 4u && root.outliers == 1u));
  BOOST_REQUIRE(root.children.size() == 2u);
  BOOST_TEST(tree.nodes[root.children[0]].frames[0] == "d");
}

BOOST_AUTO_TEST_CASE(old_samples_give_way_and_are_counted) {
  Job job;
  for (TimeNs s = 0; s < static_cast<TimeNs>(limits::kStackSamples) + 3; ++s) job.add(0, kAllReduce, s);
  BOOST_TEST(job.samples.processes()[0]->samples.size() == limits::kStackSamples);
  const std::vector<std::string> drops = job.samples.drop_sentences();
  BOOST_REQUIRE(drops.size() == 1u);
  BOOST_TEST(drops[0].starts_with("3 dumps"));
}

BOOST_AUTO_TEST_SUITE_END()
