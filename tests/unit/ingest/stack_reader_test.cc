#include "ingest/stack_reader.h"

#include <boost/test/unit_test.hpp>

#include "base/limits.h"
#include "ingest/stack_json.h"

using namespace culprit;
using namespace culprit::ingest;

BOOST_AUTO_TEST_SUITE(stack_reader)

namespace {

std::string frame(const StackDump& dump, const StackFrame& f) {
  return dump.words[f.file] + ":" + dump.words[f.function] + ":" + std::to_string(f.line);
}
std::vector<std::string> frames(const StackDump& dump, size_t thread) {
  std::vector<std::string> out;
  for (const StackFrame& f : dump.threads.at(thread).frames) out.push_back(frame(dump, f));
  return out;
}
ReadStacks read(const std::string& text, const std::string& path = "stacks/node-1/rank_3.txt") {
  auto out = parse_stacks(text, path);
  BOOST_REQUIRE_MESSAGE(out.has_value(), (out ? std::string() : out.error().text));
  return std::move(*out);
}

const std::string kPySpy =
    "Process 12: python3 train.py --lr 1e-4\n"
    "Python v3.10.12 (/usr/bin/python3.10)\n\n"
    "Thread 12 (idle): \"MainThread\"\n"
    "    all_reduce (torch/distributed/distributed_c10d.py:2805)\n"
    "    train_step (train.py:120)\n"
    "        Arguments:\n"
    "            x: <tensor (3)>\n"
    "    <module> (train.py:40)\n"
    "Thread 0x7F12AB (active+gil)\n"
    "    read (libc.so.6)\n"
    "    run (threading.py:975)\n";
// Written by Python 3.11 on Debian 12.
const std::string kFaultHandler =
    "Thread 0x00007f7e8bfff6c0 (most recent call first):\n"
    "  File \"/usr/lib/python3.11/threading.py\", line 320 in wait\n"
    "  File \"/usr/lib/python3.11/threading.py\", line 995 in _bootstrap\n\n"
    "Current thread 0x00007f7e9100a2c0 (most recent call first):\n"
    "  File \"/work/prog.py\", line 7 in train_step\n"
    "  File \"/work/prog.py\", line 15 in <module>\n";
// By gdb 13 on Debian 12.
const std::string kGdb =
    "[New LWP 21647]\n[Thread debugging using libthread_db enabled]\n"
    "Using host libthread_db library \"/lib/x86_64-linux-gnu/libthread_db.so.1\".\n"
    "0x00007f7e910da545 in __GI___clock_nanosleep (clock_id=1, flags=1) at "
    "../sysdeps/clock_nanosleep.c:48\n\n"
    "Thread 2 (Thread 0x7f7e8b7fe6c0 (LWP 21649) \"python3\"):\n"
    "#0  __futex_wait (private=<optimized out>, word=0x18f) at ./nptl/futex-internal.c:57\n"
    "#1  0x000000000056a494 in PyObject_Call ()\n"
    "#2  0x00007f in c10d::Store::wait(std::vector<std::string> const&) (this=0x1, keys=...)\n"
    "    at /pytorch/store.cpp:9\n\n"
    "Thread 1 (Thread 0x7f7e9100a2c0 (LWP 21645) \"python3\"):\n"
    "#0  0x00007f7e910da545 in read (fd=3, buf=0x1 \") at x\") from /lib/libc.so.6\n"
    "#1  0x0000000000547b96 in ?? ()\n";
// By eu-stack 0.188 on Debian 12, with -m -s.
const std::string kEuStack =
    "PID 21645 - process\nTID 21645:\n"
    "#0  0x00007f7e910da545 clock_nanosleep@GLIBC_2.2.5 - /usr/lib/x86_64-linux-gnu/libc.so.6\n"
    "    ../sysdeps/unix/sysv/linux/clock_nanosleep.c:48:7\n"
    "#1  0x00000000005d64b4 - /usr/bin/python3.11\n"
    "TID 21647:\n#0  0x00007f7e91090f16 __futex_abstimed_wait_common\n";

}  // namespace

