#include "app/jobs/pool_owner.h"

#include <fmt/format.h>

namespace culprit::app {

// "user 1000", "pod:3f2a51e8c9d0".
std::string name_of(const Principal& who) {
  return who.is_pod() ? to_string(who) : fmt::format("user {}", who.value);
}

bool is_trusted(const StreamInfo& info, std::optional<uint32_t> daemon_uid) {
  return info.uid && (info.uid->is_uid(0) || info.uid == daemon_uid);
}

void PoolOwner::add(const StreamInfo& info, const Piece& piece, std::optional<uint32_t> daemon_uid) {
  if (info.kind == OriginKind::kFile && piece.place) {
    const std::pair file(piece.place->device, piece.place->inode);
    if (files_.try_emplace(info.id, file).first->second != file) unknown_ = true;
  }
  if (is_trusted(info, daemon_uid))
    trusted_ = trusted_ ? trusted_ : info.uid;
  else
    add_user(info.uid);
}

void PoolOwner::add_remote(std::optional<Principal> uid) { add_user(uid); }

void PoolOwner::add_user(std::optional<Principal> uid) {
  constexpr uint32_t kNobody = 65534;  // stands for owners unknown to this host
  if (!uid || uid->is_uid(kNobody) || *uid == Principal::pod(""))
    unknown_ = true;
  else if (users_.size() < 2)
    users_.insert(*uid);
}

std::optional<std::string> PoolOwner::name() const {
  if (unknown_ || users_.size() > 1) return std::nullopt;
  if (users_.size() == 1) return name_of(*users_.begin());
  return trusted_ ? std::optional(std::string(kTrustedOwner)) : std::nullopt;
}

std::optional<Principal> PoolOwner::uid() const {
  if (unknown_ || users_.size() > 1) return std::nullopt;
  return users_.empty() ? trusted_ : std::optional(*users_.begin());
}

}  // namespace culprit::app
