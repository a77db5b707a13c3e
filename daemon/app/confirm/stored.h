// A daemon's stored data of jobs, as read by `confirm`: over HTTP from the command line, or in the daemon
// itself. Blocks; one thread calls.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "base/status.h"

namespace culprit::app {

class StoredJobs {
 public:
  virtual ~StoredJobs() = default;
  virtual std::string name() const = 0;  // name for errors: "unix:/run/culprit/api.sock"
  // The answers of GET /v1/jobs and GET /v1/sources?job=, as JSON.
  virtual Result<std::string> jobs() = 0;
  virtual Result<std::string> sources(const std::string& job) = 0;
  // The bytes of a source in order; `take` returns false to stop, which is no error.
  virtual Status read(const std::string& job, const std::string& host, const std::string& path,
                      const std::function<bool(std::string_view)>& take) = 0;
};

}  // namespace culprit::app
