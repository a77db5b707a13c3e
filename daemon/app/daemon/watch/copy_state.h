// What the copying threads report, for metrics, the status and users. Any thread.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "base/time.h"
#include "model/copies.h"
#include "respond/checkpoint/copy_server.h"
#include "respond/checkpoint/copy_store.h"

namespace culprit::app {

struct CopyCounters {
  // Of this host's checkpoints: copies completed, attempts that failed, bytes sent and read.
  uint64_t copied = 0, failed = 0, sent_bytes = 0, read_bytes = 0;
  TimeNs held_ns = 0;             // copies waited while the job saved
  uint64_t pending = 0;           // newest checkpoints without a copy
  TimeNs last_copy_ns = kNoTime;  // wall clock
  respond::checkpoint::CopyStoreCounters store;
  respond::checkpoint::CopyServerCounters server;
  std::string out_trouble, in_trouble;  // sentences; empty: none
};

class CopyState {
 public:
  CopyCounters counters() const {
    const std::lock_guard lock(mutex_);
    return counters_;
  }
  template <class Change>
  void change(Change change_counters) {
    const std::lock_guard lock(mutex_);
    change_counters(counters_);
  }

  std::vector<copies::Copied> copied() const {
    const std::lock_guard lock(mutex_);
    return copied_;
  }
  void set_copied(std::vector<copies::Copied> copied) {
    const std::lock_guard lock(mutex_);
    copied_ = std::move(copied);
  }

 private:
  mutable std::mutex mutex_;
  CopyCounters counters_;
  std::vector<copies::Copied> copied_;
};

}  // namespace culprit::app
