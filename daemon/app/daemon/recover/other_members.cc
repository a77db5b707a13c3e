#include "app/daemon/recover/other_members.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace culprit::app {

Result<std::unique_ptr<OtherMembers>> OtherMembers::start(
    io::Env& env, std::shared_ptr<ActGate> gate, store::RecoveryRows before,
    std::function<void(LogLevel, const std::string&)> log) {
  std::unique_ptr<OtherMembers> out(new OtherMembers(std::move(gate), std::move(before)));
  if (auto store = out->gate_->ledger()) {
    auto ledger = SharedLedger::start(env, {std::move(store), std::move(log)});
    if (!ledger) return tl::unexpected(ledger.error());
    out->ledger_ = std::move(*ledger);
  }
  return out;
}

// A job that ran here all the time goes on by this member's own ledger.
void OtherMembers::adopt(ScheduledJobs& jobs, const recover::Controller& controller) {
  if (!ledger_) return;
  for (auto& [id, read] : ledger_->drain_read()) {
    if (read.job.attempts.empty()) continue;
    const auto own = controller.view(recover::key_of(read.job.job));
    const bool goes_on = !read.by_other && own && own->state != recover::JobState::kDone;
    if (!goes_on && jobs.adopt(read.job.attempts.back())) adoptions_[id] = std::move(read.job);
  }
}

JobShare::Selected OtherMembers::select(std::vector<recover::Input> inputs, const ScheduledJobs& jobs,
                                        const recover::Controller& controller) {
  JobShare::Sources from;
  from.epoch_of = [&](const std::string& id) {
    const auto epoch = gate_->epoch(id);
    const auto job = jobs.known(id);
    return epoch && job && ledger_ && !ledger_->has_read(*job, *epoch) ? std::nullopt : epoch;
  };
  from.adopted = [this](const std::string& id) -> std::optional<recover::JobAdopted> {
    auto node = adoptions_.extract(id);
    return node.empty() ? std::nullopt : std::optional(std::move(node.mapped()));
  };
  from.has_ended = [&](const ScheduledJob& job) {
    const auto view = controller.view(recover::key_of(job));
    return view && view->ended && view->job.restarts == job.restarts;
  };
  auto own = share_.select(std::move(inputs), jobs, from);
  if (ledger_)
    for (recover::Input& input : ledger_->drain_news()) own.inputs.push_back(std::move(input));
  return own;
}

void OtherMembers::put(const store::RecoveryRows& rows) {
  if (!ledger_ || rows.empty()) return;
  ledger_->put(rows, [this](const std::string& id) { return gate_->epoch(id); });
  ledger_->beat();
}

void OtherMembers::beat() {
  if (!ledger_) return;
  if (!before_.empty() && gate_->is_open()) put_before();
  ledger_->beat();
}

// An attempt of before says less than whatever the database has of it: its stamp is the lowest.
void OtherMembers::put_before() {
  const auto lowest = [this](const std::string& id) {
    return gate_->epoch(id) ? std::optional<uint64_t>(0) : std::nullopt;
  };
  ledger_->put(std::exchange(before_, {}), lowest, true);
}

std::optional<RecoveryTrouble> OtherMembers::trouble() const {
  return ledger_ ? ledger_->trouble() : std::nullopt;
}

store::RecoveryRows recent_rows(const store::RecoveryRows& rows, TimeNs now) {
  constexpr TimeNs kRecentNs = 24LL * 3600 * kNsPerSecond;
  store::RecoveryRows out;
  std::ranges::copy_if(rows.actions, std::back_inserter(out.actions), [&](const ActionRecord& row) {
    return std::max(row.reserved_ns, row.settled_ns) > now - kRecentNs;
  });
  std::ranges::copy_if(rows.attempts, std::back_inserter(out.attempts), [&](const AttemptRecord& row) {
    return row.end_ns == kNoTime || row.end_ns > now - kRecentNs;
  });
  out.machines = rows.machines;
  out.reset_ns = rows.reset_ns;
  out.reset_by = rows.reset_by;
  return out;
}

}  // namespace culprit::app
