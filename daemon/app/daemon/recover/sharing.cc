#include "app/daemon/recover/sharing.h"

#include <span>
#include <utility>

namespace culprit::app {
namespace {

template <class Service>
Status put_into(std::unique_ptr<Service>& to, Result<std::unique_ptr<Service>> started) {
  if (!started) return tl::unexpected(started.error());
  to = std::move(*started);
  return {};
}

}  // namespace

void Sharing::beat(bool restored) {
  if (!leases) return;
  leases->beat();
  reports->beat(restored);
  judgements->beat();
  pools->beat();
}

void Sharing::stop() {
  if (leases) leases->stop();
  if (reports) reports->stop();
  if (judgements) judgements->stop();
  if (pools) pools->stop();
}

Status start_sharing(io::Env& env, const SharingParts& parts, Sharing& out) {
  const Status leased = put_into(out.leases, LeaseService::start(env, {parts.config, parts.log}));
  if (!leased || !out.leases) return leased;
  const auto gate = out.leases->gate();
  const Status reports =
      put_into(out.reports, SharedReports::start(env, {parts.config, gate, parts.log, parts.id_of}));
  if (!reports) return reports;
  SharedReports& shared = *out.reports;
  parts.verdicts->subscribe([&shared](std::span<const RunVerdict> verdicts) {
    for (const RunVerdict& one : verdicts) shared.changed(one.job);
  });
  const Status judgements =
      put_into(out.judgements, SharedJudgements::start(env, {parts.config, &shared, gate, parts.recorder,
                                                             parts.engine, parts.verdicts, parts.log}));
  if (!judgements) return judgements;
  const auto is_others = [&shared](const std::string& job) {
    const std::string owner = shared.owner_of(job);
    return !owner.empty() && owner != shared.member();
  };
  return put_into(out.pools, SharedPools::start(env, {parts.config, gate, is_others, parts.recorder,
                                                      parts.engine, parts.log}));
}

}  // namespace culprit::app
