// The plugin, loaded and called as by NCCL, for each version of its interface. Each instance is a separate
// plugin: a copy of the library with its own static memory, and the environment at its creation.
#pragma once

#include <dlfcn.h>

#include <boost/test/unit_test.hpp>
#include <cstdarg>
#include <map>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <type_traits>

#include "abi.h"
#include "tracer_fixtures.h"

namespace culprit::testing {

// Variables of the launcher; a missing value is unset.
inline void set_environment(const std::map<std::string, std::string>& values) {
  for (const char* name :
       {"RANK", "WORLD_SIZE", "LOCAL_RANK", "CUDA_VISIBLE_DEVICES", "CULPRIT_JOB", "CULPRIT_RINGS",
        "CULPRIT_COMM_DIR", "SLURM_JOB_ID", "SLURM_PROCID", "SLURM_NTASKS", "OMPI_COMM_WORLD_RANK"})
    unsetenv(name);
  for (const auto& [name, value] : values) setenv(name.c_str(), value.c_str(), 1);
}

inline std::vector<std::string>& log_lines() {
  static std::vector<std::string> lines;
  return lines;
}

inline void log_line(int, unsigned long, const char*, int, const char* format, ...) {
  char text[512];
  va_list more;
  va_start(more, format);
  vsnprintf(text, sizeof text, format, more);
  va_end(more);
  static std::mutex mutex;
  const std::lock_guard<std::mutex> guard(mutex);
  log_lines().push_back(text);
}

class Library {
 public:
  explicit Library(std::map<std::string, std::string> environment = {{"RANK", "3"}, {"WORLD_SIZE", "8"}}) {
    environment.emplace("CULPRIT_RINGS", folder_.path());
    set_environment(environment);
    const std::string copy = folder_.path() + "/plugin.so";
    std::filesystem::copy_file(CULPRIT_NCCL_PLUGIN, copy);
    handle_ = dlopen(copy.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!handle_) BOOST_FAIL(dlerror());
  }
  Library(const Library&) = delete;

  template <class T>
  T* symbol(const char* name) const {
    return reinterpret_cast<T*>(dlsym(handle_, name));
  }
  std::vector<culprit_record> records() const { return ring_records(folder_); }
  const Folder& folder() const { return folder_; }

 private:
  Folder folder_;
  void* handle_;
};

struct Comm {
  uint64_t id = 0x1234;
  const char* name = "default_pg";
  int size = 8, rank = 3;
};

struct Coll {
  const char* function = "AllReduce";
  size_t count = 1024;
  const char* datatype = "ncclBfloat16";
  uint8_t channels = 2;
};

struct P2p {
  const char* function = "Send";
  int peer = 4;
  size_t count = 100;
  const char* datatype = "ncclFloat32";
  uint8_t channels = 1;
};

struct V3 {
  using Profiler = nccl_profiler_v3;
  using Descriptor = nccl_descriptor_v3;
  static constexpr const char* kName = "ncclProfiler_v3";
  static constexpr bool kDeviceTimes = false;
};
struct V4 {
  using Profiler = nccl_profiler_v4;
  using Descriptor = nccl_descriptor_v4;
  static constexpr const char* kName = "ncclProfiler_v4";
  static constexpr bool kDeviceTimes = true;
};
struct V5 {
  using Profiler = nccl_profiler_v5;
  using Descriptor = nccl_descriptor_v5;
  static constexpr const char* kName = "ncclProfiler_v5";
  static constexpr bool kDeviceTimes = true;
};
struct V6 : V5 {
  static constexpr const char* kName = "ncclProfiler_v6";
};

// One communicator of one version. Every call must succeed.
template <class V>
class Caller {
 public:
  Caller(const Library& library, Comm comm) : comm_(comm) {
    table_ = library.symbol<typename V::Profiler>(V::kName);
    // Boost's assertions allow one thread only: other threads throw on errors.
    if (!table_) throw std::runtime_error(V::kName);
    int result = -1;
    if constexpr (std::is_same_v<V, V3>)
      result = table_->init(&context_, &mask_);
    else if constexpr (std::is_same_v<V, V4>)
      result = table_->init(&context_, &mask_, comm.name, comm.id, 1, comm.size, comm.rank, log_line);
    else
      result = table_->init(&context_, comm.id, &mask_, comm.name, 1, comm.size, comm.rank, log_line);
    if (result != 0 || mask_ != 70) BOOST_ERROR("init: " << result << ", mask " << mask_);
  }

