// The cluster, process groups and software of a simulated job that hangs. Plain values, made once by
// make_hang_site and immutable afterwards; any thread. Rank number: tp + TP * (dp + DP * pp).
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sim/hang_job.h"
#include "sim/random.h"

namespace culprit::sim {

enum class HangGroup : uint8_t { kWorld, kData, kTensor, kPipeline };
constexpr size_t kHangGroups = 4;

enum class HangOp : uint8_t { kAllReduce, kAllGather, kReduceScatter, kBroadcast, kSend, kRecv };

// Program that starts the processes, and its reaction when one exits.
enum class HangLauncher : uint8_t {
  kTorchrun,  // reports the exit code and kills the other processes of the host
  kSlurm,     // reports the signal or exit code; the other processes continue
  kPlain      // reports nothing
};

enum class StackForm : uint8_t { kPySpyJson, kPySpyText, kFaultHandler, kGdb, kEuStack };

struct HangSite {
  uint64_t seed = 0;
  uint32_t world = 0, tp = 1, dp = 1, pp = 1;
  uint32_t ranks_per_host = 8, hosts = 1;
  uint32_t layers = 2, micro_batches = 2, buckets = 2;
  uint32_t steps_done = 0;  // complete steps before the recorded ones
  uint32_t torch = 206;     // 201, 203, 205, 206 (and later): selects the wording of its lines
  uint64_t timeout_ns = 0;
  uint64_t start_ns = 0;                           // of the recorded steps
  uint64_t step_ns = 0;                            // about
  bool sync_p2p = false;                           // the host waits for each receive
  bool host_logs = false;                          // one log per host, with the rank before each line
  bool json_dumps = false, started_times = false;  // of the Flight Recorder
  bool ras_json = true;
  bool remote_error = false;   // peers of a dead rank get an NCCL error within seconds
  bool storage_lines = false;  // the kernel logs that the storage does not respond
  HangLauncher launcher = HangLauncher::kPlain;
  StackForm stack_form = StackForm::kPySpyJson;
  std::string job, user_package, data_path;
  std::vector<std::string> host_names;
  std::array<std::string, kHangGroups> description;
  uint64_t token_elements = 0, bucket_elements = 0;

  uint32_t host_of(uint32_t rank) const { return rank / ranks_per_host; }
  const std::string& host_name(uint32_t rank) const { return host_names[host_of(rank)]; }
  uint32_t stage_of(uint32_t rank) const { return rank / (tp * dp); }
  uint32_t replica_of(uint32_t rank) const { return rank / tp % dp; }
  uint32_t pid_of(uint32_t rank) const {
    return 4'000 + rank % ranks_per_host * 7 + host_of(rank) % 977 * 31;
  }

  uint32_t group_count(HangGroup kind) const;
  uint32_t group_size(HangGroup kind) const;
  uint32_t group_of(HangGroup kind, uint32_t rank) const;
  uint32_t member(HangGroup kind, uint32_t group, uint32_t index) const;
  uint32_t index_in(HangGroup kind, uint32_t rank) const;
  // The group's name, common to all members, and its number in each process.
  uint32_t group_name(HangGroup kind, uint32_t group) const;
  uint32_t group_id(HangGroup kind) const { return static_cast<uint32_t>(kind); }
  uint64_t group_hash(HangGroup kind, uint32_t group) const;
};

constexpr std::array<HangGroup, kHangGroups> kAllHangGroups = {HangGroup::kWorld, HangGroup::kData,
                                                               HangGroup::kTensor, HangGroup::kPipeline};

Result<HangSite> make_hang_site(const HangJobOptions& options);

}  // namespace culprit::sim
