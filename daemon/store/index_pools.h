// What healthy jobs taught, in the index's file. The index owns it; its thread.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "records/pool_records.h"
#include "store/database.h"

namespace culprit::store {

class IndexPools final : public records::PoolRecords {
 public:
  // `audit` writes a row, in a transaction of the caller.
  using Audit = std::function<Status(const records::AuditRow&)>;
  IndexPools(Database& database, Audit audit) : database_(database), audit_(std::move(audit)) {}

  Status teach(const records::TaughtRow& row, const std::vector<records::JobRunId>& removed) override;
  Result<std::vector<records::TaughtRow>> taught() override;
  Status forget(const std::string& job, TimeNs time_ns, const std::string& by) override;
  Result<std::vector<records::PoolLogRow>> log(size_t limit = records::kRowsListed) override;
  Result<bool> is_news(const records::TaughtRow& row) override;
  Status take_back(const records::TaughtRow& row) override;
  Result<std::vector<records::TaughtRow>> unshared(std::span<const records::TaughtRow> shared) override;

 private:
  Database& database_;
  const Audit audit_;
};

}  // namespace culprit::store