  void* start(typename V::Descriptor& event) const {
    void* handle = &handle;
    const int result = table_->start_event(context_, &handle, &event);
    if (result != 0) BOOST_ERROR("start_event failed");
    return handle;
  }

  // The enqueue: NCCL stops it at once.
  void* enqueue(const Coll& coll) const {
    typename V::Descriptor event;
    std::memset(&event, 0xa5, sizeof event);
    event.type = NCCL_COLL;
    event.rank = comm_.rank;
    if constexpr (std::is_same_v<V, V3>) {
      event.of.coll.comm_name = comm_.name;
      event.of.coll.comm_hash = comm_.id;
    }
    event.of.coll.function = coll.function;
    event.of.coll.count = coll.count;
    event.of.coll.datatype = coll.datatype;
    event.of.coll.channels = coll.channels;
    void* handle = start(event);
    stop(handle);
    return handle;
  }

  void* enqueue(const P2p& p2p) const {
    typename V::Descriptor event;
    std::memset(&event, 0xa5, sizeof event);
    event.type = NCCL_P2P;
    event.rank = comm_.rank;
    event.of.p2p.function = p2p.function;
    event.of.p2p.peer = p2p.peer;
    event.of.p2p.count = p2p.count;
    event.of.p2p.datatype = p2p.datatype;
    if constexpr (std::is_same_v<V, V3>) {
      event.of.p2p.comm_name = comm_.name;
      event.of.p2p.comm_hash = comm_.id;
    } else {
      event.of.p2p.channels = p2p.channels;
    }
    void* handle = start(event);
    stop(handle);
    return handle;
  }

  void* channel(void* parent, uint8_t number, uint64_t timer) const {
    typename V::Descriptor event;
    std::memset(&event, 0xa5, sizeof event);
    event.type = NCCL_KERNEL_CHANNEL;
    event.parent = parent;
    event.of.kernel.channel = number;
    if constexpr (!std::is_same_v<V, V3>) event.of.kernel.timer = timer;
    return start(event);
  }

  void stamp(void* handle, uint64_t timer) const {
    nccl_state_args args{{timer}};
    if (table_->record_event_state(handle, NCCL_KERNEL_CHANNEL_STOP, &args) != 0) BOOST_ERROR("state failed");
  }
  void stop(void* handle) const {
    if (table_->stop_event(handle) != 0) BOOST_ERROR("stop_event failed");
  }
  void finish(void* handle, uint64_t timer) const {
    stamp(handle, timer);
    stop(handle);
  }
  void finalize() const {
    if (table_->finalize(context_) != 0) BOOST_ERROR("finalize failed");
  }

 private:
  Comm comm_;
  typename V::Profiler* table_ = nullptr;
  void* context_ = nullptr;
  int mask_ = 0;
};

// The last record of each operation, in order, as a reader keeps it.
inline std::vector<culprit_record> last_of_each(const std::vector<culprit_record>& records) {
  std::vector<culprit_record> retained;
  for (const culprit_record& record : records) {
    bool seen = false;
    for (culprit_record& k : retained)
      if (k.comm == record.comm && k.rank == record.rank && k.op == record.op && k.peer == record.peer &&
          k.seq == record.seq && record.op != CULPRIT_JOIN)
        k = record, seen = true;
    if (!seen) retained.push_back(record);
  }
  return retained;
}

inline std::vector<culprit_record> operations(const Library& library) {
  std::vector<culprit_record> retained;
  for (const culprit_record& record : last_of_each(library.records()))
    if (record.op != CULPRIT_JOIN) retained.push_back(record);
  return retained;
}

}  // namespace culprit::testing
