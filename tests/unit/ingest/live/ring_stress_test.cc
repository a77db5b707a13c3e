// Real processes at full speed: each attempt to push has a number, and each number arrives or counts as
// dropped.
#include "ring_fixtures.h"

#include <sys/mman.h>

#include <csignal>
#include <random>

namespace culprit::ingest::testing {
namespace {

// Number of finished attempts of a producer, also after kill -9.
struct Progress {
  uint64_t attempts = 0;
};

struct Producer {
  pid_t pid = -1;
  Progress* progress = nullptr;
};

Producer produce(const std::string& folder, uint32_t capacity) {
  Producer out;
  void* page = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  BOOST_REQUIRE(page != MAP_FAILED);
  out.progress = static_cast<Progress*>(page);
  out.pid = fork();
  BOOST_REQUIRE(out.pid >= 0);
  if (out.pid != 0) return out;
  culprit_ring* ring = make_ring(folder, capacity);
  for (uint64_t n = 0;; ++n) {
    push(ring, n);
    __atomic_store_n(&out.progress->attempts, n + 1, __ATOMIC_RELEASE);
  }
}

uint64_t attempts(const Producer& producer) {
  return __atomic_load_n(&producer.progress->attempts, __ATOMIC_ACQUIRE);
}

void kill_now(Producer* producer) {
  kill(producer->pid, SIGKILL);
  waitpid(producer->pid, nullptr, 0);
}

BOOST_AUTO_TEST_CASE(every_number_comes_or_is_counted_through_kills_of_either_side) {
  std::mt19937 random(5);
  for (const uint32_t capacity : {1u, 16u, 1024u, 65536u}) {
    BOOST_TEST_CONTEXT("capacity " << capacity) {
      RingFolder folder;
      RingHost host(folder.path());
      std::vector<Producer> producers = {produce(folder.path(), capacity), produce(folder.path(), capacity)};
      const uint64_t enough = 300'000;
      while (attempts(producers[0]) < enough || attempts(producers[1]) < enough || host.streams.size() < 2) {
        host.round(10 * kNsPerMs, 256 << 10);
        if (random() % 2) host.commit();
        if (random() % 64 == 0) host.reader.reset();
        if (!host.reader) host.start();
      }
      for (Producer& producer : producers) kill_now(&producer);
      for (int i = 0; i < 100 && folder.files() > 0; ++i) host.rounds(1);
      BOOST_TEST(folder.files() == 0u);
      BOOST_REQUIRE_EQUAL(host.streams.size(), 2u);
      uint64_t all = 0, done = 0;
      for (const auto& [id, retained] : host.streams) {
        BOOST_TEST(retained.state.ended);
        BOOST_TEST(retained.torn == 0u);
        uint64_t next = 0;
        bool ordered = true;
        for (const uint64_t seq : retained.seqs) {
          ordered &= seq >= next;
          next = seq + 1;
        }
        BOOST_TEST(ordered);
        all += retained.seqs.size() + retained.missing();
      }
      for (const Producer& producer : producers) done += attempts(producer);
      // A kill may separate a push and its count: one each.
      BOOST_TEST(all >= done);
      BOOST_TEST(all <= done + 2);
      for (const Producer& producer : producers) munmap(producer.progress, 4096);
    }
  }
}

}  // namespace
}  // namespace culprit::ingest::testing
