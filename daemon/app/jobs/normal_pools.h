// What healthy jobs taught a daemon: a normal pool for each owner and kind of job. A job is judged with the
// pools of its own owner and of the trusted owner, so one user's jobs excuse no other user's job. The
// contribution of each job is stored separately, so that it can be removed.
//
// Owner: LiveJobs. One thread: the engine's worker. No clock.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.h"
#include "core/detect/logs/pool.h"

namespace culprit::app {

// The contribution of one run.
struct TaughtJob {
  std::string job;
  uint32_t run = 0;
  std::string owner;  // PoolOwner::name()
  std::string why;    // why the run counted as healthy
  TimeNs time_ns = kNoTime;
  detect::Pool pool;  // pool of this run alone
};

class NormalPools {
 public:
  // Limit of teaching runs per owner; beyond it the oldest is dropped. More runs do not improve the answer.
  static constexpr size_t kOfOwner = 32;
  // Limit of all contributions' bytes: some 20 owners with 32 jobs of 500 forms. Beyond it the owner with the
  // most bytes loses its oldest job.
  static constexpr size_t kBytes = 64 << 20;
  // Limit of owners: one user may have 65,536 uids by subuid. Beyond it the owner that taught nothing for the
  // longest time is dropped, but never the trusted one.
  static constexpr size_t kOwners = 1024;

  struct Run {
    std::string job;
    uint32_t run = 0;
    bool operator==(const Run&) const = default;
  };
  // Adds a contribution, replacing one of the same run. Returns the dropped runs, the oldest ones.
  std::vector<Run> add(TaughtJob taught);
  // Removes what this run of the job taught, or all its runs. Returns their number.
  size_t forget(const std::string& job, std::optional<uint32_t> run = std::nullopt);

  // The kinds of jobs that a job of this owner is compared with (empty owner: only trusted kinds): all, or
  // those that resemble the log.
  std::vector<uint64_t> kinds(const std::string& owner, const logs::JobLog* log = nullptr) const;
  // Their pools in one.
  detect::Pool merged(const std::vector<uint64_t>& kinds) const;
  // All contributions; of each owner the oldest first.
  std::vector<TaughtJob> taught() const;
  // The pools of all owners merged into one.
  detect::Pool all() const;
  size_t jobs() const { return jobs_; }
  // Grows with each forget(): pools made earlier are invalid.
  uint64_t version() const { return version_; }

 private:
  struct Kind {
    uint64_t id = 0;
    detect::Pool pool;
  };
  struct Owner {
    std::vector<TaughtJob> taught;  // contributions, oldest first
    std::vector<Kind> kinds;
    size_t bytes = 0;
    uint64_t turn = 0;  // turn of the last contribution
  };
  void learn(Owner& owner, const TaughtJob& taught);
  void rebuild(Owner& owner);
  void hold_bounds(std::vector<Run>& removed);
  void drop_oldest(std::map<std::string, Owner>::iterator owner, std::vector<Run>& removed);

  std::map<std::string, Owner> owners_;
  size_t bytes_ = 0, jobs_ = 0;
  uint64_t next_kind_ = 0, version_ = 0, turns_ = 0;
};

}  // namespace culprit::app
