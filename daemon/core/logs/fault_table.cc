#include "core/logs/fault_table.h"

#include "core/logs/shape.h"

namespace culprit::logs {
namespace {

using C = Category;
using P = Component;
using S = Symptom;
using V = Severity;
using A = ActionKind;
using sv = std::string_view;

constexpr sv kReplaceGpu = "Isolate the host; reset the GPU and run its vendor diagnostics before it returns.";
constexpr sv kNet = "Check the port, cable and switch counters of the host; isolate it if they grow.";
constexpr sv kPeer = "Look for the peer that left first; this line only says that it is gone.";
constexpr sv kStore = "Check the file system's state and free space, then restart from the last checkpoint.";
constexpr sv kNan = "Go back to the last good checkpoint; compare the ranks' gradients to tell data from hardware.";
constexpr sv kResubmit = "Resubmit; the job continues from its last checkpoint.";

// First match wins, so the particular stand before the general.
constexpr FaultShape kFaults[] = {
    {"kernel: Xid", {"nvrm: xid", "", ""}, "", "GPU error reported by the driver (Xid)", C::kHardware, P::kGpu,
     S::kCrash, V::kFatal, false, A::kIsolate, kReplaceGpu},
    {"kernel: SXid", {"sxid", "", ""}, "non-fatal", "NVSwitch error reported by the driver (SXid)", C::kHardware,
     P::kNvlink, S::kCrash, V::kFatal, false, A::kIsolate, kReplaceGpu},
    {"fallen off the bus", {"fallen off the bus", "", ""}, "", "GPU has fallen off the bus", C::kHardware, P::kGpu,
     S::kCrash, V::kFatal, false, A::kIsolate, kReplaceGpu},
    {"uncorrectable ECC", {"uncorrectable", "ecc", ""}, "", "Uncorrectable memory error of a GPU", C::kHardware,
     P::kGpuMemory, S::kCrash, V::kFatal, false, A::kIsolate, kReplaceGpu},
    {"machine check", {"mce:", "hardware error", ""}, "events logged", "Machine check: the processor or memory failed",
     C::kHardware, P::kCpu, S::kCrash, V::kFatal, false, A::kIsolate, "Isolate the host; read its event log."},
    {"OOM killer", {"out of memory: kill", "", ""}, "", "The kernel killed a process: host out of memory",
     C::kUser, P::kHostMemory, S::kCrash, V::kFatal, false, A::kFix,
     "Lower the host memory that the job takes (loader workers, pinned buffers) or give it more."},
    {"OOM killer", {"oom-kill:", "", ""}, "", "The kernel killed a process: host out of memory", C::kUser,
     P::kHostMemory, S::kCrash, V::kFatal, false, A::kFix,
     "Lower the host memory that the job takes (loader workers, pinned buffers) or give it more."},
    {"oom_kill event", {"oom", "kill", "event"}, "", "A process was killed: out of memory", C::kUser,
     P::kHostMemory, S::kCrash, V::kFatal, false, A::kFix,
     "Lower the host memory that the job takes (loader workers, pinned buffers) or give it more."},
    {"CUDA out of memory", {"cuda out of memory", "tried to allocate", ""}, "", "A GPU ran out of memory", C::kUser, P::kGpuMemory,
     S::kCrash, V::kFatal, false, A::kFix, "Lower the micro-batch or shard more; look for other users of the GPU."},
    {"disk full", {"no space left on device", "", ""}, "", "A file system is full", C::kPlatform, P::kStorage,
     S::kCrash, V::kFatal, false, A::kFix, kStore},
    {"stale handle", {"stale file handle", "", ""}, "", "A network file system's handle went stale", C::kPlatform,
     P::kStorage, S::kCrash, V::kError, false, A::kRetry, kStore},
    {"read-only file system", {"read-only file system", "", ""}, "", "A file system became read-only",
     C::kPlatform, P::kStorage, S::kCrash, V::kFatal, false, A::kCheck, kStore},
    {"I/O error", {"input/output error", "", ""}, "", "Reading or writing a file failed", C::kPlatform,
     P::kStorage, S::kCrash, V::kError, false, A::kCheck, kStore},
    {"preemption", {"due to preemption", "", ""}, "", "The scheduler preempted the job", C::kPlatform,
     P::kPlatform, S::kCrash, V::kFatal, false, A::kRetry, kResubmit},
    {"preemption", {"preempt", "job", ""}, "preemptible", "The scheduler preempted the job", C::kPlatform,
     P::kPlatform, S::kCrash, V::kError, false, A::kRetry, kResubmit},
    {"time limit", {"due to time limit", "", ""}, "", "The job reached its time limit", C::kPlatform,
     P::kPlatform, S::kCrash, V::kFatal, false, A::kRetry, kResubmit},
    {"time limit", {"reached", "time limit", ""}, "", "The job reached its time limit", C::kPlatform,
     P::kPlatform, S::kCrash, V::kFatal, false, A::kRetry, kResubmit},
    {"port down", {"mlx5", "port", "down"}, "", "A network port went down", C::kHardware, P::kNetwork, S::kCrash,
     V::kError, false, A::kIsolate, kNet},
    {"illegal access", {"illegal memory access", "", ""}, "", "A kernel accessed memory that is not its own",
     C::kUser, P::kUserCode, S::kCrash, V::kFatal, false, A::kFix,
     "Run with CUDA_LAUNCH_BLOCKING=1 to find the kernel; on one host only, check its GPU."},
    {"watchdog", {"watchdog", "caught collective", ""}, "", "A collective operation timed out", C::kUnknown,
     P::kNcclComm, S::kHang, V::kError, true, A::kCheck, kPeer},
    {"remote peer gone", {"ncclremoteerror", "", ""}, "", "A communication peer is gone", C::kUnknown,
     P::kNcclComm, S::kCrash, V::kError, true, A::kCheck, kPeer},
    {"NCCL failed", {"nccl error", "", ""}, "", "A communication operation failed", C::kUnknown, P::kNcclComm,
     S::kCrash, V::kError, true, A::kCheck, kPeer},
    {"peer closed", {"connection reset by peer", "", ""}, "", "A connection was reset by its peer", C::kUnknown,
     P::kNetwork, S::kCrash, V::kError, true, A::kCheck, kPeer},
    {"peer closed", {"connection closed by", "peer", ""}, "", "A connection was closed by its peer", C::kUnknown,
     P::kNetwork, S::kCrash, V::kError, true, A::kCheck, kPeer},
    {"NaN loss", {"loss: nan", "", ""}, "", "The loss became NaN", C::kFramework, P::kNumeric, S::kNumeric, V::kError,
     false, A::kRollback, kNan},
    {"NaN loss", {"loss': nan", "", ""}, "", "The loss became NaN", C::kFramework, P::kNumeric, S::kNumeric, V::kError,
     false, A::kRollback, kNan},
    {"NaN loss", {"loss=nan", "", ""}, "", "The loss became NaN", C::kFramework, P::kNumeric, S::kNumeric, V::kError,
     false, A::kRollback, kNan},
    {"NaN loss", {"loss is nan", "", ""}, "", "The loss became NaN", C::kFramework, P::kNumeric, S::kNumeric, V::kError,
     false, A::kRollback, kNan},
    {"NaN loss", {"loss nan", "", ""}, "", "The loss became NaN", C::kFramework, P::kNumeric, S::kNumeric, V::kError,
     false, A::kRollback, kNan},
    {"segmentation fault", {"segmentation fault", "", ""}, "", "A process crashed (segmentation fault)", C::kUser,
     P::kUserCode, S::kCrash, V::kFatal, false, A::kFix, "Read the native stack; suspect the newest extension."},
    {"segfault", {"segfault at", "", ""}, "", "A process crashed (segmentation fault)", C::kUser, P::kUserCode,
     S::kCrash, V::kFatal, false, A::kFix, "Read the native stack; suspect the newest extension."},
};

}  // namespace

FaultShapes fault_shapes() { return {kFaults, std::size(kFaults)}; }

std::optional<uint8_t> match_fault(std::string_view text) {
  for (size_t i = 0; i < std::size(kFaults); ++i) {
    bool all = true;
    for (sv w : kFaults[i].all) all = all && (w.empty() || text.find(w) != sv::npos);
    if (all && (kFaults[i].none.empty() || text.find(kFaults[i].none) == sv::npos)) return static_cast<uint8_t>(i);
  }
  return std::nullopt;
}

}  // namespace culprit::logs