BOOST_AUTO_TEST_CASE(text_of_py_spy_gives_threads_with_states_and_frames) {
  const ReadStacks got = read(kPySpy);
  BOOST_REQUIRE(got.dumps.size() == 1u);
  const StackDump& dump = got.dumps[0];
  BOOST_TEST((dump.tool == StackTool::kPySpy && dump.pid == 12 && dump.rank == 3u && dump.host == "node-1"));
  BOOST_REQUIRE(dump.threads.size() == 2u);
  BOOST_TEST(dump.words[dump.threads[0].name] == "MainThread");
  BOOST_TEST((dump.threads[0].state == ThreadState::kIdle && dump.threads[1].state == ThreadState::kGil));
  const std::vector<std::string> expected = {"torch/distributed/distributed_c10d.py:all_reduce:2805",
                                             "train.py:train_step:120", "train.py:<module>:40"};
  BOOST_TEST(frames(dump, 0) == expected, boost::test_tools::per_element());
  BOOST_TEST((dump.threads[1].frames[0].native && !dump.threads[1].frames[1].native));
  BOOST_TEST(got.problems.empty());
}

BOOST_AUTO_TEST_CASE(a_worker_is_listed_with_its_parent) {
  const ReadStacks got =
      read(kPySpy +
           "Process 99: python3 train.py\nPython v3.10\nParent Process 12: python3 train.py\n\n"
           "Thread 99 (idle): \"MainThread\"\n    read (libc.so.6)\n");
  BOOST_REQUIRE(got.dumps.size() == 1u);
  BOOST_REQUIRE(got.dumps[0].threads.size() == 3u);
  BOOST_TEST((got.dumps[0].pid == 12 && got.dumps[0].threads[2].pid == 99));
  BOOST_TEST(frames(got.dumps[0], 2)[0] == "libc.so.6:read:0");
}

BOOST_AUTO_TEST_CASE(text_of_faulthandler_gives_python_frames) {
  const ReadStacks got = read("Timeout (0:00:10)!\n" + kFaultHandler);
  BOOST_REQUIRE(got.dumps.size() == 1u);
  BOOST_TEST((got.dumps[0].tool == StackTool::kFaultHandler));
  BOOST_REQUIRE(got.dumps[0].threads.size() == 2u);
  BOOST_TEST(frames(got.dumps[0], 1)[0] == "/work/prog.py:train_step:7");
}

BOOST_AUTO_TEST_CASE(dumps_that_follow_one_another_are_samples_of_one_process) {
  for (const std::string& text :
       {kFaultHandler + kFaultHandler, kPySpy + kPySpy, kGdb + kGdb, kEuStack + kEuStack,
        "Timeout (0:00:01)!\n" + kFaultHandler + "Timeout (0:00:01)!\n" + kFaultHandler}) {
    const ReadStacks got = read(text);
    BOOST_REQUIRE_MESSAGE(got.dumps.size() == 2u, text);
    BOOST_TEST((got.dumps[0].sample == 0u && got.dumps[1].sample == 1u));
    BOOST_TEST(got.dumps[0].threads.size() == 2u);
    BOOST_TEST(got.dumps[1].threads.size() == 2u);
  }
}

BOOST_AUTO_TEST_CASE(text_of_gdb_gives_functions_without_arguments) {
  const ReadStacks got = read(kGdb);
  BOOST_REQUIRE(got.dumps.size() == 1u);
  const StackDump& dump = got.dumps[0];
  BOOST_REQUIRE(dump.threads.size() == 2u);
  BOOST_TEST((dump.pid == 21645 && dump.threads[1].main && !dump.threads[0].main));
  const std::vector<std::string> expected = {
      "./nptl/futex-internal.c:__futex_wait:57", ":PyObject_Call:0",
      "/pytorch/store.cpp:c10d::Store::wait(std::vector<std::string> const&):9"};
  BOOST_TEST(frames(dump, 0) == expected, boost::test_tools::per_element());
  BOOST_TEST(frames(dump, 1)[0] == "/lib/libc.so.6:read:0");
  BOOST_TEST(dump.threads[0].frames[0].native);
}

