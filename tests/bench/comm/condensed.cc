// Cost of a job at a collector whose agents send summaries of ranks and steps: bench_condensed [RANKS
// [STEPS]]. The artificial job has tensor groups of 8 within a host, pipelines of 16, data-parallel groups
// over the rest, and one slow device, which must be accused. Prints the seconds from the first block to the
// answer, and the memory.
#include <fmt/format.h>
#include <sys/resource.h>

#include <chrono>
#include <cmath>
#include <cstdlib>
#include <random>

#include "base/hash.h"
#include "core/detect/comm/findings.h"

namespace {

using namespace culprit;
using namespace culprit::comm;

constexpr uint32_t kTp = 8, kPp = 16;
constexpr float kStepMs = 2000, kSlow = 1.3F;

struct Job {
  uint32_t ranks, steps, slow;
  uint32_t dp() const { return ranks / (kTp * kPp); }
};

RankStreams streams_of(const Job& job, uint32_t rank) {
  const uint32_t t = rank % kTp, d = rank / kTp % job.dp(), p = rank / (kTp * job.dp());
  const uint64_t tp = mix64(1, p * job.dp() + d), dp = mix64(2, p * kTp + t), pp = mix64(3, d * kTp + t);
  const uint32_t stride = kTp * job.dp();
  RankStreams out{rank, t, {}};
  const auto add = [&out](uint64_t comm, uint32_t size, CommOp op, CommGroup group, uint32_t peer) {
    out.streams.push_back({comm, size, peer, op, group, 80});
  };
  add(tp, kTp, CommOp::kAllReduce, CommGroup::kTp, kCommUnknown);
  add(dp, job.dp(), CommOp::kReduceScatter, CommGroup::kDp, kCommUnknown);
  add(dp, job.dp(), CommOp::kAllGather, CommGroup::kDp, kCommUnknown);
  if (p > 0) add(pp, kPp, CommOp::kRecv, CommGroup::kPp, rank - stride);
  if (p > 0) add(pp, kPp, CommOp::kSend, CommGroup::kPp, rank - stride);
  if (p + 1 < kPp) add(pp, kPp, CommOp::kSend, CommGroup::kPp, rank + stride);
  if (p + 1 < kPp) add(pp, kPp, CommOp::kRecv, CommGroup::kPp, rank + stride);
  return out;
}

// One host's block: all steps of eight ranks.
HostVectors block_of(const Job& job, uint32_t host, std::mt19937_64& random) {
  std::normal_distribution<float> noise(1, 0.01F);
  HostVectors out;
  for (uint32_t t = 0; t < kTp; ++t) out.streams.push_back(streams_of(job, host * kTp + t));
  const float work = 0.5F * kStepMs / kPhases;
  for (uint32_t s = 0; s < job.steps; ++s)
    for (uint32_t t = 0; t < kTp; ++t) {
      const bool slow = host * kTp + t == job.slow;
      RankVector v;
      v.streams = t;
      v.step = s;
      v.begin_ns = 1'790'000'000'000'000'000 + static_cast<int64_t>(s * 1e6 * double{kStepMs});
      v.span_ms = kStepMs;
      for (float& ms : v.self_ms) ms = work * noise(random) * (slow ? kSlow : 1);
      const auto& streams = out.streams[t].streams;
      v.reported = static_cast<uint32_t>(std::min(streams.size(), kStreamsReported));
      // Wait of the other ranks for the slow one.
      const float wait = slow ? 0 : work * kPhases * (kSlow - 1);
      for (uint32_t k = 0; k < v.reported; ++k)
        v.sums[k] = {k, is_p2p(streams[k].op) ? 16u : 64u, 20 * noise(random) + (k == 0 ? wait : 0)};
      out.vectors.push_back(v);
    }
  return out;
}

}  // namespace

int main(int count, char** arguments) {
  Job job{65'536, 12, 0};
  if (count > 1) job.ranks = static_cast<uint32_t>(std::strtoul(arguments[1], nullptr, 10));
  if (count > 2) job.steps = static_cast<uint32_t>(std::strtoul(arguments[2], nullptr, 10));
  if (job.ranks < 2 * kTp * kPp || job.ranks % (kTp * kPp) != 0 || job.steps < 8) return 2;
  job.slow = job.ranks / 3;
  std::mt19937_64 random(1);
  std::vector<std::string> blocks;
  size_t bytes = 0;
  for (uint32_t host = 0; host < job.ranks / kTp; ++host) {
    PackedWriter out;
    pack(block_of(job, host, random), out);
    bytes += out.size();
    blocks.push_back(out.finish());
  }
  const auto began = std::chrono::steady_clock::now();
  const JobFile no_job;
  CommTrace trace(&no_job, false);
  for (uint32_t host = 0; host < blocks.size(); ++host) {
    PackedReader in(blocks[host]);
    HostVectors reported;
    if (!unpack(in, 0, reported)) return 1;
    trace.add_summaries(fmt::format("node-{}", host), reported, reported.streams);
  }
  const TraceFindings answer = report_findings(trace);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const bool found = answer.irregularities.size() == 1 && !answer.irregularities[0].suspects.empty() &&
                     answer.irregularities[0].suspects[0].rank == job.slow;
  fmt::print("{} ranks x {} steps: {:.2f} s, {} MB at most, {:.1f} bytes a rank and step; {}\n", job.ranks,
             job.steps, took.count(), usage.ru_maxrss / 1024,
             static_cast<double>(bytes) / (double{1} * job.ranks * job.steps),
             found ? "the slow device is named" : "the slow device is NOT named");
  return found ? 0 : 1;
}
