// Any bytes as a job.toml: parsed, or refused with a sentence that names the file.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "model/topology.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto job = culprit::parse_job_file({reinterpret_cast<const char*>(data), size}, "job.toml");
  if (!job) {
    if (!job.error().text.starts_with("job.toml:")) std::abort();
    return 0;
  }
  for (uint32_t rank : {0u, 1u, 7u, 4096u, 0xffffffffu}) {
    const auto host = culprit::host_of_rank(*job, rank);
    const auto device = culprit::device_of_rank(*job, rank);
    if (host && device && culprit::rank_of_local(*job, *host, *device) != rank) std::abort();
  }
  return 0;
}