BOOST_AUTO_TEST_CASE(text_of_eu_stack_gives_functions_and_their_libraries) {
  const ReadStacks got = read(kEuStack);
  BOOST_REQUIRE(got.dumps.size() == 1u);
  const StackDump& dump = got.dumps[0];
  BOOST_REQUIRE(dump.threads.size() == 2u);
  BOOST_TEST((dump.tool == StackTool::kEuStack && dump.threads[0].main && !dump.threads[1].main));
  BOOST_TEST(frames(dump, 0)[0] ==
             "../sysdeps/unix/sysv/linux/clock_nanosleep.c:clock_nanosleep@GLIBC_2.2.5:48");
  BOOST_TEST(frames(dump, 0)[1] == "/usr/bin/python3.11::0");
}

BOOST_AUTO_TEST_CASE(a_debug_server_gives_a_dump_or_a_refusal_for_each_rank) {
  const ReadStacks got = read("=== Rank 0: http://node-0:41235 ===\n" + kFaultHandler +
                                  "\n=== Rank 1: http://node-1:41236 ===\nError: 503\n\n"
                                  "=== Rank 12: http://node-2:4 ===\n" +
                                  kPySpy,
                              "debug/stacks_20261126_101500.txt");
  BOOST_REQUIRE(got.dumps.size() == 2u);
  BOOST_TEST((got.dumps[0].rank == 0u && got.dumps[1].rank == 12u));
  BOOST_REQUIRE(got.refusals.size() == 1u);
  BOOST_TEST((got.refusals[0].rank == 1u && got.refusals[0].reason == "Error: 503"));
}

BOOST_AUTO_TEST_CASE(json_of_py_spy_gives_threads_of_the_process_and_of_its_workers) {
  const std::string text =
      R"([{"pid":7,"thread_id":140,"thread_name":"MainThread","os_thread_id":7,"active":false,"owns_gil":false,)"
      R"("frames":[{"name":"forward","filename":"/w/model.py","module":null,"line":12,"locals":null},)"
      R"({"name":"main","filename":"/w/t.py","line":3}]},)"
      R"({"pid":9,"thread_id":140,"thread_name":null,"os_thread_id":9,"active":true,"owns_gil":true,)"
      R"("frames":[{"name":"read","filename":"libc.so.6","line":0}]}])";
  const ReadStacks got = read(text + "\n" + text, "stacks/node-1/rank_3.json");
  BOOST_REQUIRE(got.dumps.size() == 2u);
  const StackDump& dump = got.dumps[1];
  BOOST_REQUIRE(dump.threads.size() == 2u);
  BOOST_TEST((dump.pid == 7u && dump.sample == 1u && dump.threads[0].main && dump.threads[1].pid == 9u));
  BOOST_TEST((dump.threads[0].state == ThreadState::kIdle && dump.threads[1].state == ThreadState::kGil));
  BOOST_TEST(frames(dump, 0)[0] == "/w/model.py:forward:12");
  BOOST_TEST((dump.threads[1].frames[0].native));
}

BOOST_AUTO_TEST_CASE(lines_of_kind_stack_name_their_host_rank_and_time) {
  const ReadStacks got = read(
      R"({"kind":"stack","host":"b","rank":5,"time_ns":17,"pid":8,"state":"D","wchan":"x","waits":{"served":true,)"
      R"("wchan":"fuse_wait"},"threads":[{"name":"MainThread","tid":8,"frames":["train.py:forward:120",)"
      R"("libc10.so:c10::f(int):0","lock"]}]})"
      "\n"
      R"({"kind":"stack","rank":6,"state":"gone"})",
      "dumps.ndjson");
  BOOST_REQUIRE(got.dumps.size() == 1u);
  const StackDump& dump = got.dumps[0];
  BOOST_TEST((dump.host == "b" && dump.rank == 5u && dump.time_ns == 17 && dump.threads[0].main));
  BOOST_TEST((dump.process_state == "D" && dump.waits_in == "fuse_wait"));
  const std::vector<std::string> expected = {"train.py:forward:120", "libc10.so:c10::f(int):0", ":lock:0"};
  BOOST_TEST(frames(dump, 0) == expected, boost::test_tools::per_element());
  BOOST_REQUIRE(got.refusals.size() == 1u);
  BOOST_TEST(got.refusals[0].rank == 6u);
}

