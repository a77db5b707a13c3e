// Who owns a running job, and whose data it therefore ingests. Lines of a trace socket and rings carry a job
// name that their writer chose, and in a folder for all users anyone can add a file that a glob matches. The
// kernel reports the uid behind each. Root and the daemon's user always count. Another user counts if it owns
// the job: by processes in the job's control group, else because its file was the job's first one, else
// because it was the first to write for the job. A job that root or the daemon's user feeds first is of no
// other user. Data of other users stays evidence.
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

// Users with processes in the job's control group; empty: none is seen.
using ShownUsers = std::set<uint32_t>;

// The user behind a source, where this user alone writes it; nothing: the kernel, root, the daemon's user
// (`daemon_uid`), or unknown.
std::optional<Principal> user_behind(const StreamInfo& from, std::optional<uint32_t> daemon_uid);
// Whether root or the daemon's user feeds a job by this source of its host: a file, lines or a ring.
bool is_fed_by_root(const StreamInfo& from, std::optional<Principal> user);

// Users of services own no job by a file or process: syslog's, a log collector's, a sidecar's.
bool is_person(const Principal& who);

class JobOwner {
 public:
  // Users with processes in the job's control group, as of the last scan. They own the job until it ends.
  void saw(const ShownUsers& users);
  // Whether data of this user from a source of this kind counts. `shown`: as of the last scan.
  bool admits(Principal user, OriginKind kind, const ShownUsers& shown) const;
  // Data of the source is ingested; `user` as user_behind().
  void ingested(const StreamInfo& from, std::optional<Principal> user);
  // Data that is not ingested: its lines, or the records of a ring. True for the first of the user; users
  // beyond kUsers are counted with another one.
  bool refused(Principal user, const Piece& piece, OriginKind kind);

  struct Refused {
    uint64_t lines = 0, records = 0;
  };
  const std::map<Principal, Refused>& all_refused() const { return refused_; }  // by uid; at most kUsers
  // "3 lines of uid 12002 for this job were kept as evidence only: the job is another user's".
  std::string sentence(Principal user) const;

 private:
  static constexpr size_t kUsers = 64;  // of the report: the others count with the last one

  std::set<uint32_t> shown_;        // of all scans of the run; at most kUsers
  std::optional<Principal> filed_;  // the unprivileged owner of the first watched file
  std::optional<Principal> first_;  // the first unprivileged user that wrote for the job
  bool root_writes_ = false;        // root or the daemon's user writes lines or rings
  bool root_first_ = false;         // before any user, root or the daemon's user fed the job, also by a file
  std::map<Principal, Refused> refused_;
};

// Lines, or records of a ring, of a piece; a dump has neither.
uint64_t units_of(const Piece& piece, OriginKind kind);

}  // namespace culprit::app
