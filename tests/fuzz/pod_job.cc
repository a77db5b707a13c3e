// Any bytes as the object of a pod, and as the name of its folder: each name that comes out is one of
// Kubernetes, and a job is of the pod's namespace.
#include "respond/kubernetes/pod_job.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

namespace {

void require(bool condition) {
  if (!condition) std::abort();
}

void must_be_a_name(std::string_view text) {
  require(!text.empty() && text.size() <= 253);
  require(std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '.';
  }));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace culprit::respond::kubernetes;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  if (const auto job = parse_pod_job(Json::parse(bytes, nullptr, false))) {
    must_be_a_name(job->workload);
    const std::string id = job_id("train", job->workload);
    require(id.starts_with("train_") && std::ranges::count(id, '_') == 1);
  }
  const std::string_view line = bytes.substr(0, bytes.find('\n'));
  if (const auto folder = parse_pod_folder(line)) {
    must_be_a_name(folder->space);
    must_be_a_name(folder->name);
    must_be_a_name(workload_of_pod_name(folder->name));
  }
  return 0;
}
