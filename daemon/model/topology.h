// The placement of ranks on hosts, from job.toml (formats.md section 6). Values only; any thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace culprit {

struct Parallel {
  uint32_t tp = 1, pp = 1, dp = 1, ep = 1, cp = 1;
};

// The content of job.toml. An absent table or key leaves its default.
struct JobFile {
  std::optional<std::string> id;
  std::vector<std::string> hosts;
  std::optional<std::string> host_pattern;  // RE2 with a group `host`
  std::optional<std::string> rank_pattern;  // RE2 with a group `rank`
  std::optional<uint32_t> ranks_per_host;
  std::optional<Parallel> parallel;
  std::optional<std::string> revision, last_good;
  std::optional<std::string> pending;  // revision that the next attempt takes after a failure
};

// Parses the text of a job.toml. `name` is the file's name for messages ("dir/job.toml:3:1: ..."). Unknown
// keys are ignored (a newer tool may have written them); a known key of a wrong type is an error.
Result<JobFile> parse_job_file(std::string_view text, std::string_view name);

// The host of rank r, if `job` determines it: hosts[r / ranks_per_host]; the device is r % ranks_per_host.
std::optional<std::string> host_of_rank(const JobFile& job, uint32_t rank);
std::optional<uint32_t> device_of_rank(const JobFile& job, uint32_t rank);
// The global rank of a host's local device.
std::optional<uint32_t> rank_of_local(const JobFile& job, std::string_view host, uint32_t local);

}  // namespace culprit
