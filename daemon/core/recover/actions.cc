#include "core/recover/actions.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/hash.h"
#include "base/time.h"

namespace culprit::recover {
namespace {

constexpr size_t kSuspicions = 16;  // times kept per host and root

bool within(TimeNs at, TimeNs window, TimeNs now) { return at != kNoTime && at <= now && now - at < window; }

uint32_t count_within(const std::vector<TimeNs>& times, TimeNs window, TimeNs now) {
  return static_cast<uint32_t>(
      std::ranges::count_if(times, [&](TimeNs at) { return within(at, window, now); }));
}

void add_newest(std::vector<TimeNs>& times, TimeNs at, size_t most) {
  times.push_back(at);
  if (times.size() > most) times.erase(times.begin());
}

}  // namespace

std::string op_of(std::string_view decision, OrderKind kind, std::string_view target) {
  // The unit separator is in none of them: two different actions never have one text.
  return hex64(hash64(fmt::format("{}\x1f{}\x1f{}", decision, to_string(kind), target)));
}

std::string_view to_string(OrderKind kind) {
  switch (kind) {
    case OrderKind::kIsolate:
      return "isolate";
    case OrderKind::kReturn:
      return "return";
    case OrderKind::kEndTasks:
      return "end-tasks";
    case OrderKind::kRunAgain:
      return "run-again";
    case OrderKind::kVerify:
      break;
  }
  return "verify";
}

std::string_view to_string(ActionState state) {
  switch (state) {
    case ActionState::kReserved:
      return "reserved";
    case ActionState::kDone:
      return "done";
    case ActionState::kFailed:
      return "failed";
    case ActionState::kAmbiguous:
      return "ambiguous";
    case ActionState::kSuperseded:
      return "superseded";
    case ActionState::kAbandoned:
      return "abandoned";
    case ActionState::kUndone:
      break;
  }
  return "undone";
}

bool Actions::reserve(ActionRecord& record, TimeNs now) {
  ActionOrder& order = record.order;
  order.op = op_of(order.decision, order.kind, order.target);
  if (by_op_.contains(order.op)) return false;
  record.state = ActionState::kReserved;
  record.reserved_ns = now;
  by_decision_[order.decision].push_back(order.op);
  open_.insert(order.op);
  changed_.insert(order.op);
  by_op_.emplace(order.op, record);
  return true;
}

void Actions::changed(ActionRecord& record, ActionState state, std::string_view detail, TimeNs now) {
  record.state = state;
  record.detail = detail;
  record.settled_ns = now;
  open_.erase(record.order.op);
  changed_.insert(record.order.op);
}

const ActionRecord* Actions::settle(const ActionResult& result) {
  const auto at = by_op_.find(result.op);
  if (at == by_op_.end()) return nullptr;
  const ActionState now = at->second.state;
  if (now != ActionState::kReserved && now != ActionState::kAmbiguous && now != ActionState::kAbandoned)
    return nullptr;
  // An executor that answers "reserved" or "undone" gave no result.
  const bool is_result = result.state != ActionState::kReserved && result.state != ActionState::kUndone;
  changed(at->second, is_result ? result.state : ActionState::kAmbiguous, result.detail, result.at_ns);
  return &at->second;
}

std::vector<std::string> Actions::close(std::string_view decision, ActionState state, std::string_view detail,
                                        TimeNs now) {
  std::vector<std::string> out;
  for (const ActionRecord* record : open_of(decision)) out.push_back(record->order.op);
  for (const std::string& op : out) changed(by_op_.find(op)->second, state, detail, now);
  return out;
}

void Actions::undo(const std::string& op, const std::string& person, std::string_view detail, TimeNs now) {
  const auto at = by_op_.find(op);
  if (at == by_op_.end() || at->second.state != ActionState::kDone) return;
  at->second.undone_by = person;
  changed(at->second, ActionState::kUndone, detail, now);
}

void Actions::adopt(const std::string& op, TimeNs now) {
  const auto at = by_op_.find(op);
  if (at != by_op_.end() && at->second.state == ActionState::kAmbiguous)
    changed(at->second, ActionState::kDone, "found in force", now);
}

bool Actions::load(ActionRecord record) {
  const ActionOrder& order = record.order;
  if (order.op != op_of(order.decision, order.kind, order.target) || by_op_.contains(order.op)) return false;
  if ((record.state == ActionState::kReserved) != (record.settled_ns == kNoTime)) return false;
  if (record.reserved_ns == kNoTime || record.sent == 0) return false;
  by_decision_[order.decision].push_back(order.op);
  if (record.state == ActionState::kReserved) open_.insert(order.op);
  by_op_.emplace(order.op, std::move(record));
  return true;
}

void Actions::learn(ActionRecord record) {
  if (record.state == ActionState::kReserved) {
    record.state = ActionState::kAmbiguous;
    record.settled_ns = record.reserved_ns;
    record.detail = "ordered by the member that had the job before; its result is not known";
  }
  (void)load(std::move(record));  // one that contradicts itself, or is known, changes nothing
}

std::vector<ActionOrder> Actions::recover(std::span<const ReadBack> read, TimeNs now) {
  std::map<std::string, ReadBack> by_op;
  for (const ReadBack& one : read) by_op[one.op] = one;
  std::vector<ActionOrder> again;
  for (const std::string& op : std::vector(open_.begin(), open_.end())) {
    ActionRecord& record = by_op_.find(op)->second;
    const auto real = by_op.find(op);
    const bool was_read = real != by_op.end();
    if (was_read && real->second.mark_present) {
      changed(record, ActionState::kDone, "found done after a restart of the collector", now);
    } else if (was_read && real->second.precondition_holds && record.sent < 2 &&
               within(record.reserved_ns, kRepeatWithin, now)) {
      ++record.sent;
      changed_.insert(op);
      again.push_back(record.order);
    } else {
      changed(record, ActionState::kAbandoned,
              was_read ? "not done before a restart of the collector, and too old or no longer possible"
                       : "its result could not be read after a restart of the collector",
              now);
    }
  }
  return again;
}

const ActionRecord* Actions::find(const std::string& op) const {
  const auto at = by_op_.find(op);
  return at == by_op_.end() ? nullptr : &at->second;
}

std::vector<const ActionRecord*> Actions::of(std::string_view decision) const {
  std::vector<const ActionRecord*> out;
  const auto at = by_decision_.find(decision);
  if (at == by_decision_.end()) return out;
  for (const std::string& op : at->second) out.push_back(find(op));
  std::ranges::stable_sort(out, {}, [](const ActionRecord* r) { return r->reserved_ns; });
  return out;
}

std::vector<const ActionRecord*> Actions::open_of(std::string_view decision) const {
  std::vector<const ActionRecord*> out = of(decision);
  std::erase_if(out, [](const ActionRecord* r) { return r->state != ActionState::kReserved; });
  return out;
}

std::vector<const ActionRecord*> Actions::open() const {
  std::vector<const ActionRecord*> out;
  for (const std::string& op : open_) out.push_back(find(op));
  return out;
}

std::vector<const ActionRecord*> Actions::all() const {
  std::vector<const ActionRecord*> out;
  for (const auto& [op, record] : by_op_) out.push_back(&record);
  return out;
}

std::vector<const ActionRecord*> Actions::of_job(const ScheduledJob& job) const {
  std::vector<const ActionRecord*> out;
  for (const auto& [op, record] : by_op_) {
    const ScheduledJob& its = record.order.job;
    if (its.scheduler == job.scheduler && its.id == job.id && its.uid == job.uid &&
        its.submit_ns == job.submit_ns)
      out.push_back(&record);
  }
  return out;
}

void Actions::prune(TimeNs now) {
  for (auto at = by_op_.begin(); at != by_op_.end();) {
    const ActionRecord& record = at->second;
    // An isolation that is still in force stays, however old.
    const bool in_force = record.order.kind == OrderKind::kIsolate && record.state == ActionState::kDone;
    if (in_force || record.settled_ns == kNoTime || within(record.settled_ns, kRetention, now)) {
      ++at;
      continue;
    }
    const auto decision = by_decision_.find(record.order.decision);
    std::erase(decision->second, at->first);
    if (decision->second.empty()) by_decision_.erase(decision);
    changed_.erase(at->first);
    at = by_op_.erase(at);
  }
}

std::vector<ActionRecord> Actions::drain() {
  std::vector<ActionRecord> out;
  for (const std::string& op : changed_) out.push_back(by_op_.find(op)->second);
  changed_.clear();
  return out;
}

// ---- machines

MachineRecord& Machines::at(const std::string& host, const std::string& device) {
  const Key key(host, device);
  changed_.insert(key);
  MachineRecord& record = machines_[key];
  record.host = host;
  record.device = device;
  return record;
}

void Machines::suspected(const std::string& host, const std::string& device, const std::string& root,
                         TimeNs when) {
  if (machines_.size() >= kMachines && !machines_.contains({host, device})) return;
  MachineRecord& record = at(host, device);
  ++record.suspected;
  record.suspected_ns = record.last_ns = when;
  record.last_root = root;
  add_newest(suspicions_[{host, root}], when, kSuspicions);
}

void Machines::isolated(const std::string& host, const std::string& op, const std::string& root,
                        TimeNs when) {
  MachineRecord& record = at(host, "");
  ++record.isolated;
  record.isolated_ns = record.last_ns = when;
  record.last_root = root;
  record.op = op;
  add_newest(record.isolations, when, kIsolations);
  causes_[root][host] = when;
}

void Machines::returned(const std::string& host, TimeNs when) {
  MachineRecord& record = at(host, "");
  ++record.returned;
  record.returned_ns = record.last_ns = when;
  record.op.clear();
}

void Machines::confirmed(const std::string& host, TimeNs when) {
  MachineRecord& record = at(host, "");
  ++record.confirmed;
  record.last_ns = when;
}

void Machines::refuted(const std::string& host, TimeNs when) {
  MachineRecord& record = at(host, "");
  ++record.refuted;
  record.last_ns = when;
}

void Machines::repaired(const std::string& host, TimeNs when) {
  MachineRecord& record = at(host, "");
  ++record.repaired;
  record.last_ns = when;
}

const MachineRecord* Machines::find(const std::string& host, const std::string& device) const {
  const auto at = machines_.find({host, device});
  return at == machines_.end() ? nullptr : &at->second;
}

uint32_t Machines::isolations_within(const std::string& host, TimeNs window, TimeNs now) const {
  const MachineRecord* record = find(host);
  return record == nullptr ? 0 : count_within(record->isolations, window, now);
}

uint32_t Machines::suspicions_within(const std::string& host, const std::string& root, TimeNs window,
                                     TimeNs now) const {
  const auto at = suspicions_.find({host, root});
  return at == suspicions_.end() ? 0 : count_within(at->second, window, now);
}

uint32_t Machines::hosts_of_cause(const std::string& root, const std::string& but, TimeNs window,
                                  TimeNs now) const {
  const auto at = causes_.find(root);
  if (at == causes_.end()) return 0;
  return static_cast<uint32_t>(std::ranges::count_if(
      at->second, [&](const auto& one) { return one.first != but && within(one.second, window, now); }));
}

std::string Machines::again(const std::string& host, TimeNs window, TimeNs now) const {
  constexpr std::string_view kOrdinals[] = {"second", "third", "fourth", "fifth"};
  const uint32_t times = isolations_within(host, window, now);
  if (times < 2) return {};
  const auto days = window / (24 * 3600 * kNsPerSecond);
  if (times - 2 < std::size(kOrdinals))
    return fmt::format("{}: {} time in {} days", host, kOrdinals[times - 2], days);
  return fmt::format("{}: {} times in {} days", host, times, days);
}

void Machines::prune(TimeNs now) {
  constexpr TimeNs kLongest = 7LL * 24 * 3600 * kNsPerSecond;
  std::erase_if(suspicions_, [&](const auto& one) { return !within(one.second.back(), kLongest, now); });
  for (auto& [root, hosts] : causes_)
    std::erase_if(hosts, [&](const auto& one) { return !within(one.second, kLongest, now); });
  std::erase_if(causes_, [](const auto& one) { return one.second.empty(); });
}

void Machines::load(MachineRecord record) {
  for (const TimeNs when : record.isolations) causes_[record.last_root][record.host] = when;
  if (record.suspected_ns != kNoTime)
    add_newest(suspicions_[{record.host, record.last_root}], record.suspected_ns, kSuspicions);
  const Key key(record.host, record.device);
  machines_[key] = std::move(record);
}

void Machines::learn(const MachineRecord& row) {
  const auto own = machines_.find({row.host, row.device});
  if (own != machines_.end() && own->second.last_ns >= row.last_ns) return;
  if (own == machines_.end() && machines_.size() >= kMachines) return;
  MachineRecord learned = row;
  learned.op = own == machines_.end() ? "" : own->second.op;
  load(std::move(learned));
}

std::vector<MachineRecord> Machines::drain() {
  std::vector<MachineRecord> out;
  for (const Key& key : changed_) out.push_back(machines_.find(key)->second);
  changed_.clear();
  return out;
}

}  // namespace culprit::recover
