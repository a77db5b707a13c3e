// Cost of the NCCL plugin in a training process, called as NCCL calls it: bench_nccl [rounds], 200 by
// default. Each round is 1,000 collectives of 8 channels: the user's thread pays for the enqueue, the proxy
// thread for the channels. Operations are timed in groups of 10, to exclude the clock; the ring is emptied
// between rounds. Prints "who median_ns p99_ns", ns per operation.
#include <culprit/ring.h>
#include <dlfcn.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "abi.h"

namespace {

constexpr int kOperations = 1000, kGroup = 10;
constexpr uint8_t kChannels = 8;

// Acts as the daemon: reads all written records.
void empty_rings(const std::string& folder) {
  static std::vector<culprit_ring_header*> mapped;
  if (mapped.empty())
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
      const int descriptor = open(entry.path().c_str(), O_RDWR);
      void* at =
          mmap(nullptr, sizeof(culprit_ring_header), PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
      if (at == MAP_FAILED) std::exit((std::perror("mmap"), 2));
      mapped.push_back(static_cast<culprit_ring_header*>(at));
    }
  for (culprit_ring_header* header : mapped)
    __atomic_store_n(&header->read, __atomic_load_n(&header->written, __ATOMIC_ACQUIRE), __ATOMIC_RELEASE);
}

struct Nccl {
  nccl_profiler_v5* table;
  void* context = nullptr;

  void* enqueue() {
    nccl_descriptor_v5 event;
    void* handle = nullptr;
    event.type = NCCL_COLL;
    event.of.coll.function = "AllReduce";
    event.of.coll.datatype = "ncclBfloat16";
    event.of.coll.count = 1 << 20;
    event.of.coll.channels = kChannels;
    table->start_event(context, &handle, &event);
    table->stop_event(handle);
    return handle;
  }

  void channels(void* parent, uint64_t time) {
    nccl_descriptor_v5 event;
    void* handles[kChannels];
    event.type = NCCL_KERNEL_CHANNEL;
    event.parent = parent;
    event.of.kernel.timer = time;
    for (uint8_t c = 0; c < kChannels; ++c) {
      event.of.kernel.channel = c;
      table->start_event(context, &handles[c], &event);
    }
    nccl_state_args args{{time + 1000}};
    for (void* handle : handles) {
      table->record_event_state(handle, NCCL_KERNEL_CHANNEL_STOP, &args);
      table->stop_event(handle);
    }
  }
};

template <class Work>
void timed(std::vector<double>* ns, Work work) {
  for (int group = 0; group < kOperations / kGroup; ++group) {
    const uint64_t before = culprit_now_ns();
    for (int i = 0; i < kGroup; ++i) work(group * kGroup + i);
    ns->push_back(static_cast<double>(culprit_now_ns() - before) / kGroup);
  }
}

void print(const char* who, std::vector<double>* ns) {
  std::sort(ns->begin(), ns->end());
  std::printf("%s %.1f %.1f\n", who, (*ns)[ns->size() / 2], (*ns)[ns->size() * 99 / 100]);
}

}  // namespace

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::max(1, std::atoi(argv[1])) : 200;
  char folder[] = "/dev/shm/culprit-bench-XXXXXX";
  if (!mkdtemp(folder)) return std::perror(folder), 2;
  setenv("CULPRIT_RINGS", folder, 1);
  unsetenv("CULPRIT_COMM_DIR");
  void* library = dlopen(CULPRIT_NCCL_PLUGIN, RTLD_NOW);
  if (!library) return std::fprintf(stderr, "%s\n", dlerror()), 2;
  Nccl nccl{static_cast<nccl_profiler_v5*>(dlsym(library, "ncclProfiler_v5"))};
  int mask = 0;
  nccl.table->init(&nccl.context, 1, &mask, "default_pg", 1, 8, 3, nullptr);
  std::vector<double> user, proxy;
  std::vector<void*> handles(kOperations);
  for (int round = 0; round < rounds; ++round) {
    timed(&user, [&](int i) { handles[static_cast<size_t>(i)] = nccl.enqueue(); });
    const uint64_t now = culprit_now_ns();
    timed(&proxy, [&](int i) { nccl.channels(handles[static_cast<size_t>(i)], now); });
    empty_rings(folder);
  }
  nccl.table->finalize(nccl.context);
  print("user", &user);
  print("proxy", &proxy);
  std::filesystem::remove_all(folder);
  return 0;
}
