// PostgreSQL's client library, loaded while the daemon runs: only a collector with [cluster] needs it, so no
// package of Culprit depends on it. The soname libpq.so.5 has had the same functions since PostgreSQL 8.
//
// A Connection belongs to one thread at a time. Each call ends by its deadline (except for the look-up of a
// host's name, which the resolver bounds); after an error the connection is of no further use.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "base/time.h"

namespace culprit::store::postgres {

// Values as text; NULL is empty.
using Rows = std::vector<std::vector<std::string>>;

class Connection {
 public:
  // `conninfo`: a string or URI of libpq. An error names libpq's package if the library is not installed.
  static Result<std::unique_ptr<Connection>> open(const std::string& conninfo, TimeNs within_ns);
  virtual ~Connection() = default;
  // One statement, a transaction of its own; `values` are $1, $2, … An error of the statement alone leaves
  // the connection usable (is_open).
  virtual Result<Rows> run(const std::string& sql, std::span<const std::string> values, TimeNs within_ns) = 0;
  virtual bool is_open() const = 0;
};

}  // namespace culprit::store::postgres
