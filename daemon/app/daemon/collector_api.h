// What the HTTP API shows of a collector beside what it shows of any daemon: the hosts that send, their
// evidence, and how collecting stands.
//
// Thread: the loop's. Borrows what AgentApi does, and the collecting part.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "app/daemon/agent_api.h"
#include "app/daemon/collecting.h"

namespace culprit::app {

class CollectorApi final : public AgentApi {
 public:
  CollectorApi(io::Env& env, AgentParts parts, Collecting& collecting)
      : AgentApi(env, std::move(parts)), collecting_(collecting) {}

  serve::Health health() override;
  void metrics(std::function<void(std::string)> answer) override;
  void status(Answer answer) override;
  void hosts(Answer answer) override;
  void sources(const std::optional<std::string>& job, Answer answer) override;
  void evidence(const serve::EvidenceQuery& query,
                std::function<void(Result<std::unique_ptr<serve::EvidenceReader>>)> answer) override;

 private:
  Collecting& collecting_;
  std::shared_ptr<void> readers_ = std::make_shared<int>();  // each reader of evidence has a share of it
};

}  // namespace culprit::app
