// A test of memory: values that differ in each word are written past the caches and read again, then their
// complements, then single bits that walk through each word. Finds wrong data, stuck bits and wrong
// addresses in the tested pages alone: a passed test says nothing about the rest of the memory.
//
// Blocking; any thread. Uses `bytes` of memory, or less where little is available.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "base/time.h"
#include "check/part.h"

namespace culprit::check {

struct MemoryTest {
  uint64_t bytes = 128 << 20;
  TimeNs until_ns = 0;     // monotonic
  uint64_t seed = 0;       // of the walking bits' first position and of the random values
  uint64_t available = 0;  // bytes that may be used; less than `bytes` shortens the test
  // For tests: called after each fill, before the words are read.
  std::function<void(std::span<uint64_t> words)> disturb = {};
};
Part test_memory(const MemoryTest& test);

// Bytes that this process may allocate without harm: a quarter of what the kernel calls available, and half
// of what is left in its control group. 0: unknown.
uint64_t available_memory(const std::string& proc = "/proc", const std::string& cgroups = "/sys/fs/cgroup");

}  // namespace culprit::check
