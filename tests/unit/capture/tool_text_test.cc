#include "capture/tool_text.h"

#include <boost/test/unit_test.hpp>

using namespace culprit::capture;

BOOST_AUTO_TEST_SUITE(tool_text)

BOOST_AUTO_TEST_CASE(py_spy_gives_threads_with_frames) {
  const auto stacks = read_py_spy(R"([{"pid":1,"thread_id":9,"thread_name":"MainThread","os_thread_id":12,
    "active":true,"owns_gil":true,"frames":[
      {"name":"forward","filename":"/x/train.py","short_filename":"train.py","line":120,"locals":null},
      {"name":"main","filename":"/x/a:b.py","short_filename":null,"line":7}]},
    {"thread_name":null,"os_thread_id":13,"frames":[]}])");
  BOOST_REQUIRE(stacks);
  BOOST_REQUIRE(stacks->threads.size() == 1u);
  const StackedThread& thread = stacks->threads[0];
  BOOST_TEST(thread.name == "MainThread");
  BOOST_TEST(thread.tid == 12u);
  BOOST_TEST(thread.holds_gil);
  BOOST_TEST(thread.frames == (std::vector<std::string>{"train.py:forward:120", "/x/a.b.py:main:7"}),
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(gdb_gives_threads_with_libraries_and_lines) {
  const auto stacks = read_gdb(
      "Thread 2 (Thread 0x7f1 (LWP 32) \"pt_autograd_0\"):\n"
      "#0  0x00007f in __poll (fds=0x1, nfds=2) at ../sysdeps/poll.c:29\n"
      "#1  0x00007e in ?? () from /lib/libcuda.so.1\n"
      "#2  gloo::wait (this=0x5) at wait.cc:88\n\n"
      "Thread 1 (Thread 0x7f2 (LWP 31) \"a\") R (LWP 7) \"b\"):\n"
      "#0  0x01 in main ()\n");
  BOOST_REQUIRE(stacks);
  BOOST_REQUIRE(stacks->threads.size() == 2u);
  BOOST_TEST(stacks->threads[0].name == "pt_autograd_0");
  BOOST_TEST(stacks->threads[0].tid == 32u);
  BOOST_TEST(stacks->threads[0].frames ==
                 (std::vector<std::string>{"../sysdeps/poll.c:__poll:29", "/lib/libcuda.so.1:??",
                                           "wait.cc:gloo::wait:88"}),
             boost::test_tools::per_element());
  BOOST_TEST(stacks->threads[1].tid == 31u);
}

BOOST_AUTO_TEST_CASE(eu_stack_gives_threads_with_libraries) {
  const auto stacks = read_eu_stack(
      "PID 31 - process\nTID 31:\n#0  0x00007f0000000001     __poll - /lib/libc.so.6\n"
      "#1  0x00007f0000000002 - 1 - /usr/bin/python3.11\n#2  0x00007f0000000003     main\nTID 32:\n"
      "#0  0x1     clone3 - /lib/libc.so.6\n");
  BOOST_REQUIRE(stacks);
  BOOST_REQUIRE(stacks->threads.size() == 2u);
  BOOST_TEST(stacks->threads[0].tid == 31u);
  BOOST_TEST(stacks->threads[0].frames ==
                 (std::vector<std::string>{"/lib/libc.so.6:__poll", "/usr/bin/python3.11:??", ":main"}),
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(faulthandler_gives_threads_with_lines) {
  const auto stacks = read_faulthandler(
      "Thread 0x00007f1 (most recent call first):\n  File \"/x/queue.py\", line 180 in get\n"
      "  File \"/x/in line 5.py\", line 3 in <module>\n\n"
      "Current thread 0x00007f2 [MainThread] (most recent call first):\n  File \"train.py\", line 9 in "
      "strike\n");
  BOOST_REQUIRE(stacks);
  BOOST_REQUIRE(stacks->threads.size() == 2u);
  BOOST_TEST(stacks->threads[0].frames ==
                 (std::vector<std::string>{"/x/queue.py:get:180", "/x/in line 5.py:<module>:3"}),
             boost::test_tools::per_element());
  BOOST_TEST(stacks->threads[1].name == "MainThread");
}

BOOST_AUTO_TEST_CASE(a_text_without_a_stack_is_an_error) {
  for (const auto* text :
       {"", "ptrace: Operation not permitted.", "[]", "{}", "TID 5:\n", "#", "Thread 1 (", "\0"}) {
    BOOST_TEST(!read_py_spy(text));
    BOOST_TEST(!read_gdb(text));
    BOOST_TEST(!read_eu_stack(text));
    BOOST_TEST(!read_faulthandler(text));
  }
}

BOOST_AUTO_TEST_CASE(what_is_beyond_the_limits_is_counted) {
  std::string text;
  for (size_t thread = 0; thread < kToolThreads + 5; ++thread) {
    text += "TID " + std::to_string(thread + 1) + ":\n";
    const size_t frames = thread == 0 ? kToolFrames + 3 : 1;
    for (size_t i = 0; i < frames; ++i)
      text += "#" + std::to_string(i) + "  0x1  " + std::string(5000, 'f') + "\n";
  }
  const auto stacks = read_eu_stack(text);
  BOOST_REQUIRE(stacks);
  BOOST_TEST(stacks->threads.size() == kToolThreads);
  BOOST_TEST(stacks->threads[0].frames.size() == kToolFrames);
  BOOST_TEST(stacks->threads[0].frames[0].size() <= kFrameBytes + 1);
  BOOST_TEST(stacks->dropped == 8u);
}

BOOST_AUTO_TEST_SUITE_END()
