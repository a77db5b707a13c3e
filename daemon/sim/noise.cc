// Harmless alarms in healthy and failed jobs: lines that look serious but are not, mostly rare and at
// random places.
#include "sim/spell.h"

namespace culprit::sim {

namespace {

using namespace spell;

// Above 1,000 per thousand: in every job, and more often with more hosts. Others are rare, and often occur
// in the failed job but in no healthy one, so that they mislead.
constexpr NoiseSpec kNoise[] = {
    {kKernel, kDmesg, W, 9000, 3,
     "EDAC MC<i:0:3>: 1 CE memory read error on CPU_SrcID#<i:0:1>_MC#<i:0:3>_Chan#<i:0:1>_DIMM#0 (channel:0 "
     "slot:0 page:0x<x:7> offset:0x<x:3> grain:32 syndrome:0x0)"},
    {kKernel, kDmesg, W, 6000, 4,
     "pcieport 0000:<w:15,26,80,97>:01.0: AER: Corrected error received: 0000:<w:17,28,82,99>:00.0"},
    {kKernel, kDmesg, W, 2400, 2,
     "mlx5_core 0000:<w:18,29,83,9a>:00.0: PCIe Bus Error: severity=Corrected, type=Physical Layer, "
     "(Receiver ID)"},
    {kKernel, kDmesg, I, 500, 2,
     "nfs: server <w:nas01,nas02,filer3> not responding, still trying\nnfs: server <w:nas01,nas02,filer3> "
     "OK"},
    {kKernel, kDmesg, W, 300, 1, "mce: [Hardware Error]: Machine check events logged"},
    {kKernel, kDmesg, W, 90, 1,
     "mce: CPU<i:0:95>: Core temperature above threshold, cpu clock throttled (total events = <i:1:400>)"},
    {kKernel, kDmesg, W, 100, 2,
     "NVRM: Xid (PCI:<bus>): 63, pid='<unknown>', name=<unknown>, Row Remapper: New row (0x<x:16>) marked "
     "for remapping, reset gpu to activate."},
    {kKernel, kDmesg, W, 60, 1, "NVRM: Xid (PCI:<bus>): 43, pid=<i:2000:90000>, name=jupyter, Ch 00000008"},
    {kKernel, kDmesg, W, 80, 2,
     "nvidia-nvswitch<i:0:3>: SXid (PCI:0000:<w:05,06,07,08>:00.0): 20012, Non-fatal, Link <i:0:35> TX "
     "Replay Error"},
    {kKernel, kDmesg, I, 200, 2, "mlx5_core 0000:<w:18,29>:00.0 ens<i:1:8>f0np0: Link up"},
    {kKernel, kDmesg, W, 120, 1,
     "TCP: request_sock_TCP: Possible SYN flooding on port <port>. Sending cookies.  Check SNMP counters."},
    {kKernel, kDmesg, W, 90, 1,
     "node_exporter invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj=<i:0:999>\nMemory "
     "cgroup out of memory: Killed process <i:1000:9000> (node_exporter) total-vm:<i:700000:900000>kB"},
    {kKernel, kDmesg, E, 70, 1,
     "EXT4-fs error (device sdb1): ext4_lookup:<i:1500:1900>: inode #<i:2:90000>: comm updatedb: deleted "
     "inode referenced: <i:100:90000>"},
    {kKernel, kDmesg, E, 150, 1,
     "audit: type=1400 audit(<i:1000:9000>.<i:100:999>:<i:1:99>): apparmor=\"DENIED\" operation=\"open\" "
     "profile=\"snap.lxd.activate\""},
    {kHost, kPython, W, 7500, 3,
     "data loader waited <f:1.1:6:2> s for shard <i:0:900>, storage may be slow ||| slow read: shard "
     "<i:0:900> took <f:1.2:7:2> s (expected < 1 s)"},
    {kRank, kPython, W, 6000, 3,
     "retry 1/5 after read failure of <root>/data/shard_<i:0:900>.bin: [Errno 5] Input/output error; "
     "succeeded"},
    {kRank, kPython, W, 2700, 2,
     "straggler: rank <p> was <f:1.3:2.4:2>x slower than the median in the last 50 steps (might be caused by "
     "a slow network or a thermal limit)"},
    {kRank0, kPython, W, 3000, 3,
     "gradient overflow. Skipping step, loss scaler 0 reducing loss scale to <i:8192:65536> ||| OVERFLOW! "
     "Rank 0 Skipping step. Attempted loss scale: 65536, reducing to 32768"},
    {kRank, kRaw, W, 600, 2, "WARNING: cuBLAS workspace allocation failed for 32 MiB, falling back to 4 MiB"},
    {kRank, kRaw, W, 350, 1,
     "Exception ignored in: <function TensorStore.__del__ at 0x<x:12>>\nTraceback (most recent call last):\n "
     " File \"/opt/conda/lib/python3.10/site-packages/store.py\", line <i:20:90>, in __del__\n    "
     "self.close()\nAttributeError: 'NoneType' object has no attribute 'close'"},
    {kHost, kPython, W, 300, 1,
     "metrics upload failed, will retry in 30 s\nTraceback (most recent call last):\n  File "
     "\"/app/telemetry/push.py\", line <i:40:140>, in push\n    "
     "resp.raise_for_status()\nrequests.exceptions.HTTPError: 503 Server Error: Service Unavailable for url: "
     "http://metrics.internal/push"},
    {kHost, kPython, I, 300, 1, "metrics upload recovered after <i:1:4> failures"},
    {kRank, kPython, W, 250, 1,
     "reserved memory <f:74:79:2> GiB is close to the device limit; CUDA out of memory may follow. Consider "
     "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True"},
    {kRank0, kRaw, W, 400, 2,
     "wandb: Network error (ConnectionError), entering retry loop. ||| wandb: WARNING (User provided step: "
     "<it> is less than current step, dropping)"},
    {kHost, kRaw, W, 300, 1,
     "UserWarning: Detected call of `lr_scheduler.step()` before `optimizer.step()`. Failure to do this will "
     "result in PyTorch skipping the first value of the learning rate schedule."},
    {kHost, kRaw, W, 250, 1,
     "[W socket.cpp:426] [c10d] The server socket cannot be initialized on [::]:<port> (errno: 97 - Address "
     "family not supported by protocol)."},
    {kHost, Shape::kNccl, W, 200, 1,
     "misc/ibvwrap.cc:66 NCCL WARN Call to ibv_query_gid_ex failed with Operation not supported errno 95, "
     "using fallback"},
    {kHost, Shape::kNccl, I, 200, 1, "NET/IB : mlx5_<i:0:3>:1 async event: GID table change"},
    {Who::kLauncher, kRaw, W, 250, 1,
     "srun: error: _server_read: fd <i:10:60> error reading header: Connection reset by peer, reconnecting "
     "||| srun: error: Task launch for StepId=<job>.1 (monitor) failed on node <ph>: Communication "
     "connection failure, retrying"},
    {kAgent, kElastic, W, 150, 1, "The node '<h>' failed to send a keep-alive heartbeat, retrying (1/3)"},
    {kHost, kPython, W, 110, 1,
     "checkpoint upload part <i:1:90> failed with timeout, retrying; attempt 2 succeeded"},
    {kHost, kPython, E, 90, 1,
     "prometheus exporter: failed to bind :9400, another instance is running; metrics from this process are "
     "off"},
    {kRank, kPython, E, 90, 1,
     "profiler: CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED, tracing disabled ||| failed to open perf "
     "event (permission denied), sampling disabled"},
    {kRank, kPython, W, 100, 2, "sample <i:1000:99999999> has <i:4097:9000> tokens, truncated to 4096"},
    {kRank, kPython, W, 90, 1,
     "decode failed for sample <i:1000:99999999> (UnicodeDecodeError), replaced by a spare; <i:1:9> bad "
     "samples so far"},
    {kHost, kPython, W, 80, 1, "clock offset to ntp server is <f:-30:30:1> ms"},
    {kHost, kPython, W, 80, 1, "fan <i:1:8> rpm <i:3000:5200> below target, bmc raised warning (cleared)"},
    {kHost, kPython, W, 70, 6,
     "device <i:0:7> correctable (SBE) count rose to <i:1:80>, below threshold 100"},
    {kHost, kPython, I, 70, 4, "device <i:0:7> sm clock dipped to <i:1700:1900> MHz for <i:1:4> s"},
    {kHost, kPython, I, 90, 3, "gc: collected <i:1000:90000> objects in <f:0.2:1.9:3> s"},
    {kRank, kPython, I, 120, 3, "recompiling graph: guard failed on dynamic shape (cache size <i:2:8>)"},
    {kRank, kTorchCpp, W, 80, 1,
     "CUDAGuardImpl.h:115] Warning: CUDA warning: driver shutting down (function destroyEvent), ignored"},
    {kHost, kRaw, W, 60, 1,
     "[WARNING] async_io requires the dev libaio .so object and headers but these were not found.\n "
     "[WARNING]  If libaio is already installed (perhaps from source), try setting the CFLAGS and LDFLAGS "
     "environment variables."},
    {kHost, kPython, W, 60, 1, "found stale lock <root>/cache/.lock from a crashed run, removing it"},
    {kRank, kPython, W, 60, 1,
     "collective took <f:12:40:1> s (usual <f:0.2:2:2> s); a peer may have been checkpointing"},
};

}  // namespace

std::span<const NoiseSpec> noise_specs() { return kNoise; }

}  // namespace culprit::sim
