// The HTTP API of a collector. In addition to DaemonApi it shows the connected hosts, their evidence and the
// state of collecting.
//
// Thread: the loop's. Borrows the parts of DaemonApi and the CollectorService.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "app/daemon/api/daemon_api.h"
#include "app/daemon/collector/collector_service.h"
#include "app/daemon/collector/host_about.h"

namespace culprit::app {

// A host that has not connected since the start: its last state in the archive.
struct RememberedHost {
  HostAbout about;
  TimeNs seen_ns = kNoTime;
  uint64_t bytes = 0, skipped = 0;
};

class CollectorApi final : public DaemonApi {
 public:
  CollectorApi(io::Env& env, AgentParts parts, CollectorService& collecting);

  serve::Health health() override;
  void hosts(Answer answer) override;
  void evidence(const serve::EvidenceQuery& query,
                std::function<void(Result<std::unique_ptr<serve::EvidenceReader>>)> answer) override;

 private:
  std::string metrics_text(Counters counters) override;
  nlohmann::json status_values() override;
  // Adds the archive's sources after this host's sources.
  void add_archived(const std::optional<std::string>& job, std::vector<SourceRow> own,
                    Lists::SourceRows rows);
  // What the archive and the bucket have; in order.
  void stored(const store::StoredQuery& query, std::function<void(Result<BucketService::Found>)> done);
  nlohmann::json host_list(const std::vector<NamedHost>& named,
                           const std::map<std::string, RememberedHost>& stored);

  CollectorService& collecting_;
  std::shared_ptr<void> readers_ = std::make_shared<int>();  // each evidence reader holds a reference
};

}  // namespace culprit::app
