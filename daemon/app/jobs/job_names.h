// The id of a job: a name belongs to one owner, and another user's job of the same name gets a different id,
// "train@uid1002". All data of a job is stored by its id: runs, reports, issues, pools, evidence. So no
// user's data reaches another user's job, and a stranger who takes a name first hides no job.
//
// A name belongs to the first user who sends data under it. Later, a user with processes in the control group
// of that name becomes its owner. Root, the daemon's user and services may write for any job; if root or the
// daemon's user uses a name first on this host, only a user with processes in its control group, or one that
// another host's agent admitted, can own it. A user's jobs of one name retain the id of the first one.
//
// A chain of jobs (`culprit run --successor`) is one job, with the id of its first member. A user's job joins
// a job of the same user only, and data of other users under its name goes on without the chain.
//
// Plain values. One thread. No clock, no file.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "app/jobs/job_attempts.h"
#include "app/jobs/job_owner.h"
#include "model/piece.h"

namespace culprit::app {

// The name without the owner: "train" of "train@uid1002".
std::string_view name_of_job(std::string_view id);

class JobNames {
 public:
  // Limit of names with a known owner: beyond it the least recently used name is free again.
  static constexpr size_t kNames = 65'536;

  explicit JobNames(std::optional<uint32_t> daemon_uid) : daemon_uid_(daemon_uid) {}

  // The job id for a new source that names `info.job`. `shown`: the users with processes in the control group
  // of that name.
  std::string id_of(const StreamInfo& info, const ShownUsers& shown);
  // Records the id that a source already has, from the store or from another table.
  void note(const StreamInfo& info);
  // A member of a chain, and the chain's id.
  struct Member {
    std::string name, id;
    uint32_t user = 0;
  };
  // Limit of each user's members: beyond it the one that joined first is forgotten.
  static constexpr size_t kMembers = 1024;
  // Joins the jobs that an attempt of this source names. Returns the members that are new.
  std::vector<Member> join(const StreamInfo& from, const JobAttempts& attempts);
  // The id of the chain to which this job of the source's user belongs; else `id`.
  const std::string& chain_of(const std::string& id, const StreamInfo& info) const;
  // This host's id for a job with this id at the collector, where another host's job may have the name.
  std::string known_as(const std::string& id) const;

 private:
  struct Owner {
    uint32_t user = 0;  // 0: root or the daemon's user
    uint64_t turn = 0;  // last use
  };
  struct Joined {
    std::string id;     // of the chain
    uint64_t turn = 0;  // when it joined
  };
  std::optional<uint32_t> user_of(const StreamInfo& info) const;
  std::optional<uint32_t> writer_of(const StreamInfo& info) const;
  std::optional<Member> joined(const std::string& member, const std::string& to, uint32_t user);
  const std::string& own(const std::string& id, uint32_t user);
  void reserve(const StreamInfo& info);

  std::optional<uint32_t> daemon_uid_;
  std::map<std::string, Owner> owners_;                       // by id, including ids that contain the owner
  std::map<uint32_t, std::map<std::string, Joined>> chains_;  // by user and member
  uint64_t turns_ = 0;
};

}  // namespace culprit::app
