// How many spares a job needs that is about to be released, from what Slurm shows at this moment: so that the
// first pass of Slurm finds its nodes. Pure; any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace culprit::respond::slurm {

struct SpareQuestion {
  std::string job;                    // id
  std::vector<std::string> excluded;  // hosts that it must not have
  std::vector<std::string> own;       // hosts of the attempt that ended; they become idle for it
  std::vector<std::string> pool;      // hosts of the spares
  std::string partition;              // of the pool
};
struct SpareNeed {
  // Nodes that the idle ones leave missing. 0 also where another job could take a spare first, or where
  // nodes are shared, so that it is unknown what is free: then Slurm's own word is awaited.
  uint32_t nodes = 0;
  bool fits = true;  // false: the job is of other partitions, and spares are of no use to it
};
// `jobs`, `nodes`: as Commands::job_lines() and node_lines(). A line that is malformed gives no need.
SpareNeed need_of_spares(const SpareQuestion& question, std::string_view jobs, std::string_view nodes);

}  // namespace culprit::respond::slurm
