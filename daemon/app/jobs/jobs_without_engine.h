// Jobs that send data but have no engine: their data is kept as evidence. Each job is listed with the reason
// until it gets an engine again. A job that lacks a slot waits; once it gets a slot, its data is read from
// the store. Other jobs are dropped when they fall silent.
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
  kSlot,    // other jobs hold all engines; the job may get one later
  kMemory,  // the job took too much of the engines' memory
  kDeaths,  // the daemon ran out of memory twice while working on the job
};

class JobsWithoutEngine {
 public:
  // Limit of listed jobs, since users choose job names; files and hosts are not limited.
  static constexpr size_t kListed = 1024;
  // Minimum interval between a job's requests for a slot.
  static constexpr TimeNs kAskEvery = kNsPerSecond;

  struct Job {
    EngineLack lack = EngineLack::kSlot;
    std::string note;  // "no engine: ..."
    JobClaim claim;    // who wants the engine
    TimeNs since_ns = kNoTime, last_ns = kNoTime, asked_ns = kNoTime;
    uint64_t bytes = 0;   // bytes of its data since then
    bool unread = false;  // this host's store has unread data of the job
    // Whether the job waits for an engine to read its unread data.
    bool waits() const { return lack == EngineLack::kSlot && unread; }
  };

  // Lists the job, with the reason as a sentence.
  void add(const std::string& id, EngineLack lack, const std::string& why, const JobClaim& claim);
  // Data of the job arrived. Returns whether the job may request an engine now.
  bool may_ask(const std::string& id, TimeNs at);
  void count(const std::string& id, uint64_t bytes, TimeNs at);
  // This host's store has unread data of the job.
  void note_unread(const std::string& id);
  void remove(const std::string& id) { jobs_.erase(id); }
  // Drops jobs that are silent for this time and do not wait.
  void forget(TimeNs now, TimeNs silent);

  // Null: the job is not listed.
  const Job* find(const std::string& id) const;
  const std::map<std::string, Job>& all() const { return jobs_; }
  // Waiting jobs, longest wait first; jobs that still write precede old ones.
  std::vector<std::string> waiting() const;
  // A sentence for the log about jobs that lost or missed their engine since the last sentence; at most one a
  // minute.
  std::optional<std::string> drain_sentence(TimeNs now);

 private:
  std::map<std::string, Job> jobs_;
  std::string unreported_;  // the first one
  size_t unreported_count_ = 0;
  TimeNs reported_ns_ = kNoTime;
};

}  // namespace culprit::app
