#include "app/daemon/recover/lease_service.h"

#include <fmt/format.h>

#include <utility>

#include "app/daemon/self/memory_limit.h"
#include "app/daemon/self/self_watch.h"
#include "base/text.h"

namespace culprit::app {
namespace {

store::postgres::ClusterStoreOptions store_options(const Config& config) {
  store::postgres::ClusterStoreOptions out;
  out.conninfo = config.cluster.database;
  out.name = config.cluster.name.empty() ? config.host.name : config.cluster.name;
  out.address = config.cluster.address.empty() ? config.collector.listen : config.cluster.address;
  out.http = config.cluster.http;
  return out;
}

}  // namespace

LeaseService::LeaseService(io::Env& env, LeaseServiceOptions options)
    : env_(env),
      options_(std::move(options)),
      mark_(options_.config->cluster.memory > 0 ? options_.config->cluster.memory
                                                : memory_limit().bytes / 4 * 3),
      gate_(std::make_shared<PartitionGate>(store_options(*options_.config))) {}

LeaseService::~LeaseService() {
  if (worker_ && !(stopped_ && answers_)) worker_->abandon();
}

Result<std::unique_ptr<LeaseService>> LeaseService::start(io::Env& env, LeaseServiceOptions options) {
  if (!options.config->cluster.used()) return nullptr;
  std::unique_ptr<LeaseService> out(new LeaseService(env, std::move(options)));
  auto worker = env.worker("cluster");
  if (!worker) return tl::unexpected(worker.error());
  out->worker_ = std::move(*worker);
  out->beat();
  return out;
}

void LeaseService::beat() {
  if (stopped_ || worker_->queued() > 0) return;
  const uint64_t used = read_self_usage().anonymous_bytes;
  const bool above = mark_ > 0 && used > mark_;
  if (above != above_)
    options_.log(LogLevel::kInfo,
                 above ? fmt::format("cluster: {} of memory are in use, above the mark of {}: no further "
                                     "partition is taken",
                                     format_bytes(used), format_bytes(mark_))
                       : std::string("cluster: memory is below the mark again: partitions are taken"));
  above_ = above;
  if (!gate_->begins(!above)) return;
  worker_->submit([gate = gate_, wall = env_.now(io::Clock::kWall)] { gate->round(wall); },
                  [this] { finish_round(); });
}

void LeaseService::finish_round() {
  for (const std::string& change : gate_->drain_changes())
    options_.log(LogLevel::kInfo, fmt::format("cluster: {} {}", gate_->name(), change));
  const std::string error = gate_->state().error;
  if (error != error_) {
    if (error.empty())
      options_.log(LogLevel::kInfo, "cluster: the database answers again");
    else
      options_.log(LogLevel::kWarning, "cluster: the database does not answer: " + error);
  }
  error_ = error;
  answers_ = error.empty();
}

void LeaseService::stop() {
  stopped_ = true;
  worker_->submit([gate = gate_] { (void)gate->give_back(); });
}

}  // namespace culprit::app