BOOST_AUTO_TEST_CASE(a_frame_with_a_line_of_c_source_is_native) {
  const ReadStacks got =
      read(R"({"kind":"stack","rank":5,"pid":8,"tool":"gdb","threads":[{"tid":8,"frames":[)"
           R"("./nptl/futex-internal.c:__futex_abstimed_wait_common64:57",":PyObject_Vectorcall",)"
           R"("../sysdeps/unix/sysv/linux/x86_64/clone3.S:clone3:81","train.py:step:9","<string>:run:1"]}]})",
           "dumps.ndjson");
  BOOST_REQUIRE(got.dumps.size() == 1u);
  std::string native;
  for (const StackFrame& f : got.dumps[0].threads[0].frames) native += f.native ? 'n' : 'p';
  BOOST_TEST(native == "nnnpp");
}

BOOST_AUTO_TEST_CASE(a_file_that_the_program_watches_itself_with_names_its_process_first) {
  const ReadStacks got = read(R"({"pid": 44, "signal": 35, "job": "j", "host": "node-9", "rank": 21})"
                              "\n" +
                                  kFaultHandler,
                              "44-1.stacks");
  BOOST_REQUIRE(got.dumps.size() == 1u);
  BOOST_TEST((got.dumps[0].rank == 21u && got.dumps[0].host == "node-9" && got.dumps[0].pid == 44u));
}

BOOST_AUTO_TEST_CASE(the_name_gives_a_rank_only_after_that_word) {
  const std::vector<std::pair<std::string, std::optional<uint32_t>>> cases = {
      {"stacks/node-7/rank_12.json", 12},
      {"pyspy_rank3.2.txt", 3},
      {"rank-8.txt.gz", 8},
      {"node-7.txt", std::nullopt},
      {"py-spy-4711.txt", std::nullopt},
      {"rank_99999999999.txt", std::nullopt}};
  for (const auto& [path, rank] : cases) BOOST_TEST((stack_rank_in_name(path) == rank), path);
  BOOST_TEST((stack_host_in_path("run/stacks/node-7/rank_1.txt") == "node-7"));
  BOOST_TEST(!stack_host_in_path("run/other/node-7/rank_1.txt"));
}

BOOST_AUTO_TEST_CASE(a_cut_dump_is_read_up_to_the_cut) {
  const std::string text =
      R"([{"pid":7,"thread_id":1,"thread_name":"MainThread","frames":[{"name":"f","filename":"a.py","line":1},{"na)";
  const ReadStacks got = read(text, "rank_0.json");
  BOOST_TEST(got.dumps.size() == 1u);
  BOOST_REQUIRE(got.problems.size() == 1u);
  BOOST_TEST(got.problems[0].offset.has_value());
}

BOOST_AUTO_TEST_CASE(what_is_no_stack_is_refused_with_the_path) {
  for (const std::string& text :
       {std::string("hello\nworld\n"), std::string("{\"a\": 1}"), std::string("  \n")}) {
    const auto got = parse_stacks(text, "dir/rank_0.txt");
    BOOST_REQUIRE(!got);
    BOOST_TEST(got.error().text.starts_with("dir/rank_0.txt: "));
  }
}

BOOST_AUTO_TEST_CASE(threads_and_frames_beyond_the_limits_are_counted) {
  std::string deep = "Process 1: x\n\nThread 1 (idle): \"MainThread\"\n";
  for (size_t i = 0; i < limits::kStackFrames + 10; ++i) deep += "    f (a.py:1)\n";
  const ReadStacks got = read(deep);
  BOOST_TEST(got.dumps[0].threads[0].frames.size() == limits::kStackFrames);
  BOOST_REQUIRE(got.problems.size() == 1u);
  BOOST_TEST(got.problems[0].what.starts_with("10 "));
}

BOOST_AUTO_TEST_SUITE_END()
