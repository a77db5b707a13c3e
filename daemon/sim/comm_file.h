// Writes the records of a simulated job as the tracers of its hosts would: on each host's clock, sorted by
// the ends of operations, without data that tracers do not know. One thread.
#pragma once

#include <string>
#include <vector>

#include "sim/comm_world.h"

namespace culprit::sim {

class CommFiles {
 public:
  // Hosts of `retained` are never missing.
  CommFiles(const CommJobOptions& options, const CommSite& site, const std::vector<uint32_t>& retained,
            std::string folder);

  // Writes the folder, job.toml, and the header and joins of each host.
  Status begin();
  // Adds the last phase of all ranks.
  Status add(const CommWorld& world);

 private:
  struct Host {
    bool missing = false;
    int64_t offset_ns = 0, drift = 0;  // drift in parts of 2^32
  };
  void add_host(uint32_t host, const CommWorld& world);
  uint64_t local(const Host& host, uint64_t ns) const;
  void mark(CommRecord& record) const;
  std::string joins(uint32_t host) const;
  Status append(uint32_t host, std::string_view bytes) const;
  std::string job_toml() const;

  const CommJobOptions& options_;
  const CommSite& site_;
  const std::string folder_;
  uint64_t epoch_ns_ = 0;
  uint32_t lost_per_100k_ = 0, phase_ = 0;
  std::vector<Host> hosts_;
  std::vector<CommRecord> batch_;
};

}  // namespace culprit::sim
