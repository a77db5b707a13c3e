// What healthy jobs taught a daemon: a normal pool for each owner and kind of job. A job is judged with the
// pools of its own owner and those of the trusted owner, so what one user's jobs write excuses no other
// user's job. The contribution of each job is kept, so that it can be taken back.
//
// Owner: LiveJobs. One thread: the engine's worker. No clock.
#pragma once

#include <cstdint>
#include <map>
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
  std::string why;    // it counted as healthy
  TimeNs time_ns = kNoTime;
  detect::Pool pool;  // of this run alone
};

class NormalPools {
 public:
  // Runs that an owner may teach; then the oldest gives way. More of them do not make the answer better.
  static constexpr size_t kOfOwner = 32;
  // Bytes of all contributions: some 20 owners with 32 jobs of 500 forms. Beyond them the owner with the most
  // bytes forgets the oldest job.
  static constexpr size_t kBytes = 64 << 20;
  // One user may have 65,536 uids by subuid. Beyond this number the owner that taught nothing for the longest
  // time goes; the trusted one stays.
  static constexpr size_t kOwners = 1024;

  struct Run {
    std::string job;
    uint32_t run = 0;
    bool operator==(const Run&) const = default;
  };
  // Adds a contribution, in place of one of the same run. Returns the runs that gave way.
  std::vector<Run> add(TaughtJob taught);
  // Takes back what the runs of this job taught. Returns their number.
  size_t forget(const std::string& job);

  // The kinds of jobs that count for a job of this owner (empty: only the trusted ones): all, or those that
  // resemble the log.
  std::vector<uint64_t> kinds(const std::string& owner, const logs::JobLog* log = nullptr) const;
  // Their pools in one.
  detect::Pool merged(const std::vector<uint64_t>& kinds) const;
  // All pools in one, of all owners.
  detect::Pool all() const;
  size_t jobs() const { return jobs_; }
  // Grows with each forget(): pools made before are void.
  uint64_t version() const { return version_; }

 private:
  struct Kind {
    uint64_t id = 0;
    detect::Pool pool;
  };
  struct Owner {
    std::vector<TaughtJob> taught;  // in order of arrival
    std::vector<Kind> kinds;
    size_t bytes = 0;
    uint64_t turn = 0;  // of the last contribution
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
