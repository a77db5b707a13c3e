// Reads a trace of PyTorch's profiler (Kineto, `*.pt.trace.json`; formats.md section 3): the kernels of NCCL
// and RCCL with their process group become communication records of one rank. A trace may have a GB, in any
// order, so it is read as a stream and its operations are held, at most limits::kProfilerOps. One thread at a
// time. Content is untrusted.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/status.h"
#include "ingest/comm_source.h"
#include "ingest/json_elements.h"

namespace culprit::ingest {

// The host in a name as torch.profiler.tensorboard_trace_handler makes it,
// "<host>_<pid>.<time>.pt.trace.json"; empty: another name.
std::string host_of_trace(std::string_view path);

struct TraceOwner {  // what the path says, where the trace does not
  std::string host;
  std::optional<uint32_t> rank;
};

class ProfilerTrace : public CommSource {
 public:
  // Reads the whole trace; ends early when `stop` is true. `ops_max`: operations that it may hold. The error
  // names the file.
  static Result<std::unique_ptr<ProfilerTrace>> open(const SourceFile& file, const TraceOwner& owner,
                                                     size_t ops_max, const std::atomic<bool>& stop);
  static std::unique_ptr<ProfilerTrace> over(Decompressor bytes, std::string name, const TraceOwner& owner,
                                             size_t ops_max, const std::atomic<bool>& stop);

  const CommHeader& header() const override { return header_; }
  void next(std::vector<CommRecord>& out, size_t most) override;
  std::vector<Problem> problems() const override { return problems_; }
  uint64_t consumed() const override { return consumed_; }
  uint64_t content_bytes() const override { return content_bytes_; }
  size_t held() const { return records_.size(); }

 private:
  class Reader;
  ProfilerTrace() = default;

  CommHeader header_;
  std::vector<CommRecord> records_;
  size_t given_ = 0;
  uint64_t consumed_ = 0, content_bytes_ = 0;
  std::vector<Problem> problems_;
};

}  // namespace culprit::ingest
