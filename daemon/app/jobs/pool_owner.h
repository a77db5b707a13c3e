// The owner of the normal pool that a job teaches, according to the users that the kernel reports for its
// sources: the owner of a file, peer of the trace socket, owner of a ring. Root and the daemon's user run
// launchers and log daemons for all users: they own only a job without sources of another user.
//
// Plain values. One thread.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "model/piece.h"

namespace culprit::app {

// The owner of jobs whose data comes only from root, the daemon's user or the operator.
constexpr std::string_view kTrustedOwner = "trusted";

// "user 1000", "pod:3f2a51e8c9d0".
std::string name_of(const Principal& who);

bool is_trusted(const StreamInfo& info, std::optional<uint32_t> daemon_uid);

class PoolOwner {
 public:
  // A piece of a source of this host. A file that replaced another one may belong to another user.
  void add(const StreamInfo& info, const Piece& piece, std::optional<uint32_t> daemon_uid);
  // An agent of another host reports a source of this user; nothing: several or unknown users. Root of
  // another host counts as a user, since it is trusted for that host alone.
  void add_remote(std::optional<Principal> uid);

  // kTrustedOwner or "user 1000"; nothing: several users, an unknown one, or no source yet.
  std::optional<std::string> name() const;
  bool hears_root() const { return trusted_.has_value() || users_.contains(0); }
  // The user for a collector. Nothing in the same cases as name().
  std::optional<Principal> uid() const;

 private:
  // Users after the second one change nothing.
  void add_user(std::optional<Principal> uid);

  std::set<Principal> users_;
  std::optional<Principal> trusted_;  // one of the trusted users
  bool unknown_ = false;
  std::map<StreamId, std::pair<uint64_t, uint64_t>> files_;  // device and inode
};

}  // namespace culprit::app
