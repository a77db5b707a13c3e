#include "app/daemon/api/scheduler_facts.h"

#include <memory>
#include <optional>
#include <utility>

#include "base/text.h"
#include "core/replay/host_list.h"
#include "model/json_writer.h"

namespace culprit::app {
namespace {

constexpr size_t kHostsBytes = 4096;

// Of keys in the ledger. Launchers of a site's own give nothing but an end.
const char* word_of(Scheduler scheduler) {
  if (scheduler == Scheduler::kSlurm) return "slurm";
  return scheduler == Scheduler::kKubernetes ? "kubernetes" : nullptr;
}

std::string facts_json(const AttemptRecord& row) {
  JsonWriter w;
  w.object([&] {
    w.field("scheduler", row.job.scheduler);
    w.field("id", row.job.id);
    w.field("attempt", row.attempt);
    w.field("restarts", row.job.restarts);
    w.text_or_null("exit", row.exit);
    w.text_or_null("exit_code", row.exit_code.value_or(""));
    w.text_or_null("exit_reason", row.exit_reason.value_or(""));
    w.time("begin_ns", row.begin_ns);
    w.time("end_ns", row.end_ns);
    w.field("nodes", row.hosts.size());
    w.field("hosts", shorten(replay::fold_hosts(row.hosts), kHostsBytes));
  });
  return w.finish();
}

}  // namespace

void scheduler_facts(const RecoveryService* service, const std::string& job,
                     std::function<void(std::string)> done) {
  const char* scheduler = service == nullptr ? nullptr : word_of(service->config().act.scheduler);
  if (scheduler == nullptr) return done("");
  const auto row = std::make_shared<std::optional<AttemptRecord>>();
  service->read(
      [row,
       id = std::string(scheduler) + "/" + service->verdicts().resolve(job)](store::RecoveryStore& store) {
        if (auto found = store.newest_attempt(id)) *row = std::move(*found);
      },
      [row, done = std::move(done)] { done(*row ? facts_json(**row) : ""); });
}

}  // namespace culprit::app
