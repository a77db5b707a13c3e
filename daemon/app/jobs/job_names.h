// The id of a job: a name belongs to one owner, and another user's job of the same name has an id of its
// own, "train@uid1002". Everything that is known of a job is kept by its id: runs, reports, issues, pools,
// evidence. So no user's data reaches the job of another one, and a stranger who takes a name first hides no
// job.
//
// A name belongs to the first user with data of it, and to one whom the kernel shows in the control group of
// that name from then on. Root, the daemon's user and services speak for any job; a name that root or the
// daemon's user has first on this host is free for no other user. A user's jobs of one name keep the id of
// the first.
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
  // Names whose owner is known: beyond it the name that was used least recently is free again.
  static constexpr size_t kNames = 65'536;

  explicit JobNames(std::optional<uint32_t> daemon_uid) : daemon_uid_(daemon_uid) {}

  // The id of the job of a new source that names `info.job`. `shown`: the users with processes in the control
  // group of that name.
  std::string id_of(const StreamInfo& info, const ShownUsers& shown);
  // A source has this id already; it was stored, or another table gave it.
  void note(const StreamInfo& info);
  // The id here of a job with this id at the collector, where another host's job may have the name.
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
  std::map<std::string, Owner> owners_;  // by id, also of those with an owner in it
  uint64_t turns_ = 0;
};

}  // namespace culprit::app
