// The cluster's database for what is no lease: reports, evidence, the ledger. A connection of its own, so
// that nothing here delays a lease. It connects when it is asked; the lease's round makes the tables.
//
// One thread at a time.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <utility>

#include "base/status.h"
#include "store/postgres/libpq.h"

namespace culprit::store::postgres {

class Session {
 public:
  explicit Session(std::string conninfo) : conninfo_(std::move(conninfo)) {}
  // One statement, a transaction of its own. After an error of the connection the next call opens a new one.
  Result<Rows> run(const std::string& sql, std::span<const std::string> values, TimeNs within_ns);

 private:
  const std::string conninfo_;
  std::unique_ptr<Connection> connection_;
};

}  // namespace culprit::store::postgres
