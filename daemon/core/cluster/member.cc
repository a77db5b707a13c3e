#include "core/cluster/member.h"

#include <algorithm>
#include <map>
#include <utility>

namespace culprit::cluster {

bool has_surplus(const ClusterView& view, const std::string& name, TimeNs lease_ns) {
  std::map<std::string, uint32_t> owned;  // by members that take partitions
  for (const MemberRow& member : view.members)
    if (member.takes && member.age_ns < lease_ns) owned[member.name] = 0;
  for (const PartRow& part : view.parts) {
    if (part.owner.empty() || part.left_ns <= 0) return false;  // a free one is taken first
    if (const auto owner = owned.find(part.owner); owner != owned.end()) ++owner->second;
  }
  const auto own = owned.find(name);
  if (own == owned.end() || view.parts.empty()) return false;
  const uint32_t members = static_cast<uint32_t>(owned.size());
  const uint32_t least = kPartitions / members, most = (kPartitions + members - 1) / members;
  return own->second > most &&
         std::ranges::any_of(owned, [&](const auto& one) { return one.second < least; });
}

std::optional<Member::Work> Member::due(TimeNs now, May may) {
  if (stopped_ || at_work_ || (next_ns_ != kNoTime && now < next_ns_)) return std::nullopt;
  // The first round only adopts: what a restart finds is not taken by anybody else meanwhile.
  if (take_ns_ == kNoTime) take_ns_ = now;
  Work work;
  work.adopt = adopt_;
  const bool moves = now - take_ns_ >= timing_.take_ns;
  if (const auto held = holds(); moves && may.give && !held.empty()) {
    work.give = held.back();
    holds_[held.back().part] = {};
  }
  work.renew = holds();
  work.take = moves && may.take && !work.give;
  if (work.take || work.give) take_ns_ = now;
  asked_ns_ = now;
  next_ns_ = now + timing_.renew_ns;
  at_work_ = work;
  return work;
}

void Member::hold(const PartHold& one, TimeNs at) {
  if (one.part < kPartitions && one.epoch > 0) holds_[one.part] = {one.epoch, at};
}

void Member::answered(const Answer& answer) {
  if (!at_work_) return;
  answered_ns_ = asked_ns_;
  for (const PartHold& one : at_work_->renew) {
    if (std::ranges::find(answer.renewed, one.part) != answer.renewed.end()) {
      hold(one, asked_ns_);
    } else {
      holds_[one.part] = {};
      lost_.push_back(one);
    }
  }
  for (const PartHold& one : answer.adopted) hold(one, asked_ns_);
  if (answer.taken) hold(*answer.taken, asked_ns_);
  adopt_ = false;
  at_work_.reset();
}

void Member::failed(TimeNs now) {
  if (!at_work_) return;
  adopt_ = adopt_ || at_work_->take || at_work_->give;
  at_work_.reset();
  next_ns_ = std::max(now, asked_ns_) + timing_.retry_ns;
}

std::vector<PartHold> Member::stop() {
  stopped_ = true;
  std::vector<PartHold> out = holds();
  holds_ = {};
  return out;
}

std::optional<uint64_t> Member::epoch(uint32_t part, TimeNs now) const {
  if (part >= kPartitions) return std::nullopt;
  const Hold& one = holds_[part];
  if (one.epoch == 0 || now - one.renewed_ns >= timing_.fence_ns) return std::nullopt;
  return one.epoch;
}

std::vector<PartHold> Member::holds() const {
  std::vector<PartHold> out;
  for (uint32_t part = 0; part < kPartitions; ++part)
    if (holds_[part].epoch != 0) out.push_back({part, holds_[part].epoch});
  return out;
}

std::vector<PartHold> Member::drain_lost() { return std::exchange(lost_, {}); }

}  // namespace culprit::cluster
