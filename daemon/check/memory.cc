#include "check/memory.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <optional>
#if defined(__x86_64__)
#include <emmintrin.h>
#endif

#include "base/clock.h"
#include "base/text.h"
#include "check/text_file.h"

namespace culprit::check {
namespace {

constexpr uint64_t kLeastBytes = 1 << 20;  // less proves nothing
constexpr size_t kChunkWords = 1 << 17;    // 1 MiB: between two looks at the clock

// Past the caches: what is read afterwards comes from the memory.
void put_word(uint64_t* to, uint64_t value) {
#if defined(__x86_64__)
  _mm_stream_si64(reinterpret_cast<long long*>(to), static_cast<long long>(value));
#else
  *const_cast<volatile uint64_t*>(to) = value;
#endif
}

void finish_writes() {
#if defined(__x86_64__)
  _mm_sfence();
#else
  __sync_synchronize();
#endif
}

uint64_t mixed(uint64_t x) {  // the finisher of SplitMix64
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

enum class Pattern { kIndex, kIndexInverted, kWalkingOne, kWalkingZero, kRandom };

uint64_t word_of(Pattern pattern, size_t i, uint64_t seed) {
  switch (pattern) {
    case Pattern::kIndex:
      return i * sizeof(uint64_t);
    case Pattern::kIndexInverted:
      return ~(i * sizeof(uint64_t));
    case Pattern::kWalkingOne:
      return uint64_t{1} << ((i + seed) % 64);
    case Pattern::kWalkingZero:
      return ~(uint64_t{1} << ((i + seed) % 64));
    case Pattern::kRandom:
      break;
  }
  return mixed(i + seed);
}

struct Differences {
  uint64_t words = 0;
  size_t first = 0;
  uint64_t bits = 0;  // of all of them
};

class Pages {
 public:
  explicit Pages(uint64_t bytes) : bytes_(bytes / 4096 * 4096) {
    void* at = ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at != MAP_FAILED) at_ = at;
  }
  ~Pages() {
    if (at_) ::munmap(at_, bytes_);
  }
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;
  bool mapped() const { return at_ != nullptr; }
  std::span<uint64_t> words() { return {static_cast<uint64_t*>(at_), bytes_ / sizeof(uint64_t)}; }

 private:
  const uint64_t bytes_;
  void* at_ = nullptr;
};

class MemoryRun {
 public:
  MemoryRun(const MemoryTest& test, std::span<uint64_t> words) : test_(test), words_(words) {}

  // False: the time is over.
  bool pass(Pattern pattern) {
    if (!each_chunk([&](size_t from, size_t to) {
          for (size_t i = from; i < to; ++i) put_word(&words_[i], word_of(pattern, i, test_.seed));
        }))
      return false;
    finish_writes();
    if (test_.disturb) test_.disturb(words_);
    const TimeNs began = steady_now();
    const bool whole = each_chunk([&](size_t from, size_t to) {
      for (size_t i = from; i < to; ++i)
        if (const uint64_t bits = words_[i] ^ word_of(pattern, i, test_.seed); bits != 0) note(i, bits);
    });
    read_ns_ += steady_now() - began;
    if (whole) read_bytes_ += words_.size_bytes();
    return whole;
  }
  const Differences& found() const { return found_; }
  double rate() const {
    return read_ns_ > 0 ? static_cast<double>(read_bytes_) / static_cast<double>(read_ns_) : 0;
  }

 private:
  template <class Work>
  bool each_chunk(Work work) {
    for (size_t from = 0; from < words_.size(); from += kChunkWords) {
      if (steady_now() >= test_.until_ns) return false;
      work(from, std::min(from + kChunkWords, words_.size()));
    }
    return true;
  }
  void note(size_t i, uint64_t bits) {
    if (found_.words++ == 0) found_.first = i;
    found_.bits |= bits;
  }

  const MemoryTest& test_;
  const std::span<uint64_t> words_;
  Differences found_;
  TimeNs read_ns_ = 0;
  uint64_t read_bytes_ = 0;
};

std::optional<uint64_t> kernel_available(const std::string& proc) {
  const auto text = read_text(proc + "/meminfo", 16384);
  constexpr std::string_view kName = "MemAvailable:";
  const size_t at = text ? text->find(kName) : std::string::npos;
  if (at == std::string::npos) return std::nullopt;
  const std::string_view rest = trim(std::string_view(*text).substr(at + kName.size()));
  uint64_t kib = 0;
  std::from_chars(rest.data(), rest.data() + rest.size(), kib);
  return kib * 1024;
}

}  // namespace

Part test_memory(const MemoryTest& test) {
  const TimeNs began = steady_now();
  Part out{"memory", Answer::kNoAnswer, "", 0, "GB/s", 0};
  const uint64_t bytes = std::min(test.bytes, test.available);
  if (bytes < kLeastBytes) {
    out.unit.clear();
    out.text = fmt::format("only {} are available for the test", format_bytes(bytes));
    return out;
  }
  Pages pages(bytes);
  if (!pages.mapped()) {
    out.text = fmt::format("{} cannot be allocated: {}", format_bytes(bytes), std::strerror(errno));
    return out;
  }
  MemoryRun run(test, pages.words());
  bool whole = true;
  for (const Pattern pattern : {Pattern::kIndex, Pattern::kIndexInverted, Pattern::kWalkingOne,
                                Pattern::kWalkingZero, Pattern::kRandom}) {
    whole = whole && run.pass(pattern);
    if (run.found().words > 0) break;
  }
  out.took_ns = steady_now() - began;
  out.figure = run.rate();
  const Differences& found = run.found();
  if (found.words > 0) {
    out.answer = Answer::kFailed;
    out.text = fmt::format(
        "{} of {} words differ from what was written, {} bits of them, first at byte {:#x}", found.words,
        pages.words().size(), std::popcount(found.bits), found.first * sizeof(uint64_t));
  } else if (!whole) {
    out.text = fmt::format("{} were not tested in time", format_bytes(bytes));
  } else {
    out.answer = Answer::kPassed;
    out.text = fmt::format("{} hold 5 patterns, read at {:.1f} GB/s", format_bytes(bytes), out.figure);
  }
  return out;
}

uint64_t available_memory(const std::string& proc, const std::string& cgroups) {
  const auto of_kernel = kernel_available(proc);
  if (!of_kernel) return 0;
  uint64_t out = *of_kernel / 4;
  // The unified hierarchy: "0::/system.slice/culpritd.service".
  const auto text = read_text(proc + "/self/cgroup", 65536);
  const size_t at = text ? text->find("0::") : std::string::npos;
  if (at == std::string::npos) return out;
  std::string group(trim(std::string_view(*text).substr(at + 3, text->find('\n', at) - at - 3)));
  for (int level = 0; level < 16 && group.size() > 1; ++level) {
    const auto most = read_number(cgroups + group + "/memory.max");
    const auto now = read_number(cgroups + group + "/memory.current");
    if (most && now) out = std::min(out, (*most - std::min(*most, *now)) / 2);
    group.resize(std::min(group.size(), group.rfind('/')));
  }
  return out;
}

}  // namespace culprit::check
