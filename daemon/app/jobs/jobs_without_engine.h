// The jobs that send data and have no engine: their data is kept as evidence only. Each is listed with the
// reason until it falls silent or gets an engine again.
//
// Owner: LiveJobs. One thread: the engine's worker. Time is an argument.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "app/jobs/live_event.h"
#include "base/time.h"

namespace culprit::app {

// Why a job has no engine.
enum class EngineLack : uint8_t {
  kSlot,    // other jobs hold all engines; it may get one later
  kMemory,  // it took too much of the engines' memory
  kDeaths,  // the daemon ran out of memory twice while it worked on the job
};

class JobsWithoutEngine {
 public:
  // Listed jobs: names that users send are limited, files and hosts are not.
  static constexpr size_t kListed = 1024;
  // A job that lacks a slot asks for one at most this often.
  static constexpr TimeNs kAskEvery = kNsPerSecond;

  struct Job {
    EngineLack lack = EngineLack::kSlot;
    std::string note;  // "no engine: ..."
    TimeNs since_ns = kNoTime, last_ns = kNoTime, asked_ns = kNoTime;
    uint64_t bytes = 0;  // of its data since then
  };

  // Lists the job, with the reason as a sentence.
  void add(const std::string& id, EngineLack lack, const std::string& why, TimeNs at);
  // Data of the job arrived; whether it may ask for an engine now.
  bool may_ask(const std::string& id, TimeNs at);
  void count(const std::string& id, uint64_t bytes, TimeNs at);
  void remove(const std::string& id) { jobs_.erase(id); }
  // Forgets jobs that are silent for so long.
  void forget(TimeNs now, TimeNs silent);

  // Null: the job is not listed.
  const Job* find(const std::string& id) const;
  const std::map<std::string, Job>& all() const { return jobs_; }
  // A sentence for the log about jobs that lost or missed their engine since the last one; at most one a
  // minute.
  std::optional<std::string> drain_sentence(TimeNs now);

 private:
  std::map<std::string, Job> jobs_;
  std::string unreported_;  // the first one
  size_t unreported_count_ = 0;
  TimeNs reported_ns_ = kNoTime;
};

}  // namespace culprit::app
