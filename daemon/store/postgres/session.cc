#include "store/postgres/session.h"

#include "base/clock.h"

namespace culprit::store::postgres {

Result<Rows> Session::run(const std::string& sql, std::span<const std::string> values, TimeNs within_ns) {
  const TimeNs until = steady_now() + within_ns;
  if (!connection_ || !connection_->is_open()) {
    auto opened = Connection::open(conninfo_, within_ns);
    if (!opened) return tl::unexpected(opened.error());
    connection_ = std::move(*opened);
  }
  return connection_->run(sql, values, until - steady_now());
}

}  // namespace culprit::store::postgres
