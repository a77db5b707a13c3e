#include "app/jobs/job_names.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "app/jobs/job_recognition.h"

namespace culprit::app {
namespace {

constexpr std::string_view kOwnerMark = "@uid";

// The owner named by an id: 1002 of "train@uid1002".
std::optional<uint32_t> owner_in(std::string_view id) {
  const size_t at = id.rfind(kOwnerMark);
  if (at == id.npos || at == 0) return std::nullopt;
  const std::string_view digits = id.substr(at + kOwnerMark.size());
  uint32_t uid = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), uid);
  const bool whole = error == std::errc() && end == digits.data() + digits.size();
  return whole ? std::optional(uid) : std::nullopt;
}

}  // namespace

std::string_view name_of_job(std::string_view id) {
  return owner_in(id) ? id.substr(0, id.rfind(kOwnerMark)) : id;
}

// The only writer of the source, if this user may write only for own jobs.
std::optional<uint32_t> JobNames::user_of(const StreamInfo& info) const {
  const auto behind = user_behind(info, daemon_uid_);
  // The kernel does not show which pods belong to one job, so only the name joins them.
  const auto user = behind ? behind->uid() : std::nullopt;
  if (!user || info.job.empty() || info.job == kDefaultJob) return std::nullopt;
  // A log collector's copy.
  return is_file(info.kind) && !is_person(*user) ? std::nullopt : user;
}

// Returns the id.
const std::string& JobNames::own(const std::string& id, uint32_t user) {
  if (owners_.size() >= kNames && !owners_.contains(id))
    owners_.erase(std::ranges::min_element(owners_, {}, [](const auto& owner) { return owner.second.turn; }));
  owners_[id] = {user, ++turns_};
  return id;
}

// Reserves a free name that root or the daemon's user feeds; id_of() decides which users may still own it.
void JobNames::reserve(const StreamInfo& info) {
  if (info.job.empty() || info.job == kDefaultJob) return;
  if (!is_fed_by_root(info, user_behind(info, daemon_uid_))) return;
  const auto known = owners_.find(info.job);
  if (known == owners_.end() || known->second.user == 0) own(info.job, 0);
}

std::string JobNames::id_of(const StreamInfo& info, const ShownUsers& shown) {
  const auto user = user_of(info);
  // An agent's session has the name that its host knows; its data follows the chain.
  if (info.kind != OriginKind::kCondensed)
    if (const std::string& chain = chain_of(info.job, info); chain != info.job)
      return user ? own(chain, *user) : chain;
  if (!user) {
    reserve(info);
    return info.job;
  }
  const std::string apart = fmt::format("{}{}{}", info.job, kOwnerMark, *user);
  if (const auto named = owner_in(info.job)) return own(*named == *user ? info.job : apart, *user);
  const auto known = owners_.find(info.job);
  const bool of_root = known != owners_.end() && known->second.user == 0;
  // The user's first sources may have come before the processes were visible.
  if (of_root && shown.contains(*user)) return own(info.job, *user);
  if (owners_.contains(apart)) return own(apart, *user);
  if (shown.contains(*user)) return own(info.job, *user);
  // Root owns names on its own host: an agent has decided for its host.
  const bool is_condensed = info.kind == OriginKind::kCondensed;
  const bool is_free = known == owners_.end() || known->second.user == *user || (of_root && is_condensed);
  return own(is_free && std::ranges::none_of(shown, is_person) ? info.job : apart, *user);
}

// The uid that writes the source, also root's and a service's.
std::optional<uint32_t> JobNames::writer_of(const StreamInfo& info) const {
  if (info.uid && daemon_uid_ && info.uid->is_uid(*daemon_uid_)) return 0;
  return info.uid ? info.uid->uid() : std::nullopt;
}

const std::string& JobNames::chain_of(const std::string& id, const StreamInfo& info) const {
  const auto user = writer_of(info);
  const auto of_user = user ? chains_.find(*user) : chains_.end();
  if (of_user == chains_.end()) return id;
  const auto known = of_user->second.find(id);
  return known == of_user->second.end() ? id : known->second.id;
}

// Nothing: the job `to` is not known as this user's, or the member has joined before. A member's name may be
// another user's: only this user's data follows the chain.
std::optional<JobNames::Member> JobNames::joined(const std::string& member, const std::string& to,
                                                 uint32_t user) {
  const auto is_own = [&](const std::string& id) {
    const auto known = owners_.find(id);
    return known != owners_.end() && known->second.user == user;
  };
  std::string id = to;
  if (const auto of_user = chains_.find(user); of_user != chains_.end()) {
    if (of_user->second.contains(member)) return std::nullopt;
    if (const auto chain = of_user->second.find(id); chain != of_user->second.end()) id = chain->second.id;
  }
  if (!is_own(id)) id = fmt::format("{}{}{}", id, kOwnerMark, user);
  if (!is_own(id) || member.empty() || member == id || member == to || member == kDefaultJob)
    return std::nullopt;
  auto& members = chains_[user];
  if (members.size() >= kMembers)
    members.erase(std::ranges::min_element(members, {}, [](const auto& one) { return one.second.turn; }));
  members[member] = {id, ++turns_};
  return Member{member, id, user};
}

std::vector<JobNames::Member> JobNames::join(const StreamInfo& from, const JobAttempts& attempts) {
  std::vector<Member> out;
  const auto user = writer_of(from);
  if (!user) return out;
  if (!attempts.first.empty())
    if (auto one = joined(attempts.member, attempts.first, *user)) out.push_back(std::move(*one));
  if (!attempts.successor.empty())
    if (auto one = joined(attempts.successor, from.job, *user)) out.push_back(std::move(*one));
  return out;
}

void JobNames::note(const StreamInfo& info) {
  if (const auto user = user_of(info))
    own(info.job, *user);
  else
    reserve(info);
}

std::string JobNames::known_as(const std::string& id) const {
  const auto owner = owner_in(id);
  if (!owner || owners_.contains(id)) return id;
  const auto known = owners_.find(std::string(name_of_job(id)));
  return known != owners_.end() && known->second.user == *owner ? known->first : id;
}

}  // namespace culprit::app
