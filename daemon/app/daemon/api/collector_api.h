// The HTTP API of a collector. In addition to DaemonApi it shows the connected hosts, their evidence and the
// state of collecting.
//
// Thread: the loop's. Borrows the parts of DaemonApi and the CollectorService.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "app/daemon/api/daemon_api.h"
#include "app/daemon/collector/collector_service.h"

namespace culprit::app {

class CollectorApi final : public DaemonApi {
 public:
  CollectorApi(io::Env& env, AgentParts parts, CollectorService& collecting)
      : DaemonApi(env, std::move(parts)), collecting_(collecting) {}

  serve::Health health() override;
  void metrics(std::function<void(std::string)> answer) override;
  void status(Answer answer) override;
  void hosts(Answer answer) override;
  void sources(const std::optional<std::string>& job, Answer answer) override;
  void evidence(const serve::EvidenceQuery& query,
                std::function<void(Result<std::unique_ptr<serve::EvidenceReader>>)> answer) override;

 private:
  CollectorService& collecting_;
  std::shared_ptr<void> readers_ = std::make_shared<int>();  // each evidence reader holds a reference
};

}  // namespace culprit::app
