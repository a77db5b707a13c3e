// Determines who owns a running job, and therefore whose data the job ingests. Lines of a trace socket and
// rings carry a job name that their writer chose. In a folder for all users, anyone can add a file that a
// glob matches. The kernel reports the uid of each writer. Root and the daemon's user are always admitted.
// Another user is admitted as the job's owner: by processes in the job's control group, else as the writer of
// the job's first file, else as the first writer for the job. If root or the daemon's user feeds a job first,
// being its first writer admits no user, except in data of an agent, which has decided for its host. Data of
// other users remains evidence.
//
// Owner: the job (RoutedJob). One thread: that of its table. No clock, no file.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "model/piece.h"

namespace culprit::app {

// Users with processes in the job's control group; empty: no process is seen.
using ShownUsers = std::set<uint32_t>;

// The only user who writes a source; nothing: the kernel, root, the daemon's user (`daemon_uid`), or unknown.
std::optional<Principal> user_behind(const StreamInfo& from, std::optional<uint32_t> daemon_uid);
// Whether root or the daemon's user feeds a job by this source of its own host: a file, lines or a ring.
bool is_fed_by_root(const StreamInfo& from, std::optional<Principal> user);

// Whether the user is a person. Service users (syslog, a log collector, a sidecar) own no job by a file or
// process.
bool is_person(const Principal& who);

class JobOwner {
 public:
  // Users with processes in the job's control group, as of the last scan. They own the job until it ends.
  void saw(const ShownUsers& users);
  // Whether data of this user from a source of this kind is ingested. `shown`: as of the last scan.
  bool admits(Principal user, OriginKind kind, const ShownUsers& shown) const;
  // Data of the source was ingested; `user` as from user_behind().
  void ingested(const StreamInfo& from, std::optional<Principal> user);
  // Counts data that is not ingested: lines, or records of a ring. True for the user's first data; users
  // beyond kUsers are counted under another user.
  bool refused(Principal user, const Piece& piece, OriginKind kind);

  struct Refused {
    uint64_t lines = 0, records = 0;
  };
  const std::map<Principal, Refused>& all_refused() const { return refused_; }  // by uid; at most kUsers
  // "3 lines of uid 12002 for this job were kept as evidence only: the job is another user's".
  std::string sentence(Principal user) const;

 private:
  static constexpr size_t kUsers = 64;  // limit of users in the report; further users are counted under the
                                        // last one

  std::set<uint32_t> shown_;        // users of all scans of the run; at most kUsers
  std::optional<Principal> filed_;  // the unprivileged owner of the first watched file
  std::optional<Principal> first_;  // the first unprivileged user that wrote for the job
  bool root_writes_ = false;        // root or the daemon's user writes lines or rings
  bool root_first_ = false;         // root or the daemon's user fed the job before any other user, also by a
                                    // file
  std::map<Principal, Refused> refused_;
};

// Number of lines in a piece, or of records of a ring; a dump has neither.
uint64_t units_of(const Piece& piece, OriginKind kind);

}  // namespace culprit::app
