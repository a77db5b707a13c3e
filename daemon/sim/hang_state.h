// Input of the writers of a simulated hang: site, fault, stopped ranks (world), and which ranks were
// captured when. Borrows site, fault and world, which must outlive it. The writers write below `folder`,
// the job's.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "sim/hang_fault.h"
#include "sim/hang_site.h"
#include "sim/hang_world.h"

namespace culprit::sim {

// A line of a host's kernel, without its header.
struct HangKernelLine {
  uint32_t host = 0;
  uint64_t at_ns = 0;
  std::string text;
};

struct HangState {
  const HangSite& site;
  const HangFault& fault;
  const HangWorld& world;
  std::vector<uint8_t> captured;       // by rank
  uint64_t fault_ns = 0;               // when the first rank at fault stopped; 0: none did
  uint64_t since_ns = 0;               // when the first rank began to wait; 0: none waits
  uint64_t first_timeout_ns = 0;       // 0: none
  std::string traceback_error;         // of an exception
  bool kernel_line = false;            // the kernel logs that it killed the process
  std::vector<HangKernelLine> kernel;  // further lines

  HangState(const HangSite& site, const HangFault& fault, const HangWorld& world, double capture);
  // Of a host's clock against the common one.
  int64_t clock_offset_ns(uint32_t host) const;
  // Whether the rank's process is alive to write a dump or answer.
  bool answers(uint32_t rank) const;
  // When the fault's process ended or stopped.
  uint64_t exit_ns() const { return fault_ns + 1'500'000'000; }
  const HangRank& rank(uint32_t r) const { return world.ranks()[r]; }
  // The first incomplete call of this group; null: all calls are complete.
  const HangCall* open_call(uint32_t rank, HangGroup group) const;
  // Where the host of the rank is.
  HangPlace place_of(uint32_t rank) const;
  bool in_sync(uint32_t rank) const;
};

std::string_view watchdog_name(HangOp op);  // ALLREDUCE
std::string_view recorder_name(HangOp op);  // all_reduce

struct HangFrame {
  std::string_view function;  // of Python
  std::string file;
  uint32_t line = 0;
};
// Frames of the main thread, innermost first. `waits`: it waits in a synchronisation at `place`.
std::vector<HangFrame> hang_frames(const HangSite& site, HangPlace place, bool waits);
// Of the code that hands a call over.
std::vector<HangFrame> hang_call_site(const HangSite& site, const HangAct& act);

Status write_hang_logs(const HangState& hang_state, const std::string& folder);
// Those of the kernels alone.
Status write_hang_kernel_logs(const HangState& hang_state, const std::string& folder);
Status write_hang_dumps(const HangState& hang_state, const std::string& folder);
Status write_hang_ras(const HangState& hang_state, const std::string& folder);
Status write_hang_stacks(const HangState& hang_state, const std::string& folder);

}  // namespace culprit::sim
