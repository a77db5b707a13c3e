// Measures the memory that a target holds at most while it reads one input: its fuzz function has the name
// target() here. With CULPRIT_FUZZ_HELD (readers of untrusted bytes) it fails above the readers' budget:
// limits::kHeldPerByte for each byte of the input, and limits::kHeldFree. At the end it prints
// 'held: N bytes a byte' for the input of 4 KiB or more that held the most.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "base/heap_account.h"
#include "base/limits.h"

extern "C" int target(const uint8_t* data, size_t size);

namespace {

constexpr size_t kLarge = 4096;  // smaller inputs show the tables alone
double worst = 0;

uint64_t held(const uint8_t* data, size_t size) {
  culprit::HeapAccount account;
  {
    const culprit::HeapScope counted(&account);
    target(data, size);
  }
  return account.drain_peak();
}

// What a target holds without any input; tables that it makes once do not count.
uint64_t idle() {
  static const uint64_t bytes = (held(nullptr, 0), held(nullptr, 0));
  return bytes;
}

void report() { std::fprintf(stderr, "held: %.1f bytes a byte\n", worst); }

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace culprit;
  static const int once = std::atexit(report);
  (void)once;
  const uint64_t allowed = idle() + limits::kHeldFree + size * limits::kHeldPerByte;
  uint64_t most = held(data, size);
  if (most > allowed) most = held(data, size);  // again, without tables that the first one made
  if (size >= kLarge)
    worst = std::max(worst, static_cast<double>(most - std::min(most, idle())) / static_cast<double>(size));
#ifdef CULPRIT_FUZZ_HELD
  if (most > allowed) {
    std::fprintf(stderr, "ERROR: %zu bytes of input held %llu bytes, more than %llu\n", size,
                 static_cast<unsigned long long>(most), static_cast<unsigned long long>(allowed));
    std::abort();
  }
#endif
  return 0;
}
