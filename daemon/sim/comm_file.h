// Writes what the ranks of a simulated job recorded, as its hosts' tracers would: on their own clocks, in
// the order in which operations ended, with what a tracer does not know left out. Used by one thread.
#pragma once

#include <string>
#include <vector>

#include "sim/comm_world.h"

namespace culprit::sim {

class CommFiles {
 public:
  // Hosts of `kept` are never missing.
  CommFiles(const CommJobOptions& options, const CommSite& site, const std::vector<uint32_t>& kept,
            std::string folder);

  // The folder, job.toml, and each host's header and joins.
  Status begin();
  // The last phase of all ranks.
  Status add(const CommWorld& world);

 private:
  struct Host {
    bool missing = false;
    int64_t offset_ns = 0, drift = 0;  // parts in 2^32
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
