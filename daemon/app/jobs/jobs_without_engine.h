// The jobs that send data and have no engine: their data is kept as evidence. Each is listed with the reason
// until it gets an engine again. One that lacks a slot waits: once there is one, its data is read from the
// store. Others are forgotten when they fall silent.
//
// Owner: LiveJobs. One thread: the engine's worker. Time is an argument.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "app/jobs/job_shares.h"
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
    JobClaim claim;    // who wants the engine
    TimeNs since_ns = kNoTime, last_ns = kNoTime, asked_ns = kNoTime;
    uint64_t bytes = 0;   // of its data since then
    bool unread = false;  // some of it is in this host's store
    // Whether it has data that no engine has read and that one may read later.
    bool waits() const { return lack == EngineLack::kSlot && unread; }
  };

  // Lists the job, with the reason as a sentence.
  void add(const std::string& id, EngineLack lack, const std::string& why, const JobClaim& claim);
  // Data of the job arrived; whether it may ask for an engine now.
  bool may_ask(const std::string& id, TimeNs at);
  void count(const std::string& id, uint64_t bytes, TimeNs at);
  // Data in this host's store is not read.
  void note_unread(const std::string& id);
  void remove(const std::string& id) { jobs_.erase(id); }
  // Forgets jobs that are silent for so long and do not wait.
  void forget(TimeNs now, TimeNs silent);

  // Null: the job is not listed.
  const Job* find(const std::string& id) const;
  const std::map<std::string, Job>& all() const { return jobs_; }
  // Those that wait, the longest first; jobs that still write before old ones.
  std::vector<std::string> waiting() const;
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
