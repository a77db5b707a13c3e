#include "sim/hang_state.h"

#include <algorithm>

#include "base/hash.h"

namespace culprit::sim {
namespace {

constexpr const char* kTracebackErrors[] = {
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.50 GiB. GPU 3 has 79.11 GiB in total.",
    "KeyError: 'input_ids'", "AssertionError: sequence length 8193 is longer than the maximum of 8192",
    "FileNotFoundError: [Errno 2] No such file or directory: '/data/shard_00417.bin'",
    "ValueError: could not broadcast input array from shape (4095,) into shape (4096,)"};

}  // namespace

HangState::HangState(const HangSite& s, const HangFault& f, const HangWorld& w, double capture)
    : site(s), fault(f), world(w) {
  const auto percent_10k = static_cast<uint64_t>(capture * 10'000 + 0.5);
  for (uint32_t r = 0; r < s.world; ++r)
    captured.push_back(mix64(s.seed ^ 0x63617074, r) % 10'000 < percent_10k ? 1 : 0);
  for (uint32_t r : f.ranks) {
    const uint64_t at = rank(r).host_ns;
    fault_ns = fault_ns == 0 ? at : std::min(fault_ns, at);
  }
  for (uint32_t r = 0; r < s.world; ++r) {
    const HangRank& one = rank(r);
    if (!one.waits() || !answers(r)) continue;
    const uint64_t at = one.calls[one.device].created_ns;
    since_ns = since_ns == 0 ? at : std::min(since_ns, at);
  }
  if (since_ns != 0) first_timeout_ns = since_ns + s.timeout_ns;
  traceback_error = kTracebackErrors[mix64(s.seed, 0x7472) % 5];
  kernel_line = f.end == HangEnd::kKilled && mix64(s.seed, 0x6b72) % 100 < 40;
}

int64_t HangState::clock_offset_ns(uint32_t host) const {
  return static_cast<int64_t>(mix64(site.seed ^ 0x636c6b, host) % 60'000'000) - 30'000'000;
}

bool HangState::answers(uint32_t r) const {
  return !fault.is_removed(r) && !(fault.end == HangEnd::kStopped && fault.is_at_fault(r));
}

const HangCall* HangState::open_call(uint32_t r, HangGroup group) const {
  const HangRank& one = rank(r);
  for (size_t i = one.device; i < one.calls.size(); ++i)
    if (one.act_of(one.calls[i]).group == group) return &one.calls[i];
  return nullptr;
}

HangPlace HangState::place_of(uint32_t r) const {
  if (fault.own_place && fault.is_at_fault(r)) return fault.place;
  const HangRank& one = rank(r);
  if (one.at < one.program->size()) return (*one.program)[one.at].place;
  return one.program->back().place;
}

bool HangState::in_sync(uint32_t r) const {
  const HangRank& one = rank(r);
  if (one.at == one.deviation.host_stops_at) return false;
  return one.waits();
}

std::string_view watchdog_name(HangOp op) {
  constexpr std::string_view kNames[] = {
      "ALLREDUCE", "_ALLGATHER_BASE", "_REDUCE_SCATTER_BASE", "BROADCAST", "SEND", "RECV"};
  return kNames[static_cast<size_t>(op)];
}

std::string_view recorder_name(HangOp op) {
  constexpr std::string_view kNames[] = {
      "all_reduce", "_all_gather_base", "_reduce_scatter_base", "broadcast", "send", "recv"};
  return kNames[static_cast<size_t>(op)];
}

}  // namespace culprit::sim
