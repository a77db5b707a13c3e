#include "app/daemon/recover/partition_gate.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/hash.h"
#include "base/text.h"
#include "respond/order.h"

namespace culprit::app {
namespace {

constexpr const char* kRemedy = "culprit cluster status";
constexpr size_t kChangesMost = 256;
// A restart or failover of the database; tries of an order meanwhile.
constexpr TimeNs kAwaitDatabase = 60 * kNsPerSecond, kTryAgain = kNsPerSecond;

// The same action of any member has the same text: an attempt of a job is isolated from a host once.
// Any user names jobs: bytes that the database refuses, or too many of them, must not fail.
std::string key_text(const std::string& text) {
  constexpr size_t kBytes = 500;
  const std::string out = to_utf8(text);
  if (out.size() <= kBytes && out.find('\0') == out.npos) return out;
  return fmt::format("{}… {}", respond::one_line(shorten(out, kBytes / 2)), hex64(hash64(text)));
}

std::string what_of(const ActionOrder& order) {
  if (order.job.id.empty())
    return fmt::format("{} {} {}", respond::name_of(order.kind), order.target, order.op);
  return fmt::format("{} {} of {}/{}@{} attempt {}", respond::name_of(order.kind), order.target,
                     order.job.scheduler, order.job.id, order.job.uid, order.job.restarts);
}

}  // namespace

bool PartitionGate::begins(bool may_take) {
  const std::lock_guard lock(mutex_);
  const bool may_give = at_work_ == 0 && member_.is_fresh(now_()) &&
                        cluster::has_surplus(state_.view, name_, cluster::Timing().lease_ns);
  auto work = member_.due(now_(), {may_take, may_give});
  if (work) work_ = std::move(*work), may_take_ = may_take;
  return work.has_value();
}

void PartitionGate::round(TimeNs wall) {
  store::postgres::ClusterStore::Asked asked;
  {
    const std::lock_guard lock(mutex_);
    asked = {work_.adopt, work_.renew, work_.take, work_.give, may_take_};
  }
  auto answer = store_->round(asked);
  const std::lock_guard lock(mutex_);
  if (!answer) {
    member_.failed(now_());
    if (state_.error.empty()) state_.error_since_ns = wall;
    state_.error = answer.error().text;
    return;
  }
  member_.answered({answer->adopted, answer->renewed, answer->taken});
  note_changes(*answer);
  state_.error.clear();
  state_.error_since_ns = kNoTime;
  state_.view = std::move(answer->view);
  state_.read_ns = wall;
}

void PartitionGate::note_changes(const store::postgres::ClusterStore::Answer& answer) {
  std::vector<std::string> out;
  if (!answer.adopted.empty())
    out.push_back(fmt::format("keeps {} partitions of before", answer.adopted.size()));
  if (work_.give) out.push_back(fmt::format("gives partition {} to members that own less", work_.give->part));
  if (answer.taken)
    out.push_back(fmt::format("takes partition {} in epoch {}", answer.taken->part, answer.taken->epoch));
  for (const PartHold& one : member_.drain_lost()) {
    const auto row = std::ranges::find(answer.view.parts, one.part, &PartRow::part);
    const bool twin = row != answer.view.parts.end() && row->owner == name_;
    out.push_back(twin ? fmt::format("lost partition {}: another process uses the name {} of this member",
                                     one.part, name_)
                       : fmt::format("lost partition {} of epoch {}", one.part, one.epoch));
  }
  for (std::string& one : out)
    if (changes_.size() < kChangesMost) changes_.push_back(std::move(one));
}

std::vector<std::string> PartitionGate::drain_changes() {
  const std::lock_guard lock(mutex_);
  return std::exchange(changes_, {});
}

// An action that is at work may take longer than the end of the process: its lease ends by itself.
Status PartitionGate::give_back() {
  std::vector<PartHold> holds;
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
    holds = member_.stop();
    if (at_work_ > 0) return {};
  }
  return store_->give_back(holds);
}

PartitionGate::State PartitionGate::state() const {
  const TimeNs now = now_();
  const std::lock_guard lock(mutex_);
  State out = state_;
  out.held = member_.holds();
  out.is_fresh = !stopped_ && member_.is_fresh(now);
  for (const PartHold& one : out.held)
    if (member_.epoch(one.part, now)) out.owned.push_back(one);
  return out;
}

std::vector<peer::JobOwner> PartitionGate::others_jobs(
    const std::vector<std::string>& jobs, const std::function<std::string(const std::string&)>& id_of) const {
  std::vector<peer::JobOwner> out;
  const std::lock_guard lock(mutex_);
  if (stopped_ || !member_.is_fresh(now_())) return out;
  for (const std::string& job : jobs) {
    const auto part = std::ranges::find(state_.view.parts, cluster::partition_of(id_of(job)), &PartRow::part);
    if (part == state_.view.parts.end() || part->owner.empty() || part->owner == name_ || part->left_ns <= 0)
      continue;
    const auto member = std::ranges::find(state_.view.members, part->owner, &MemberRow::name);
    if (member == state_.view.members.end() || member->address.empty()) continue;
    out.push_back({job, member->address, part->epoch});
  }
  return out;
}

