#include "cli/kept_by_server.h"

#include <fmt/format.h>

namespace culprit::cli {

Result<std::string> StoredByServer::sources(const std::string& job) {
  return client_.get("/v1/sources?job=" + app::url_escaped(job));
}

Status StoredByServer::read(const std::string& job, const std::string& host, const std::string& path,
                            const std::function<bool(std::string_view)>& take) {
  bool stopped = false;
  const auto gaps =
      client_.get_stream(fmt::format("/v1/evidence?job={}&host={}&path={}&from_byte=0", app::url_escaped(job),
                                     app::url_escaped(host), app::url_escaped(path)),
                         [&](std::string_view part) {
                           stopped = !take(part);
                           return !stopped;
                         });
  return gaps || stopped ? Status() : tl::unexpected(gaps.error());
}

}  // namespace culprit::cli
