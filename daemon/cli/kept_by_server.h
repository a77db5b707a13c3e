// A running daemon's stored data of jobs, over its API. Borrows the client.
#pragma once

#include "app/client.h"
#include "app/confirm/stored.h"

namespace culprit::cli {

class StoredByServer final : public app::StoredJobs {
 public:
  explicit StoredByServer(app::Client& client) : client_(client) {}
  std::string name() const override { return client_.server(); }
  Result<std::string> jobs() override { return client_.get("/v1/jobs"); }
  Result<std::string> sources(const std::string& job) override;
  Status read(const std::string& job, const std::string& host, const std::string& path,
              const std::function<bool(std::string_view)>& take) override;

 private:
  app::Client& client_;
};

}  // namespace culprit::cli
