#include "app/jobs/job_owner.h"

#include <fmt/format.h>

#include <algorithm>

#include "app/jobs/job_shares.h"
#include "base/text.h"
#include "model/comm.h"

namespace culprit::app {

// UID_MIN of login.defs. 65534 stands for owners unknown to this host, 65535 is the uid of Kubernetes' pause.
bool is_person(const Principal& who) {
  return !who.is_pod() && who.value >= 1000 && who.value != 65534 && who.value != 65535;
}

std::optional<Principal> user_behind(const StreamInfo& from, std::optional<uint32_t> daemon_uid) {
  if (is_of_host(from.kind) || !from.uid || from.uid->is_uid(0) || from.uid == daemon_uid)
    return std::nullopt;
  return from.uid;
}

bool is_fed_by_root(const StreamInfo& from, std::optional<Principal> user) {
  return !user && from.uid && (from.kind == OriginKind::kFile || names_itself(from.kind));
}

void JobOwner::saw(const ShownUsers& users) {
  for (const uint32_t user : users)
    if (shown_.size() < kUsers) shown_.insert(user);
}

bool JobOwner::admits(Principal user, OriginKind kind, const ShownUsers& shown) const {
  // A job's containers change, and the kernel does not show which containers belong to one job.
  if (user.is_pod())
    return is_file(kind) ||
           (std::ranges::none_of(shown, is_person) && std::ranges::none_of(shown_, is_person) && !filed_ &&
            (!first_ || first_->is_pod()));
  // A log collector's copy.
  if (is_file(kind) && !is_person(user)) return true;
  if (const uint32_t uid = *user.uid(); shown.contains(uid) || shown_.contains(uid)) return true;
  if (std::ranges::any_of(shown, is_person) || std::ranges::any_of(shown_, is_person)) return false;
  // All processes are root's, as in a container, or as a launcher's before it starts the job.
  if (!shown.empty() && root_writes_) return false;
  // Later files of other users prove nothing, since all users may write to some folders.
  if (filed_) return *filed_ == user;
  if (root_first_ && kind != OriginKind::kCondensed) return false;  // an agent has decided for its host
  return kind == OriginKind::kFile || !first_ || *first_ == user;
}

void JobOwner::ingested(const StreamInfo& from, std::optional<Principal> user) {
  root_first_ = root_first_ || (!filed_ && !first_ && is_fed_by_root(from, user));
  if (from.kind == OriginKind::kFile) {
    if (user && is_person(*user) && !filed_) filed_ = user;
  } else if (!names_itself(from.kind)) {
    return;
  } else if (!user) {
    root_writes_ = root_writes_ || from.uid.has_value();
  } else if (!first_) {
    first_ = user;
  }
}

bool JobOwner::refused(Principal user, const Piece& piece, OriginKind kind) {
  if (refused_.size() >= kUsers && !refused_.contains(user)) user = refused_.rbegin()->first;
  const auto [at, is_new] = refused_.try_emplace(user);
  (kind == OriginKind::kRing ? at->second.records : at->second.lines) += units_of(piece, kind);
  return is_new;
}

std::string JobOwner::sentence(Principal user) const {
  const auto known = refused_.find(user);
  if (known == refused_.end()) return {};
  std::string what;
  if (known->second.lines + known->second.records == 0) what = "data";  // less than a line
  if (known->second.lines > 0) what = counted(known->second.lines, "line");
  if (known->second.records > 0)
    what += (what.empty() ? "" : " and ") + counted(known->second.records, "communication record");
  return fmt::format("{} of {} for this job {} kept as evidence only: the job is another user's", what,
                     to_string(user), known->second.lines + known->second.records == 1 ? "was" : "were");
}

uint64_t units_of(const Piece& piece, OriginKind kind) {
  if (kind == OriginKind::kRing) return piece.bytes.size() / kCommRecordBytes;
  if (kind == OriginKind::kDump) return 0;
  return static_cast<uint64_t>(std::ranges::count(piece.bytes, '\n'));
}

}  // namespace culprit::app
