// The id of a job: a name belongs to one owner, and another user's job of the same name gets a different id,
// "train@uid1002". All data of a job is stored by its id: runs, reports, issues, pools, evidence. So no
// user's data reaches another user's job, and a stranger who takes a name first hides no job.
//
// A name belongs to the first user who sends data under it. Later, a user with processes in the control group
// of that name becomes its owner. Root, the daemon's user and services may write for any job; if root or the
// daemon's user uses a name first on this host, only a user with processes in its control group, or one that
// another host's agent admitted, can own it. A user's jobs of one name retain the id of the first one.
//
// Plain values. One thread. No clock, no file.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

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
  // This host's id for a job with this id at the collector, where another host's job may have the name.
  std::string known_as(const std::string& id) const;

 private:
  struct Owner {
    uint32_t user = 0;  // 0: root or the daemon's user
    uint64_t turn = 0;  // last use
  };
  std::optional<uint32_t> user_of(const StreamInfo& info) const;
  const std::string& own(const std::string& id, uint32_t user);
  void reserve(const StreamInfo& info);

  std::optional<uint32_t> daemon_uid_;
  std::map<std::string, Owner> owners_;  // by id, including ids that contain the owner
  uint64_t turns_ = 0;
};

}  // namespace culprit::app