std::string PartitionGate::owner_name(const std::string& id) const {
  const std::lock_guard lock(mutex_);
  const auto part = std::ranges::find(state_.view.parts, cluster::partition_of(id), &PartRow::part);
  return part == state_.view.parts.end() || part->left_ns <= 0 ? "" : part->owner;
}

bool PartitionGate::is_open() const {
  const std::lock_guard lock(mutex_);
  return !stopped_ && member_.is_fresh(now_());
}

std::optional<RecoveryTrouble> PartitionGate::trouble() const {
  const std::lock_guard lock(mutex_);
  if (member_.is_fresh(now_())) return std::nullopt;
  const std::string why = state_.error.empty() ? "it has not answered yet" : state_.error;
  return RecoveryTrouble{"the cluster's database does not answer, so nothing is done: " + why,
                         state_.error_since_ns, kRemedy};
}

std::optional<uint64_t> PartitionGate::epoch(const std::string& name) const {
  const std::lock_guard lock(mutex_);
  return member_.epoch(cluster::partition_of(name), now_());
}

std::string PartitionGate::owner_of(uint32_t part) const {
  const auto row = std::ranges::find(state_.view.parts, part, &PartRow::part);
  if (row == state_.view.parts.end() || row->owner.empty())
    return fmt::format("partition {} has no owner", part);
  if (row->owner == name_) return fmt::format("the lease of partition {} was not renewed in time", part);
  return fmt::format("partition {} belongs to {}, in epoch {}", part, respond::one_line(row->owner),
                     row->epoch);
}

PartitionGate::Answer PartitionGate::refused(const ActionOrder& order, uint32_t part) {
  const std::lock_guard lock(mutex_);
  ++state_.fenced;
  return {ActionState::kFailed,
          fmt::format("fenced, so nothing was done for {}: {}",
                      order.job.id.empty() ? order.target : order.job.id, owner_of(part))};
}

std::optional<uint64_t> PartitionGate::held_epoch(uint32_t part) const {
  const std::lock_guard lock(mutex_);
  const auto holds = member_.holds();
  const auto found = std::ranges::find(holds, part, &PartHold::part);
  return found == holds.end() ? std::nullopt : std::optional(found->epoch);
}

PartitionGate::Answer PartitionGate::reserve(const ActionOrder& order, const Pause& pause) {
  const std::string& of = order.job.id.empty() ? order.target : order.job.id;
  const uint32_t part = cluster::partition_of(of);
  const auto held = held_epoch(part);
  std::string error;
  for (TimeNs until = now_() + kAwaitDatabase;;) {
    if (auto answer = try_reserve(order, part, held, error)) return *answer;
    if (now_() >= until || !pause(kTryAgain)) break;
  }
  if (error.empty()) return refused(order, part);
  const std::lock_guard lock(mutex_);
  ++state_.fenced;
  return {ActionState::kFailed, "nothing was done, for the cluster's database did not store it: " + error};
}

void PartitionGate::use_ledger(const std::string& id) {
  const std::lock_guard lock(mutex_);
  own_ledger_ = id;
}

std::optional<PartitionGate::Answer> PartitionGate::try_reserve(const ActionOrder& order, uint32_t part,
                                                                std::optional<uint64_t> held,
                                                                std::string& error) {
  using store::postgres::ClusterStore;
  const std::string& of = order.job.id.empty() ? order.target : order.job.id;
  const bool returns = order.kind == OrderKind::kReturn;  // `code` is the op of the isolation
  if ((!held && !returns) || held_epoch(part) != held) return refused(order, part);
  const auto epoch_before = epoch(of);
  if (!is_open() || (!epoch_before && !returns)) return std::nullopt;
  if (order.kind == OrderKind::kVerify) {  // it only reads
    const std::lock_guard lock(mutex_);
    ++at_work_;
    return Answer{};
  }
  store::postgres::ReservedAction action;
  action.what = key_text(what_of(order));
  action.op = order.op;
  action.job = key_text(order.job.id);
  action.kind = respond::name_of(order.kind);
  action.target = key_text(order.target);
  action.decision = order.decision;
  action.with = {part, epoch_before.value_or(0)};
  if (returns) action.undoes = order.code;
  {
    const std::lock_guard lock(mutex_);
    action.ledger = own_ledger_;
  }
  action.continues = order.kind == OrderKind::kRunAgain && order.repeats_ns != kNoTime;
  const auto done = store_->reserve(action);
  if (!done) {
    error = done.error().text;
    return std::nullopt;
  }
  if (done->reserved == ClusterStore::Reserved::kByOther)
    return Answer{ActionState::kSuperseded,
                  fmt::format("ordered before by member {}", respond::one_line(done->by))};
  // A pause since: another owner may have begun.
  const bool still = returns ? is_open() : epoch(of) == epoch_before;
  if (done->reserved == ClusterStore::Reserved::kFenced || !still) return refused(order, part);
  const std::lock_guard lock(mutex_);
  if (stopped_) return Answer{ActionState::kFailed, "this collector ends"};
  ++state_.reserved;
  ++at_work_;
  return Answer{};
}

void PartitionGate::finished() {
  const std::lock_guard lock(mutex_);
  --at_work_;
}

}  // namespace culprit::app
