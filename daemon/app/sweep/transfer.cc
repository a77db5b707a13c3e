#include "app/sweep/transfer.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <vector>

#include "base/clock.h"

namespace culprit::app::sweeping {
namespace {

constexpr size_t kChunk = 256 << 10;
constexpr size_t kPatternWords = (1 << 17) + 3;  // 1 MiB and a bit: no chunk lies in it as the last one did
constexpr int kRoundTrips = 50;
constexpr uint64_t kSlowStart = 8;  // its first part of the bytes counts for no rate

// The bytes of one direction, again and again.
class Pattern {
 public:
  explicit Pattern(uint64_t seed) : words_(kPatternWords + kChunk / 8 + 1) {
    for (size_t i = 0; i < kPatternWords; ++i) words_[i] = next(seed);
    for (size_t i = kPatternWords; i < words_.size(); ++i) words_[i] = words_[i - kPatternWords];
  }
  // At most kChunk bytes from `offset` on lie behind.
  const char* at(uint64_t offset) const {
    return reinterpret_cast<const char*>(words_.data()) + offset % (kPatternWords * 8);
  }

 private:
  static uint64_t next(uint64_t& state) {  // SplitMix64
    uint64_t x = state += 0x9e3779b97f4a7c15ull;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
    return x ^ (x >> 31);
  }
  std::vector<uint64_t> words_;
};

uint64_t wrong_bytes(const char* data, const char* expected, size_t size) {
  if (std::memcmp(data, expected, size) == 0) return 0;
  uint64_t out = 0;
  for (size_t i = 0; i < size; ++i) out += data[i] != expected[i];
  return out;
}

// How long this thread waited for a processor.
class Waited {
 public:
  TimeNs ns() const { return std::max<TimeNs>(read() - before_, 0); }

 private:
  static TimeNs read() {
    char text[128];
    const int fd = ::open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
    if (fd < 0) return 0;
    const ssize_t n = ::read(fd, text, sizeof text);
    ::close(fd);
    const std::string_view all(text, n > 0 ? static_cast<size_t>(n) : 0);
    const size_t space = all.find(' ');
    TimeNs out = 0;
    if (space != all.npos) (void)std::from_chars(all.data() + space + 1, all.data() + all.size(), out);
    return out;
  }
  TimeNs before_ = read();
};

class Exchange {
 public:
  Exchange(const Task& task, Listener& listener, const std::string& secret)
      : task_(task), listener_(listener), secret_(secret) {
    done_.id = task.id;
  }

  Done run() {
    const TimeNs within = TimeNs{task_.within_ms} * kNsPerMs;
    if (Wire wire = meet(0, within); wire.is_open()) {
      done_.answer = Done::Answer::kMeasured;
      const TimeNs until = steady_now() + within;
      trips(wire, until);
      // The end that connects sends first.
      flow(wire, task_.connects, 0, until);
      wire.close();
      if (Wire back = meet(1, within); back.is_open()) flow(back, !task_.connects, 1, steady_now() + within);
    }
    return done_;
  }

 private:
  Wire meet(uint64_t number, TimeNs within) {
    const uint64_t purpose = 2 * task_.id + number;
    const TimeNs until = steady_now() + within;
    if (!task_.connects) {
      // The other end may have waited for this one, and its limit began later.
      auto wire = listener_.accept(secret_, purpose, until + within / 2);
      return wire ? std::move(*wire) : Wire();
    }
    auto wire = connect_to(task_.address, task_.port, until);
    if (!wire) {
      if (number == 0)
        done_.answer =
            wire.error() == Failure::kUnreached ? Done::Answer::kUnreached : Done::Answer::kRefused;
      return Wire();
    }
    if (!prove_as_connector(*wire, secret_, purpose, until)) return Wire();
    return std::move(*wire);
  }

  void trips(Wire& wire, TimeNs until) {
    char byte = 0;
    for (int i = 0; i < kRoundTrips; ++i) {
      const TimeNs began = steady_now();
      if (task_.connects) {
        if (!wire.send(&byte, 1, until) || !wire.receive(&byte, 1, until)) return;
        const TimeNs took = steady_now() - began;
        if (done_.latency_ns == kNoTime || took < done_.latency_ns) done_.latency_ns = took;
      } else if (!wire.receive(&byte, 1, until) || !wire.send(&byte, 1, until)) {
        return;
      }
    }
  }

  void flow(Wire& wire, bool sends, uint64_t number, TimeNs until) {
    const Pattern pattern(keyed_number(secret_, fmt::format("bytes {} {}", task_.id, number)));
    const Waited waited;
    sends ? send(wire, pattern, until) : receive(wire, pattern, until);
    (sends ? done_.waited_out_ns : done_.waited_in_ns) = waited.ns();
  }

  void send(Wire& wire, const Pattern& pattern, TimeNs until) const {
    for (uint64_t at = 0; at < task_.bytes;) {
      const size_t size = std::min<uint64_t>(kChunk, task_.bytes - at);
      if (!wire.send(pattern.at(at), size, until)) return;
      at += size;
    }
    char byte = 0;
    (void)wire.receive_some(&byte, 1, until);  // the other end has all of it, and closes
  }

  void receive(Wire& wire, const Pattern& pattern, TimeNs until) {
    std::vector<char> chunk(kChunk);
    const uint64_t first = task_.bytes / kSlowStart;
    TimeNs began = steady_now();
    uint64_t counted = 0;
    bool ended = false;
    while (done_.bytes < task_.bytes && !ended) {
      const size_t size = std::min<uint64_t>(kChunk, task_.bytes - done_.bytes);
      const auto n = wire.receive_some(chunk.data(), size, until);
      ended = n && *n == 0;
      if (!n || ended) break;
      done_.wrong += wrong_bytes(chunk.data(), pattern.at(done_.bytes), *n);
      done_.bytes += *n;
      if (counted == 0 && done_.bytes >= first) counted = done_.bytes, began = steady_now();
      if (steady_now() > until) break;
    }
    // A time limit gives a rate as well; an end that went away does not.
    done_.measured = !ended;
    done_.took_ns = std::max<TimeNs>(steady_now() - began, 1);
    // The message has the bytes of the whole transfer: the time is scaled to them.
    if (const uint64_t timed = done_.bytes - counted; timed > 0)
      done_.took_ns = static_cast<TimeNs>(static_cast<double>(done_.took_ns) *
                                          static_cast<double>(done_.bytes) / static_cast<double>(timed));
  }

  const Task& task_;
  Listener& listener_;
  const std::string& secret_;
  Done done_;
};

}  // namespace

Done run_task(const Task& task, Listener& listener, const std::string& secret) {
  return Exchange(task, listener, secret).run();
}

}  // namespace culprit::app::sweeping
