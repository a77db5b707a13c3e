#include "core/cluster/member.h"

#include <algorithm>
#include <utility>

namespace culprit::cluster {

std::optional<Member::Work> Member::due(TimeNs now, bool may_take) {
  if (stopped_ || at_work_ || (next_ns_ != kNoTime && now < next_ns_)) return std::nullopt;
  // The first round only adopts: what a restart finds is not taken by anybody else meanwhile.
  if (take_ns_ == kNoTime) take_ns_ = now;
  Work work;
  work.adopt = adopt_;
  work.renew = holds();
  work.take = may_take && now - take_ns_ >= timing_.take_ns;
  if (work.take) take_ns_ = now;
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
  adopt_ = adopt_ || at_work_->take;
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
